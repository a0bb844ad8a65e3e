
// -- details, and filters of drawings

const NAMES_SHOWN = 10;
const names = all => all.slice(0, NAMES_SHOWN).join(', ') + (all.length > NAMES_SHOWN ? ' and ' + (all.length - NAMES_SHOWN) + ' more' : '');

// A part whose text is shown while the pointer is on it, or the focus.
function detailed(part, text, more = []) {
  part.tabIndex = 0;
  part.setAttribute('role', 'img');
  part.setAttribute('aria-label', text);
  part.dataset.detail = text;
  part.dataset.find = [text, ...more].join(' ').toLowerCase();
  return part;
}

function showTip(event) {
  const part = event.target.closest('[data-detail]');
  if (!part) return;
  const tip = $('tip');
  const at = part.getBoundingClientRect();
  tip.textContent = part.dataset.detail;
  tip.hidden = false;
  part.setAttribute('aria-describedby', 'tip');
  const below = at.bottom + 8 + tip.offsetHeight < innerHeight;
  tip.style.left = Math.max(Math.min(at.left, innerWidth - tip.offsetWidth - 8), 8) + 'px';
  tip.style.top = Math.max(below ? at.bottom + 8 : at.top - tip.offsetHeight - 8, 8) + 'px';
}

function hideTip() {
  $('tip').hidden = true;
  document.querySelectorAll('[aria-describedby="tip"]').forEach(part => part.removeAttribute('aria-describedby'));
}
for (const name of ['pointerover', 'focusin']) document.addEventListener(name, showTip);
for (const name of ['pointerout', 'focusout']) document.addEventListener(name, hideTip);
document.addEventListener('keydown', event => { if (event.key === 'Escape') hideTip(); });

// Those of the parts that contain all words of a filter.
function hits(id, parts) {
  const words = wordsOf(id + '-filter');
  const matches = parts.filter(part => words.every(word => part.dataset.find.includes(word)));
  $(id + '-count').textContent = words.length ? matches.length + ' of ' + parts.length : '';
  return matches;
}

// -- the graph

// Boxes in columns. A line that crosses a column has a place there, so that none is behind a box.
function showGraph() {
  if (!graph_ || !$('graph-section').open) return;
  const focused = document.activeElement.id;
  const columns = [];
  const add = (at, element) => {
    const station = { at, element, targets: [], top: 0, middle: 0 };
    (columns[at] ||= []).push(station);
    return station;
  };
  const nodes = new Map(graph_.nodes.map(node => [node.id, add(node.column, nodeOf(node))]));
  routes = graph_.edges.map(edge => {
    const end = nodes.get(edge.target);
    const stations = [nodes.get(edge.source)];
    while (stations.at(-1).at + 1 < end.at) stations.push(add(stations.at(-1).at + 1, make('i', 'via')));
    stations.push(end);
    stations.slice(1).forEach((station, n) => stations[n].targets.push(station));
    return { edge, stations };
  });
  const all = Object.values(columns);
  const boxes = all.map(column => {
    const box = make('div', 'column');
    box.append(...column.map(station => station.element));
    return box;
  });
  if (boxes.length) boxes.at(-1).style.marginLeft = 6.2 * Math.max(...graph_.edges.map(edge => edge.label.length), 0) + 'px';
  put($('graph'), vector('svg', { 'aria-hidden': 'true' }), ...boxes);
  all.reverse().forEach(spread);
  const top = Math.min(...all.flat().map(station => station.top));
  all.forEach(column => {
    let bottom = top;
    column.forEach(station => {
      station.element.style.marginTop = station.top - bottom + 'px';
      station.element.parentNode.append(station.element);  // in their order, also for the keyboard
      bottom = station.top + station.element.offsetHeight;
    });
  });
  drawEdges();
  if (nodes.has(focused)) $(focused).focus();
}

// Order a column by the targets, and place each box as near to its own as possible: pool adjacent violators.
function spread(column) {
  const mean = all => all.reduce((sum, value) => sum + value, 0) / all.length;
  column.forEach(station => { station.middle = station.targets.length ? mean(station.targets.map(target => target.middle)) : 0; });
  column.sort((a, b) => a.middle - b.middle);
  const blocks = [];
  const offsets = [0];
  column.forEach(({ middle, element }, n) => {
    blocks.push([middle - element.offsetHeight / 2 - offsets[n]]);
    offsets.push(offsets[n] + element.offsetHeight + 10);
    while (blocks.length > 1 && mean(blocks.at(-2)) > mean(blocks.at(-1))) blocks.at(-2).push(...blocks.pop());
  });
  blocks.flatMap(block => block.map(() => mean(block))).forEach((top, n) => {
    column[n].top = top + offsets[n];
    column[n].middle = column[n].top + column[n].element.offsetHeight / 2;
  });
}

