
// -- why

async function explain(cluster, from) {
  if (file) return;
  if (from) openedBy = from;
  const opening = $('explain').hidden || !explained || explained.cluster !== cluster || explained.check !== chosen;
  explained = { check: chosen, cluster };
  $('explain-title').textContent = cluster ? 'Why ' + cluster + '?' : 'Why ' + chosen + '?';
  if (opening) showParts([make('p', 'muted', 'asking …')]);
  $('explain').hidden = false;
  if (from) $('explain').focus();
  selectRow();
  const mine = explained;
  const explanation = await asked('explain', mine);
  if (mine === explained) showExplanation(explanation);
}

function showExplanation(explanation) {
  const parts = [];
  if (explanation.kind === 'error') {
    parts.push(make('p', '', explanation.message));
  } else {
    const about = make('p', 'muted', (explanation.placement ? 'for Placement ' + explanation.placement : 'no Placement') +
      (explanation.checks.length ? ' (check ' + explanation.checks.join(', ') + ')' : ''));
    if (explanation.state) about.prepend(state(explanation.state), ' ');
    parts.push(about, ...explanation.links.map(link => stepOf(link, explanation.step)));
  }
  if (explanation.kind === 'check' && explanation.clusters.length) {
    parts.push(make('h3', '', 'Clusters'));
    explanation.clusters.forEach(group => {
      const line = make('div', 'step');
      const text = make('div');
      const head = make('div', '', group.names.length > 1 ? group.names.length + ': ' + group.names.slice(0, 8).join(', ') +
        (group.names.length > 8 ? ' and ' + (group.names.length - 8) + ' more' : '') : group.names[0]);
      head.append(' ', state(group.state));
      text.append(head, make('div', 'name', group.step + ': ' + group.why));
      line.append(make('span'), text);
      parts.push(line);
    });
  }
  showParts(parts);
}

function stepOf(link, deciding) {
  const [look, mark] = STEPS[link.outcome] || ['', '?'];
  const line = make('div', 'step' + (deciding === link.step ? ' decides' : ''));
  const sign = make('span', 'mark ' + look, mark);
  sign.setAttribute('aria-label', link.outcome);
  sign.setAttribute('role', 'img');
  const text = make('div');
  text.append(make('div', 'name', link.step + (deciding === link.step ? ' – this step decides' : '')), make('div', '', link.sentence));
  if (link.source) text.append(make('div', 'name', link.source));
  line.append(sign, text);
  return line;
}

function selectRow() {
  document.querySelectorAll('#clusters tbody tr').forEach(row => {
    row.setAttribute('aria-selected', String(explained !== null && row.dataset.key === explained.cluster));
  });
}

function closeExplanation() {
  if ($('explain').hidden) return;
  $('explain').hidden = true;
  explained = null;
  selectRow();
  const back = openedBy && openedBy.isConnected ? openedBy : $('main');
  back.focus();
}
$('close').addEventListener('click', closeExplanation);
document.addEventListener('keydown', event => { if (event.key === 'Escape') closeExplanation(); });
let again = 0;
// That of a check has all clusters of the hub, which takes longer.
function explainAgain() {
  if (again) return;
  const quick = explained.cluster || explained.job;
  again = setTimeout(() => {
    again = 0;
    if (explained && explained.job) tell(explained.job);
    else if (explained) explain(explained.cluster);
  }, quick ? 300 : 2000);
}

// -- what follows the hub

const take = {
  hub(hub) {
    $('server').textContent = hub.server || (file ? '' : 'a dump');
    $('controller').textContent = hub.controller.line;
    $('controller').className = hub.controller.running === false ? 'bad' : '';
    $('banner').textContent = [hub.problem && 'the hub cannot be read, what follows is old: ' + hub.problem, hub.missing].filter(Boolean).join(' ');
    $('banner').hidden = !hub.problem && !hub.missing;
    $('link').dataset.live = hub.live;
    said();
  },
  checks(change) {
    if (change.whole) checks.clear();
    change.checks.forEach(summary => checks.set(summary.name, summary));
    change.gone.forEach(name => checks.delete(name));
    said();
    if (!chosen && checks.size) choose([...checks.keys()].sort()[0]);
    else { showChecks(); showCheck(); }
    askJobs();
  },
  capacity(bars) { capacity_ = bars; said(); showCapacity(); },
  check(details) { detail = details; said(); showCheck(); showCapacity(); selectRow(); if (explained) explainAgain(); },
  graph(drawing) { graph_ = drawing; showGraph(); },
  timeline(drawing) {
    history_ = drawing;
    clockOffset = Date.parse(drawing.end) - Date.now();
    showTimeline();
  },
};

function connect() {
  if (file) {
    const details = file.details.find(({ status }) => status.name === chosen);
    if (details) take.check(details);
    return;
  }
  if (source) source.close();
  source = new EventSource('events?' + new URLSearchParams({ check: chosen }));
  for (const name of Object.keys(take)) source.addEventListener(name, event => take[name](JSON.parse(event.data)));
  source.addEventListener('replaced', () => {
    source.close();
    document.body.classList.add('offline');
    $('link').className = 'off';
    $('link').textContent = 'too many pages are open: close one, and reload this one';
  });
  source.onerror = () => {
    document.body.classList.add('offline');
    $('link').className = 'off';
    $('link').textContent = 'placement-ac ui does not answer; what follows is old';
  };
}

function said() {
  document.body.classList.remove('offline');
  const live = $('link').dataset.live !== 'false';
  $('link').className = live ? '' : 'file';
  $('link').textContent = file ? 'as of ' + file.at.slice(0, 19).replace('T', ' ') + ' UTC' : live ? 'live, last change ' + clock(Date.now()) + ' UTC' : 'from a file';
}

function choose(name) {
  if (name === chosen && source) return;
  if (explained) { openedBy = null; closeExplanation(); }
  chosen = name;
  detail = null;
  if (!file) history_ = graph_ = null;
  showAll = false;
  if (decodeURIComponent(location.hash.slice(1)) !== name) history.replaceState(null, '', '#' + encodeURIComponent(name));
  showChecks();
  showCheck();
  connect();
}
$('filter').addEventListener('input', showChecks);
addEventListener('hashchange', () => {
  const name = decodeURIComponent(location.hash.slice(1));
  if (checks.has(name)) choose(name);
});
chosen = decodeURIComponent(location.hash.slice(1));
if (chosen === 'main') chosen = '';
if (file) openFile();
else connect();

function openFile() {
  document.body.dataset.file = file.timeline ? 'timeline' : 'graph';
  document.body.dataset.checks = file.checks.length;
  for (const id of ['card-check', 'card-placement']) $(id).disabled = true;  // nobody is there to explain
  take.hub(file.hub);
  if (file.timeline) {
    $('timeline-title').textContent = 'Timeline of ' + file.timeline.check;
    document.title = $('timeline-title').textContent;
    $('content').hidden = false;
    take.timeline(file.timeline);
  } else {
    if (!file.details.some(({ status }) => status.name === chosen)) chosen = '';
    take.checks({ whole: true, checks: file.checks, gone: [] });
    if (chosen && !detail) connect();
    $('content').prepend($('graph-section'));
    $('graph-section').open = true;
    take.graph(file.graph);
  }
}
