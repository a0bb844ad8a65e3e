
'use strict';
const $ = id => document.getElementById(id);
// State → its class and its mark: never a colour alone.
const LOOK = {
  listed: ['good', '●'], standby: ['next', '◐'], draining: ['drain', '▼'], selected: ['next', '○'],
  waiting: ['next', '◔'], beyond: ['drain', '▷'], unusable: ['bad', '✕'], dropped: ['bad', '✕'],
  running: ['good', '●'], pending: ['drain', '○'], stopped: ['drain', '■'], succeeded: ['good', '✓'], failed: ['bad', '✕'],
  good: ['good', '✓'], bad: ['bad', '✕'], missing: ['bad', '✕'],
  True: ['good', '✓'], False: ['bad', '✕'], Unknown: ['drain', '?'], unknown: ['drain', '?'],
};
const STEPS = { passed: ['good', '✓'], failed: ['bad', '✕'], note: ['next', '•'], unknown: ['drain', '?'] };
const ROWS_SHOWN = 60;
const LANES_SHOWN = 40;
const RUNS_SHOWN = 4;
const checks = new Map();
let chosen = '';
let source = null;
let detail = null;
let history_ = null;
let graph_ = null;
let capacity_ = null;
let routes = [];
let clockOffset = 0;
let showAll = false;
let explained = null;
let openedBy = null;

// The data inside, if this is a file: what the server sends otherwise.
const file = $('data') && JSON.parse($('data').textContent);

// -- elements

function make(tag, class_ = '', text = '') {
  const element = document.createElement(tag);
  if (class_) element.className = class_;
  if (text !== '') element.textContent = text;
  return element;
}

function state(name, text = name) {
  const [look, mark] = LOOK[name] || ['', '?'];
  const element = make('span', 'state ' + look);
  const sign = make('span', '', mark);
  sign.setAttribute('aria-hidden', 'true');
  element.append(sign, text);
  return element;
}

function put(parent, ...children) {
  parent.replaceChildren(...children.filter(child => child !== null && child !== ''));
}

const plural = (n, word) => n + ' ' + word + (n === 1 ? '' : 's');
const clock = time => new Date(time).toISOString().slice(11, 19);
const wordsOf = id => $(id).value.toLowerCase().split(/\s+/).filter(Boolean);
const number = (value, otherwise = '?') => value === null || value === undefined ? otherwise : String(value);
const isLive = () => history_ !== null && history_.live;
const now = () => isLive() ? Date.now() + clockOffset : history_ ? Date.parse(history_.end) : Date.now();

function left(end) {
  const seconds = Math.floor((Date.parse(end) - (file ? Date.parse(file.at) : Date.now())) / 1000);
  if (seconds <= 0) return 'expired';
  if (seconds > 315360000) return '>10y';
  for (const [size, letter] of [[31536000, 'y'], [86400, 'd'], [3600, 'h'], [60, 'm']]) {
    if (seconds >= 2 * size) return Math.floor(seconds / size) + letter;
  }
  return seconds + 's';
}

// A table whose rows keep their elements: only what has changed is drawn, and marked.
function table(id, heads, rows) {
  const at = $(id);
  if (!at.tBodies.length) {
    const line = at.createTHead().insertRow();
    for (const [text, class_] of heads) {
      const head = make('th', class_ || '', text);
      head.scope = 'col';
      line.append(head);
    }
    at.createTBody();
  }
  const body = at.tBodies[0];
  const known = new Map([...body.rows].map(row => [row.dataset.key, row]));
  const same = body.dataset.of === chosen;
  body.dataset.of = chosen;
  rows.forEach((cells, place) => {
    const key = cells.key;
    let row = known.get(key);
    known.delete(key);
    if (!row) {
      row = make('tr');
      row.dataset.key = key;
      heads.forEach(([text, class_]) => {
        const cell = row.insertCell();
        cell.className = class_ || '';
        cell.dataset.label = text;
      });
      if (same) row.classList.add('changed');
    }
    if (body.rows[place] !== row) body.insertBefore(row, body.rows[place] || null);
    cells.forEach((content, n) => fill(row.cells[n], content, same));
  });
  known.forEach(row => row.remove());
  at.hidden = rows.length === 0;
}

function fill(cell, content, marks) {
  const parts = [].concat(content);
  const text = parts.map(part => part.outerHTML || part).join(' ');
  if (cell.said === text) return;
  if (cell.said !== undefined && marks) flash(cell);
  cell.said = text;
  put(cell, ...parts);
}

function flash(element) {
  element.classList.remove('changed');
  void element.offsetWidth;
  element.classList.add('changed');
}
document.addEventListener('animationend', event => event.target.classList.remove('changed'));

// -- the list of checks