function nodeOf(node) {
  const [look, mark] = LOOK[node.style] || ['', ''];
  const slash = node.name.indexOf('/');
  const box = make('div', 'node ' + node.style + ' ' + look);
  box.id = node.id;
  box.append(make('small', '', node.kind + (slash < 0 ? '' : ' in ' + node.name.slice(0, slash))), make('b', 'name', node.name.slice(slash + 1)));
  if (node.caption) box.append(make('span', '', (mark && mark + ' ') + node.caption));
  return detailed(box, [node.kind + ' ' + node.name, node.caption, node.why].filter(Boolean).join('\n'), node.names);
}

function vector(tag, attributes) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  Object.entries(attributes).forEach(([name, value]) => element.setAttribute(name, value));
  return element;
}

// Draw the lines between the boxes, which have their places, and dim what the filter leaves out.
function drawEdges() {
  if (!graph_ || !$('graph').firstChild) return;
  const origin = $('graph').getBoundingClientRect();
  const kept = connected(hits('graph', [...document.querySelectorAll('.node')]).map(box => box.id));
  document.querySelectorAll('.node').forEach(box => {
    box.classList.toggle('off', !kept.has(box.id));
    box.tabIndex = kept.has(box.id) ? 0 : -1;
  });
  const bold = [...routes].sort((a, b) => a.edge.onWorkloadPath - b.edge.onWorkloadPath);  // on top
  $('graph').firstChild.replaceChildren(...bold.flatMap(({ edge, stations }) => {
    const off = kept.has(edge.source) && kept.has(edge.target) ? '' : ' off';
    const [begin, ...following] = stations.map(({ element }) => {
      const at = element.getBoundingClientRect();
      return { left: at.left - origin.left, right: at.right - origin.left, y: (at.top + at.bottom) / 2 - origin.top };
    });
    let from = begin;
    let path = 'M' + begin.right + ' ' + begin.y;
    following.forEach(to => {
      const end = Math.min(from.right + 30, to.left);
      const middle = (from.right + end) / 2;
      path += 'C' + [middle, from.y, middle, to.y, end, to.y].join(' ') + 'H' + (to === following.at(-1) ? to.left : to.right);
      from = to;
    });
    const kind = edge.onWorkloadPath ? ' taken' : edge.inUse ? '' : ' unused';
    const label = vector('text', { class: 'label' + off, x: from.left - 6, y: from.y - 6 });
    label.textContent = edge.label;
    return [vector('path', { class: 'edge' + kind + off, d: path }), label];
  }));
}

// The boxes, and all that they are connected to in either direction.
function connected(ids) {
  const reach = (from, to) => {
    const reached = new Set(ids);
    reached.forEach(id => graph_.edges.forEach(edge => { if (edge[from] === id) reached.add(edge[to]); }));  // what is added is visited too
    return reached;
  };
  return new Set([...reach('source', 'target'), ...reach('target', 'source')]);
}
$('graph-section').addEventListener('toggle', showGraph);
$('graph-filter').addEventListener('input', drawEdges);
new ResizeObserver(drawEdges).observe($('graph'));

// -- the timeline

function showTimeline() {
  if (!history_ || $('content').hidden) return;
  const end = now();
  const from = Date.parse(history_.begin);
  const begin = isLive() ? Math.min(Math.max(from, end - 3600000), end - 30000) : Math.min(from, end - 1000);
  const share = time => 100 * Math.min(Math.max((Date.parse(time) - begin) / (end - begin), 0), 1);
  const until = time => isLive() && time === history_.end ? 100 : share(time);
  const isUsed = lane => lane.spans.length || lane.runs.length;
  const used = history_.lanes.some(isUsed) ? history_.lanes.filter(isUsed) : history_.lanes;
  const shown = used.slice(0, LANES_SHOWN);
  const values = shown.flatMap(lane => lane.scores.map(point => point.value || 0));
  const scale = { low: Math.min(0, ...values), high: Math.max(1, ...values) };
  const lanes = shown.map(lane => laneOf(lane, share, until, scale));
  const fit = hits('timeline', lanes);
  lanes.forEach(lane => { lane.hidden = !fit.includes(lane); });
  const omitted = (what, all) => all.length ? [what + ', not drawn: ' + names(all.map(lane => lane.name))] : [];
  put($('timeline'), lanes.length ? axis(begin, end) : '', history_.lanes.some(isUsed) ? '' : make('p', 'muted', 'No cluster was listed.'),
    ...lanes, ...[...history_.notes, ...omitted('never listed', history_.lanes.filter(lane => !used.includes(lane))),
      ...omitted('for lack of space', used.slice(LANES_SHOWN))].map(note => make('p', 'muted', note)));
  const day = time => new Date(time).toISOString().slice(0, 10);
  const dots = $('timeline').querySelector('.point');
  $('timeline-source').textContent = (isLive() ? '' : day(begin) + ' ') + clock(begin) + ' to ' +
    (day(begin) === day(end) ? '' : day(end) + ' ') + clock(end) + ' UTC, by ' + history_.source +
    (!dots ? '' : '; scores ' + (history_.exactFrom ? 'before ' + clock(history_.exactFrom) + ' ' : '') + 'are known only at the dots');
}

