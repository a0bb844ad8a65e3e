
// -- the last hour

function showTimeline() {
  if (!history_ || !detail) return;
  const end = now();
  const begin = Math.min(Math.max(Date.parse(history_.begin), end - 3600000), end - 30000);
  const share = time => 100 * Math.min(Math.max((Date.parse(time) - begin) / (end - begin), 0), 1);
  const until = time => isLive() && time === history_.end ? 100 : share(time);
  const used = history_.lanes.filter(lane => lane.spans.length || lane.runs.length);
  const lanes = used.slice(0, LANES_SHOWN);
  const values = lanes.flatMap(lane => lane.scores.map(point => point.value || 0));
  const scale = { low: Math.min(0, ...values), high: Math.max(1, ...values) };
  put($('timeline'), lanes.length ? axis(begin, end) : make('p', 'muted', 'No cluster was listed.'),
    ...lanes.map(lane => laneOf(lane, share, until, scale)),
    ...[...history_.notes, ...(used.length > LANES_SHOWN ? [(used.length - LANES_SHOWN) + ' more clusters, not drawn'] : [])]
      .map(note => make('p', 'muted', note)));
  $('timeline-source').textContent = clock(begin) + ' to ' + clock(end) + ' UTC, by ' + history_.source +
    (!$('timeline').querySelector('.point') ? '' : '; scores before ' + clock(history_.exactFrom) + ' are known only at the dots');
}

function axis(begin, end) {
  const lane = make('div', 'lane');
  const ticks = make('div', 'axis');
  const count = innerWidth < 760 ? 2 : 4;
  for (let n = 0; n <= count; n += 1) {
    const tick = make('span', '', clock(begin + (end - begin) * n / count));
    tick.style.left = 100 * n / count + '%';
    ticks.append(tick);
  }
  lane.setAttribute('aria-hidden', 'true');
  lane.append(make('span'), ticks);
  return lane;
}

// The first of the texts that fits.
function block(class_, texts, from, to, words) {
  const width = ($('timeline').clientWidth - (innerWidth < 760 ? 0 : 122)) * (to - from) / 100;
  const one = make('div', class_, texts.find(text => 6.4 * text.length + 14 <= width) || '');
  one.style.left = from + '%';
  one.style.width = Math.max(to - from, 0) + '%';
  one.title = words;
  return one;
}

function laneOf(lane, share, until, scale) {
  const whole = make('div', 'lane');
  const track = make('div', 'track');
  const says = [];
  const word = (what, one) => what + ' from ' + (one.beginKnown === false ? 'before ' : '') + clock(one.begin) +
    (until(one.end) === 100 ? ' on' : one.endKnown === false ? ' to an unknown time' : ' to ' + clock(one.end));
  const bars = make('div', 'row');
  lane.spans.forEach(span => {
    says.push(word(span.state, span) + (span.why ? ': ' + span.why : ''));
    const begins = span.beginKnown ? '' : ' since before';
    const ends = span.endKnown ? '' : ' until ?';
    const texts = [begins + ends, ends].map(more => LOOK[span.state][1] + ' ' + span.state + more);
    bars.append(block('span ' + LOOK[span.state][0], texts, share(span.begin), until(span.end), says.at(-1)));
  });
  track.append(bars);
  if (lane.scores.some(point => point.value !== null)) {
    track.append(scoresOf(lane.scores, share, scale));
    says.push('score ' + lane.scores.filter(point => point.value !== null)
      .map(point => point.value + ' at ' + clock(point.at)).join(', '));
  }
  lane.runs.slice(0, RUNS_SHOWN).forEach(run => {
    const name = run.name + (run.gpus ? ', ' + plural(run.gpus, 'GPU') : '');
    says.push(word(name + ' ran', run));
    const row = make('div', 'row');
    row.append(block('run', [name, run.name, run.name.split('/')[1]], share(run.begin), until(run.end), says.at(-1)));
    track.append(row);
  });
  if (lane.runs.length > RUNS_SHOWN) track.append(make('p', 'muted', 'and ' + (lane.runs.length - RUNS_SHOWN) + ' Workloads more'));
  track.setAttribute('role', 'img');
  track.setAttribute('aria-label', lane.name + ': ' + says.join('; '));
  whole.append(make('b', '', lane.name), track);
  return whole;
}

function scoresOf(points, share, scale) {
  const found = make('div', 'scores');
  const height = value => 20 - 20 * (value - scale.low) / (scale.high - scale.low);
  const exact = Date.parse(history_.exactFrom);
  let path = '';
  let connected = false;
  let free = -1;
  points.forEach((point, n) => {
    if (point.value === null) { connected = false; return; }
    const x = share(point.at);
    const y = height(point.value).toFixed(1);
    if (history_.exact || Date.parse(point.at) >= exact) {
      const next = points[n + 1] ? share(points[n + 1].at) : 100;
      path += (connected ? 'V' + y : 'M' + (10 * x).toFixed(1) + ' ' + y) + 'H' + (10 * next).toFixed(1);
      connected = true;
    } else {
      const dot = make('span', 'point');
      dot.style.left = x + '%';
      dot.style.top = 12 + Number(y) + 'px';
      found.append(dot);
    }
    if (x >= free) {
      const text = make('span', 'value', String(point.value));
      text.style.left = Math.min(x, 97) + '%';
      text.style.top = Number(y) - 2 + 'px';
      found.append(text);
      free = x + 4;
    }
  });
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 1000 20');
  svg.setAttribute('preserveAspectRatio', 'none');
  const line = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  line.setAttribute('d', path);
  svg.append(line);
  found.prepend(svg);
  return found;
}
setInterval(() => { if (isLive() && !document.hidden) showTimeline(); }, 2000);

// -- why

async function explain(cluster, from) {
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

function connect() {
  if (source) source.close();
  source = new EventSource('events?' + new URLSearchParams({ check: chosen }));
  const on = (name, take) => source.addEventListener(name, event => take(JSON.parse(event.data)));
  on('hub', hub => {
    $('server').textContent = hub.server || 'a dump';
    $('controller').textContent = hub.controller.line;
    $('controller').className = hub.controller.running === false ? 'bad' : '';
    $('banner').textContent = [hub.problem && 'the hub cannot be read, what follows is old: ' + hub.problem, hub.missing].filter(Boolean).join(' ');
    $('banner').hidden = !hub.problem && !hub.missing;
    $('link').dataset.live = hub.live;
    said();
  });
  on('checks', change => {
    if (change.whole) checks.clear();
    change.checks.forEach(one => checks.set(one.name, one));
    change.gone.forEach(name => checks.delete(name));
    said();
    if (!chosen && checks.size) choose([...checks.keys()].sort()[0]);
    else { showChecks(); showCheck(); }
  });
  on('check', one => { detail = one; said(); showCheck(); selectRow(); if (explained) explainAgain(); });
  on('timeline', one => {
    history_ = one;
    clockOffset = Date.parse(one.end) - Date.now();
    showTimeline();
  });
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
  $('link').textContent = live ? 'live, last change ' + clock(Date.now()) + ' UTC' : 'from a file';
}

function choose(name) {
  if (name === chosen && source) return;
  if (explained) { openedBy = null; closeExplanation(); }
  chosen = name;
  detail = history_ = null;
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
connect();