function counts(summary) {
  const parts = Object.entries(summary.states).map(([name, n]) => n + ' ' + name);
  if (summary.disconnected) parts.push(summary.disconnected + ' not connected');
  if (summary.running) parts.push(summary.running + ' running');
  if (summary.waiting) parts.push(summary.waiting + ' waiting');
  if (summary.held) parts.push(summary.held + ' held');
  return parts.join(' · ') || 'no clusters';
}

function showChecks() {
  const list = $('checks');
  const words = wordsOf('filter');
  const names = [...checks.keys()].sort();
  const known = new Map([...list.children].map(item => [item.dataset.name, item]));
  let shown = 0;
  names.forEach((name, place) => {
    const summary = checks.get(name);
    const item = known.get(name) || checkItem(name);
    known.delete(name);
    if (list.children[place] !== item) list.insertBefore(item, list.children[place] || null);
    const button = item.firstChild;
    if (item.of !== summary) {
      const [look, mark] = summary.active === 'True' && summary.disconnected ? LOOK.draining : LOOK[summary.active];
      const sign = make('span', look, mark);
      sign.style.background = 'none';
      sign.setAttribute('aria-hidden', 'true');
      const head = make('span', 'name');
      head.append(sign, name);
      const answer = summary.active === 'True' ? '' : 'Active=' + summary.active + ' ' + summary.reason + ' · ';
      put(button, head, make('span', 'counts', answer + counts(summary)));
      if (item.of) flash(button);
      item.of = summary;
    }
    const text = button.textContent.toLowerCase();
    item.hidden = !words.every(word => text.includes(word));
    shown += item.hidden ? 0 : 1;
    button.setAttribute('aria-current', String(name === chosen));
    button.tabIndex = name === chosen || !checks.has(chosen) ? 0 : -1;
  });
  known.forEach(item => item.remove());
  $('count').textContent = words.length ? shown + ' of ' + names.length : String(names.length);
}

function checkItem(name) {
  const item = make('li');
  item.dataset.name = name;
  const button = make('button', 'check');
  button.type = 'button';
  button.addEventListener('click', () => choose(name));
  item.append(button);
  return item;
}

$('checks').addEventListener('keydown', event => {
  const buttons = [...document.querySelectorAll('#checks li:not([hidden]) .check')];
  const at = buttons.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (to === undefined || !buttons[to]) return;
  event.preventDefault();
  buttons[to].focus();
});

// -- one check

function showCheck() {
  const known = checks.has(chosen);
  $('content').hidden = !known || !detail;
  $('nothing').hidden = known;
  $('nothing').textContent = chosen ? 'There is no AdmissionCheck ' + chosen + ' that placement-ac answers.'
    : 'There is no AdmissionCheck that placement-ac answers.';
  document.title = (chosen ? chosen + ' - ' : '') + 'placement-ac';
  if (!known || !detail) return;
  const status = detail.status;
  showCards(status);
  showClusters(status.clusters);
  showWorkloads(status);
  table('queues', [['ClusterQueue', 'wide'], ['State', 'short'], ['Lists'], ['LocalQueues'], ['Pending', 'number'],
    ['Admitted', 'number']], status.queues.map(queue => Object.assign([
    queue.why ? [queue.name, make('div', 'why', queue.why)] : queue.name, state(queue.active, 'Active=' + queue.active),
    queue.lists.join(', '), queue.localQueues === null ? '?' : queue.localQueues.join(', '),
    number(queue.pending), number(queue.admitted),
  ], { key: queue.name })));
  $('no-queues').hidden = status.queues.length > 0;
}

function card(id, kind, what, ...lines) {
  const parts = lines.map(line => typeof line === 'string' ? (line && make('p', 'muted', line)) : line);
  put($(id), make('div', 'kind', kind), make('div', 'what', what), ...parts);
}

function states(pairs) {
  const element = make('div', 'states');
  element.append(...pairs.filter(([, n]) => n).map(([name, n]) => state(name, n + ' ' + name)));
  return element;
}