function axis(begin, end) {
  const lane = make('div', 'lane');
  const ticks = make('div', 'axis');
  const count = innerWidth < 760 ? 2 : 4;
  const letters = end - begin > 31536000000 ? [0, 10] : end - begin > 86400000 ? [5, 16] : [11, 19];
  for (let n = 0; n <= count; n += 1) {
    const tick = make('span', '', new Date(begin + (end - begin) * n / count).toISOString().slice(...letters).replace('T', ' '));
    tick.style.left = 100 * n / count + '%';
    ticks.append(tick);
  }
  lane.setAttribute('aria-hidden', 'true');
  lane.append(make('span'), ticks);
  return lane;
}

const trackWidth = () => $('timeline').clientWidth - (innerWidth < 760 ? 0 : 122);

// The first of the texts that fits.
function block(class_, texts, from, to, words) {
  const width = trackWidth() * (to - from) / 100;
  const element = make('div', class_, texts.find(text => 6.4 * text.length + 14 <= width) || '');
  element.style.left = from + '%';
  element.style.width = Math.max(to - from, 0) + '%';
  if (isLive()) element.title = words;
  return element;
}

function laneOf(lane, share, until, scale) {
  const whole = make('div', 'lane');
  const track = make('div', 'track');
  const says = [lane.name];
  const word = (what, period) => what + ' from ' + (period.beginKnown === false ? 'before ' : '') + clock(period.begin) +
    (until(period.end) === 100 ? ' on' : period.endKnown === false ? ' to an unknown time' : ' to ' + clock(period.end));
  const bars = make('div', 'row');
  lane.spans.forEach(span => {
    says.push(word(span.state, span) + (span.why ? ': ' + span.why : ''));
    const begins = span.beginKnown ? '' : ' since before';
    const ends = span.endKnown ? '' : ' until ?';
    const texts = [begins + ends, ends].map(more => LOOK[span.state][1] + ' ' + span.state + more);
    bars.append(block('span ' + LOOK[span.state][0], texts, share(span.begin), until(span.end), says.at(-1)));
  });
  track.append(bars);
  const scores = lane.scores.filter(point => point.value !== null);
  if (scores.length) {
    track.append(scoresOf(lane, share, scale));
    says.push('score: ' + names(scores.map(point => point.value + ' at ' + clock(point.at))));
  }
  lane.runs.forEach((run, n) => {
    const name = run.name + (run.gpus ? ', ' + plural(run.gpus, 'GPU') : '');
    says.push(word(name + ' ran', run));
    if (n >= RUNS_SHOWN) return;
    const row = make('div', 'row');
    row.append(block('run', [name, run.name, run.name.split('/')[1]], share(run.begin), until(run.end), says.at(-1)));
    track.append(row);
  });
  if (lane.runs.length > RUNS_SHOWN) track.append(make('p', 'muted', 'and ' + plural(lane.runs.length - RUNS_SHOWN, 'Workload') + ' more'));
  detailed(whole, says.join('\n'));
  if (isLive()) ['tabindex', 'data-detail'].forEach(name => whole.removeAttribute(name));  // it is drawn anew every two seconds
  whole.append(make('b', '', lane.name), track);
  return whole;
}

