
// -- jobs

let jobs_ = [];

async function asked(path, query) {
  try {
    return await (await fetch(path + '?' + new URLSearchParams(query))).json();
  } catch {
    return { kind: 'error', message: 'placement-ac ui does not answer' };
  }
}

let jobsAsked = 0;
async function askJobs() {
  if (file || !$('jobs-section').open) return;
  const mine = jobsAsked += 1;
  const answer = await asked('jobs', {});
  if (mine !== jobsAsked || !answer.jobs) return;
  jobs_ = answer.jobs;
  showJobs();
}
$('jobs-section').addEventListener('toggle', askJobs);
// A change of a job that has no quota yet concerns no check.
setInterval(() => { askJobs(); if (explained && explained.job) explainAgain(); }, 10000);
$('jobs-filter').addEventListener('input', showJobs);

const jobKey = job => job.namespace + '/' + job.workload;
const searched = job => [job.namespace + '/' + job.name, job.kind, job.queue, job.state, job.cluster, job.waitsFor].join(' ').toLowerCase();

function showJobs() {
  const words = wordsOf('jobs-filter');
  const shown = jobs_.filter(job => words.every(word => searched(job).includes(word)));
  table('jobs', [['Job', 'wide'], ['State', 'short'], ['Cluster'], ['LocalQueue'], ['Since', 'short']],
    shown.slice(0, ROWS_SHOWN).map(job => {
      const name = button(job.namespace + '/' + job.name);
      return Object.assign([
        job.waitsFor ? [name, make('div', 'why', 'waits for ' + job.waitsFor)] : name,
        state(job.state), job.cluster || '-', job.queue, job.since ? when(job.since) : '-',
      ], { key: jobKey(job) });
    }));
  $('jobs-count').textContent = words.length || shown.length > ROWS_SHOWN
    ? Math.min(shown.length, ROWS_SHOWN) + ' of ' + jobs_.length : String(jobs_.length);
}

function button(text) {
  const element = make('button', 'link', text);
  element.type = 'button';
  element.setAttribute('aria-haspopup', 'dialog');
  return element;
}

const when = time => time.slice(0, 10) === new Date(now()).toISOString().slice(0, 10) ? time.slice(11, 19) : time.slice(0, 10);

for (const id of ['jobs', 'workloads']) {
  $(id).addEventListener('click', event => {
    const row = event.target.closest('tbody tr');
    if (row && !file && !String(getSelection())) tell(row.dataset.key, row.querySelector('button'));
  });
}

// The story of the Workload NAMESPACE/NAME, in the panel of explanations.
async function tell(key, from) {
  if (from) openedBy = from;
  const opening = $('explain').hidden || !explained || explained.job !== key;
  explained = { job: key };
  const mine = explained;
  $('explain-title').textContent = 'Job of Workload ' + key;
  if (opening) showParts([make('p', 'muted', 'asking …')]);
  $('explain').hidden = false;
  if (from) $('explain').focus();
  selectRow();
  const [namespace, workload] = key.split('/');
  const story = await asked('job', { namespace, workload });
  if (mine !== explained) return;
  if (story.kind === 'error') showParts([make('p', '', story.message)]);
  else showStory(story);
}

function showStory(story) {
  const job = story.job;
  $('explain-title').textContent = job.kind + ' ' + job.namespace + '/' + job.name;
  const head = make('p', 'muted', job.cluster ? 'on ' + job.cluster : 'in LocalQueue ' + (job.queue || 'none'));
  head.prepend(state(job.state), ' ');
  const parts = [head];
  if (job.waitsFor) parts.push(make('p', '', 'It waits for ' + job.waitsFor + (job.fix ? '; ' + job.fix : '') + '.'));
  if (story.position) parts.push(make('p', '', 'It is number ' + story.position.place + ' of the ' + story.position.jobs + ' that wait for quota in its LocalQueue.'));
  parts.push(...story.steps.map(step => storyLine(
    step.what + (step.by ? ' by ' + step.by : ''), step.detail, step.time ? step.time.replace('T', ' ').replace('Z', ' UTC') : '')));
  const choices = story.explanation ? story.explanation.placements : [];
  choices.filter(choice => choice.dispatcher).forEach(choice => {
    parts.push(make('h3', '', 'Clusters of ' + choice.placement));
    if (choice.problem) parts.push(make('p', '', choice.problem));
    choice.clusters.forEach(cluster => parts.push(storyLine(
      cluster.cluster + (cluster.nominated ? ', nominated' : ''), cluster.filter ? cluster.reason + ' (' + cluster.filter + ')'
        : cluster.total === null ? cluster.state : cluster.total.toFixed(1).replace('.0', '') + ' points', cluster.why)));
  });
  story.notes.forEach(note => parts.push(make('p', 'muted', note)));
  showParts(parts);
}

function storyLine(name, text, more) {
  const line = make('div', 'step');
  const body = make('div');
  body.append(make('div', '', name), make('div', 'name', text));
  if (more) body.append(make('div', 'name', more));
  line.append(make('span', '', '•'), body);
  return line;
}

function showParts(parts) {
  const text = parts.map(part => part.outerHTML).join('');
  if ($('explain-text').said !== text) put($('explain-text'), ...parts);
  $('explain-text').said = text;
}