function showCards(status) {
  const says = [status.reason, status.message].filter(Boolean).join(': ') || 'no controller has answered this check yet';
  const active = make('div', 'states');
  active.append(state(status.active, 'Active=' + status.active));
  card('card-check', 'AdmissionCheck', status.name, active,
    says + (status.stale ? '; it has changed since and has not been answered again' : ''));
  const [space, name] = status.placement.includes('/') ? status.placement.split('/') : ['', status.placement];
  card('card-placement', 'Placement' + (space && ' in namespace ' + space), name || 'none', status.placementSays,
    status.config === '' ? 'no MultiKueueConfig' : 'MultiKueueConfig ' + number(status.config) +
    (status.users.length ? ', used by ' + status.users.join(', ') : ''));
  const counted = {};
  status.clusters.forEach(row => { counted[row.state] = (counted[row.state] || 0) + 1; });
  const free = status.clusters.length ? '' : 'no cluster is selected or listed';
  card('card-clusters', 'Clusters', detail.slots.used + ' of ' + plural(detail.slots.most, 'slot') + ' used',
    states(Object.entries(counted)), free);
  const jobs = { running: 0, waiting: 0, pending: 0 };
  let gpus = 0;
  status.jobs.forEach(job => { jobs[job.state] += 1; gpus += job.state === 'running' ? job.gpus : 0; });
  card('card-workloads', 'Workloads', jobs.running + ' running' + (gpus ? ' on ' + plural(gpus, 'GPU') : ''),
    states([['waiting', jobs.waiting], ['pending', jobs.pending]]), changes(status.listWrites));
}

function changes(writes) {
  if (!writes || !writes.lastHour) return '';
  return 'list changed at least ' + plural(writes.lastHour, 'time') + ' in the last hour';
}

function credential({ kind, known }) {
  if (!kind) return known ? make('span', 'wrong', 'none') : '?';
  return kind + (known ? '' : ' ?');
}

function expires(row) {
  const end = row.credential.expires;
  if (!end) return '-';
  const text = left(end);
  return text === 'expired' ? make('span', 'wrong', text) : text;
}

function score(row, most) {
  const text = number(row.score, '-');
  if (row.score === null || most <= 0) return text;
  const bar = make('span', 'bar');
  bar.style.width = Math.max(0, Math.round(48 * row.score / most)) + 'px';
  return [text, bar];
}

function showClusters(rows) {
  const shown = showAll ? rows : rows.filter((row, place) => place < ROWS_SHOWN || row.rank === null);
  const most = Math.max(0, ...rows.map(row => row.score || 0));
  table('clusters', [['Rank', 'number'], ['Cluster', 'wide'], ['State', 'short'], ['Score', 'number'], ['Credential', 'short'],
    ['Expires', 'short'], ['Connected', 'short'], ['Running', 'number'], ['Waiting', 'number']],
  shown.map(row => {
    const name = make(file ? 'b' : 'button', file ? '' : 'link', row.name);
    if (!file) name.type = 'button';
    if (!file) name.setAttribute('aria-haspopup', 'dialog');
    const why = row.why || row.credential.problem || row.connectedWhy;
    return Object.assign([
      number(row.rank, '-'), why ? [name, make('div', 'why', why)] : name, state(row.state), score(row, most), credential(row.credential), expires(row),
      row.connected ? state(row.connected) : '-', number(row.running), number(row.waiting),
    ], { key: row.name });
  }));
  const more = rows.length - shown.length;
  $('more-clusters').hidden = more <= 0;
  $('more-clusters').textContent = 'Show ' + plural(more, 'more cluster');
}
$('more-clusters').addEventListener('click', () => { showAll = true; showCheck(); });
$('clusters').addEventListener('click', event => {
  const row = event.target.closest('tbody tr');
  if (row && !String(getSelection())) explain(row.dataset.key, row.querySelector('button'));
});
$('card-check').addEventListener('click', () => explain('', $('card-check')));
$('card-placement').addEventListener('click', () => explain('', $('card-placement')));

function showWorkloads(status) {
  put($('held'), ...status.held.map(held => make('li', '', plural(held.workloads, 'Workload') + ' held by the gate' +
    (held.since ? ' since ' + clock(held.since) + ' UTC' : '') + ', because ' + held.clusters.join(', ') +
    (held.clusters.length === 1 ? ' leaves' : ' leave') + ' (' + held.why + ')')));
  const order = { running: 0, waiting: 1, pending: 2 };
  const jobs = [...status.jobs].sort((a, b) => order[a.state] - order[b.state] || a.name.localeCompare(b.name));
  table('workloads', [['Workload', 'wide'], ['State', 'short'], ['Cluster'], ['LocalQueue'], ['GPUs', 'number']],
    jobs.slice(0, ROWS_SHOWN).map(job => {
      const key = job.namespace + '/' + job.name;
      const name = file ? key : button(key);
      return Object.assign([
        job.why ? [name, make('div', 'why', job.why)] : name,
        state(job.state),
        job.cluster || (job.nominated.length ? 'waits on ' + job.nominated.join(', ') : '-'),
        job.queue, String(job.gpus),
      ], { key });
    }));
  $('no-workloads').hidden = jobs.length > 0 && jobs.length <= ROWS_SHOWN;
  $('no-workloads').textContent = jobs.length ? 'and ' + (jobs.length - ROWS_SHOWN) + ' more' : 'There are none.';
}
