
// -- why

async function explain(cluster, from) {
  if (file) return;
  if (from) openedBy = from;
  const opening = $('explain').hidden || !explained || explained.cluster !== cluster || explained.check !== chosen;
  explained = { check: chosen, cluster };
  $('explain-title').textContent = cluster ? 'Why ' + cluster + '?' : 'Why ' + chosen + '?';
  if (opening) put($('explain-text'), make('p', 'muted', 'asking …'));
  $('explain').hidden = false;
  if (from) $('explain').focus();
  selectRow();
  const asked = explained;
  let found;
  try {
    const answer = await fetch('explain?' + new URLSearchParams(asked));
    found = await answer.json();
  } catch {
    found = { kind: 'error', message: 'placement-ac ui does not answer' };
  }
  if (asked === explained) showExplanation(found);
}

function showExplanation(found) {
  const parts = [];
  if (found.kind === 'error') {
    parts.push(make('p', '', found.message));
  } else {
    const about = make('p', 'muted', (found.placement ? 'for Placement ' + found.placement : 'no Placement') +
      (found.checks.length ? ' (check ' + found.checks.join(', ') + ')' : ''));
    if (found.state) about.prepend(state(found.state), ' ');
    parts.push(about, ...found.links.map(link => stepOf(link, found.step)));
  }
  if (found.kind === 'check' && found.clusters.length) {
    parts.push(make('h3', '', 'Clusters'));
    found.clusters.forEach(one => {
      const line = make('div', 'step');
      const text = make('div');
      const head = make('div', '', one.names.length > 1 ? one.names.length + ': ' + one.names.slice(0, 8).join(', ') +
        (one.names.length > 8 ? ' and ' + (one.names.length - 8) + ' more' : '') : one.names[0]);
      head.append(' ', state(one.state));
      text.append(head, make('div', 'name', one.step + ': ' + one.why));
      line.append(make('span'), text);
      parts.push(line);
    });
  }
  const text = parts.map(part => part.outerHTML).join('');
  if ($('explain-text').said !== text) put($('explain-text'), ...parts);
  $('explain-text').said = text;
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
  again = setTimeout(() => { again = 0; if (explained) explain(explained.cluster); }, explained.cluster ? 300 : 2000);
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
    change.checks.forEach(one => checks.set(one.name, one));
    change.gone.forEach(name => checks.delete(name));
    said();
    if (!chosen && checks.size) choose([...checks.keys()].sort()[0]);
    else { showChecks(); showCheck(); }
  },
  check(one) { detail = one; said(); showCheck(); selectRow(); if (explained) explainAgain(); },
  graph(one) { graph_ = one; showGraph(); },
  timeline(one) {
    history_ = one;
    clockOffset = Date.parse(one.end) - Date.now();
    showTimeline();
  },
};

function connect() {
  if (file) {
    const one = file.details.find(({ status }) => status.name === chosen);
    if (one) take.check(one);
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