function scoresOf(lane, share, scale) {
  const box = make('div', 'scores');
  const height = value => 20 - 20 * (value - scale.low) / (scale.high - scale.low);
  const exact = history_.exact ? -Infinity : Date.parse(history_.exactFrom);
  let path = '';
  let connects = false;
  let free = -1;
  lane.scores.forEach((point, n) => {
    if (point.value === null) { connects = false; return; }
    const x = share(point.at);
    const y = height(point.value).toFixed(1);
    if (Date.parse(point.at) >= exact) {
      const next = lane.scores[n + 1] ? share(lane.scores[n + 1].at) : 100;
      path += (connects ? 'V' + y : 'M' + (10 * x).toFixed(1) + ' ' + y) + 'H' + (10 * next).toFixed(1);
      connects = true;
    } else {
      const dot = make('span', 'point');
      dot.style.left = x + '%';
      dot.style.top = 12 + Number(y) + 'px';
      box.append(dot);
    }
    const text = String(point.value);
    const wide = 100 * (7 * text.length + 6) / trackWidth();
    const at = Math.min(x, 100 - wide);
    if (at >= free) {
      const value = make('span', 'value', text);
      value.style.left = at + '%';
      value.style.top = Number(y) - 2 + 'px';
      box.append(value);
      free = at + wide;
    }
  });
  const svg = vector('svg', { viewBox: '0 0 1000 20', preserveAspectRatio: 'none' });
  svg.append(vector('path', { d: path }));
  box.prepend(svg);
  return box;
}
$('timeline-filter').addEventListener('input', showTimeline);
addEventListener('resize', showTimeline);
setInterval(() => { if (isLive() && !document.hidden) showTimeline(); }, 2000);

// -- GPUs

const amount = value => String(Math.round(value * 1000) / 1000);

function showCapacity() {
  const rows = detail === null || capacity_ === null ? [] : capacity_.clusters.filter(bar => detail.status.clusters.some(row => row.name === bar.name));
  $('capacity-section').hidden = rows.length === 0;
  $('capacity-source').textContent = 'as the controller read them last' + (capacity_ && capacity_.day ? '; the line: used in the last day' : '') +
    (capacity_ && capacity_.dayProblem ? '; the last day is unknown: ' + capacity_.dayProblem : '');
  put($('capacity'), ...rows.map(capacityLane));
}

function capacityLane(bar) {
  const whole = make('div', 'lane');
  const track = make('div', 'track');
  const ours = detail.status.clusters.find(row => row.name === bar.name);
  const jobs = detail.status.jobs.filter(job => job.state === 'running' && job.gpus > 0 && [ours.name, ours.clusterObject].includes(job.cluster));
  const says = bar.problem ? [bar.name + ' is not known: ' + bar.problem] : [
    bar.name + ': ' + amount(bar.used) + ' of ' + amount(bar.nominal) + ' used, ' + (bar.waiting === null ? '' : amount(bar.waiting) + ' waited for, ') + amount(bar.free) + ' free',
    ...jobs.map(job => job.namespace + '/' + job.name + ': ' + plural(job.gpus, 'GPU')),
  ];
  if (!bar.problem) track.append(capacityRow(bar, jobs));
  if (bar.day.length && capacity_.day) track.append(dayOf(bar));
  track.append(make('p', 'muted', bar.problem ? 'not known: ' + bar.problem : says[0].slice(bar.name.length + 2) + (bar.readAt ? ', read at ' + bar.readAt.slice(0, 19).replace('T', ' ') + ' UTC' : '')));
  whole.append(make('b', '', bar.name), track);
  return detailed(whole, says.join('\n'));
}

function capacityRow(bar, jobs) {
  const row = make('div', 'row quota');
  const most = Math.max(bar.nominal, bar.used + (bar.waiting || 0), 1);
  let at = 0;
  const add = (class_, gpus, ...texts) => {
    if (gpus <= 0) return;
    row.append(block(class_, texts, 100 * at / most, 100 * Math.min(at + gpus, most) / most, texts[0]));
    at += gpus;
  };
  let left = bar.used;
  jobs.slice(0, LANES_SHOWN).forEach(job => {
    const gpus = Math.min(job.gpus, left);
    add('run', gpus, job.namespace + '/' + job.name + ', ' + plural(job.gpus, 'GPU'), job.name);
    left -= gpus;
  });
  add('run others', left, jobs.length ? 'others' : 'used');
  add('span drain', bar.waiting || 0, 'waited for', amount(bar.waiting || 0));
  return row;
}

function dayOf(bar) {
  const [begin, end] = capacity_.day.map(time => Date.parse(time));
  const most = Math.max(bar.nominal, 1, ...bar.day.map(point => point.value || 0));
  let path = '';
  let connects = false;
  bar.day.forEach((point, n) => {
    if (point.value === null) { connects = false; return; }
    const x = time => Math.max(0, 1000 * (Date.parse(time) - begin) / (end - begin)).toFixed(1);
    const y = (20 - 20 * point.value / most).toFixed(1);
    path += (connects ? 'V' + y : 'M' + x(point.at) + ' ' + y) + 'H' + (bar.day[n + 1] ? x(bar.day[n + 1].at) : 1000);
    connects = true;
  });
  const box = make('div', 'scores');
  const svg = vector('svg', { viewBox: '0 0 1000 20', preserveAspectRatio: 'none' });
  svg.append(vector('path', { d: path }));
  box.append(svg);
  return box;
}
