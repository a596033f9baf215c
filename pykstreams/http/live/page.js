// Asks for the facts every two seconds, makes rates of two answers, and shows them. All text goes through textContent.

const INTERVAL_MS = 2000;
const LEAST_SCALE = 0.7;  // of the drawing at first: its texts are 11 units high
const SVG = 'http://www.w3.org/2000/svg';
const byId = id => document.getElementById(id);

let before = null;      // the instances of the last answer, by name
let chosen = null;      // the node whose facts are shown
let view = null, whole = null;

// ---- asking

async function ask(path) {
  const token = sessionStorage.getItem('token');
  const answer = await fetch(path, { headers: token ? { authorization: `Bearer ${token}` } : {} });
  if (answer.status === 401) byId('token').hidden = false;
  if (answer.ok) byId('token').hidden = true;
  return answer;
}

async function asked(path) {
  const answer = await ask(path);
  if (!answer.ok) throw new Error(await problemOf(answer));
  return answer;
}

async function problemOf(answer) {
  try {
    return (await answer.json()).detail;
  } catch {
    return `the server answered ${answer.status}`;
  }
}

function tell(problem) {
  byId('problem').textContent = problem;
  byId('problem').hidden = !problem;
}

// ---- rates

function perSecond(now, then, count) {
  const seconds = then ? (now.now_ms - then.now_ms) / 1000 : 0;
  return seconds > 0 ? Math.max(0, count(now) - count(then)) / seconds : null;
}

function rates(instances) {
  const nodes = new Map(), tasks = new Map();
  for (const now of instances) {
    if (now.error) continue;
    const then = before && before.get(now.instance);
    for (const [name, counts] of Object.entries(now.nodes)) {
      const sum = nodes.get(name) || { rate: null, dropped: 0, late: 0, failed: 0 };
      const rate = perSecond(now, then, facts => moved(facts.nodes[name]));
      if (rate !== null && ('consumed' in counts || 'produced' in counts || 'emitted' in counts))
        sum.rate = (sum.rate || 0) + rate;
      for (const kind of ['dropped', 'late', 'failed']) sum[kind] += counts[kind] || 0;
      nodes.set(name, sum);
    }
    for (const task of now.tasks) {
      const same = facts => facts.tasks.find(one => one.id === task.id);
      const old = then && same(then);
      tasks.set(task.id, old ? perSecond(now, then, facts => (same(facts) || task).processed) : null);
    }
  }
  return { nodes, tasks };
}

function moved(counts) {
  return counts ? (counts.consumed || 0) + (counts.produced || 0) + (counts.emitted || 0) : 0;
}

function short(number) {
  if (number === null || number === undefined) return '-';
  if (number < 10 && !Number.isInteger(number)) return number.toFixed(1);
  if (number < 10000) return String(Math.round(number));
  for (const [size, unit] of [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
    if (number >= size) return `${(number / size).toPrecision(3)}${unit}`;
}

// ---- the drawing

async function draw() {
  const text = await (await asked('live/topology.svg')).text();
  // the policy lets no style stand in the page, so that of the picture becomes a sheet, for the picture alone
  const sheet = new CSSStyleSheet();
  const plain = text.replace(/<style>([^<]*)<\/style>/, (_, style) => { sheet.replaceSync(`.drawing { ${style} }`); return ''; });
  document.adoptedStyleSheets = [sheet];
  const picture = document.importNode(new DOMParser().parseFromString(plain, 'image/svg+xml').documentElement, true);
  byId('drawing').replaceChildren(picture);
  if (byId('drawing').clientWidth < 600) {  // on a phone every pixel is for the steps
    for (const one of picture.querySelectorAll('.legend, .paper')) one.remove();
    const { x, y, width, height } = picture.getBBox();
    picture.setAttribute('viewBox', [x - 8, y - 8, width + 16, height + 16].join(' '));
  }
  whole = picture.getAttribute('viewBox').split(' ').map(Number);
  view = readable();
  showView();
  for (const item of picture.querySelectorAll('[data-name]')) item.addEventListener('click', () => choose(item));
}

// all of it, or else as much from the top as can be read
function readable() {
  const box = byId('drawing'), width = box.clientWidth / LEAST_SCALE, height = box.clientHeight / LEAST_SCALE;
  if (whole[2] <= width && whole[3] <= height) return [...whole];
  const seen = Math.min(whole[2], width);
  return [whole[0] + (whole[2] - seen) / 2, whole[1], seen, height];
}

function choose(item) {
  for (const one of byId('drawing').querySelectorAll('.chosen')) one.classList.remove('chosen');
  item.classList.add('chosen');
  chosen = { name: item.dataset.name, kind: item.classList[0] };
  showNode();
}

function showView() {
  byId('drawing').firstElementChild.setAttribute('viewBox', view.join(' '));
}

function scale(factor, x = view[0] + view[2] / 2, y = view[1] + view[3] / 2) {
  if (!view) return;
  view = [x + (view[0] - x) * factor, y + (view[1] - y) * factor, view[2] * factor, view[3] * factor];
  showView();
}

function prepareDrawing() {
  const box = byId('drawing');
  const pixel = () => Math.max(view[2] / box.clientWidth, view[3] / box.clientHeight);
  const held = new Map();  // where pointers are: one moves the drawing, two scale it
  const apart = () => { const [[x1, y1], [x2, y2]] = held.values(); return Math.hypot(x1 - x2, y1 - y2); };
  box.addEventListener('wheel', event => {
    if (!view || !event.ctrlKey) return;  // a plain turn of the wheel scrolls the page
    event.preventDefault();
    scale(Math.exp(Math.sign(event.deltaY) * 0.15));
  }, { passive: false });
  box.addEventListener('pointerdown', event => { held.set(event.pointerId, [event.clientX, event.clientY]); });
  box.addEventListener('pointermove', event => {
    const from = held.get(event.pointerId);
    if (!from || !view) return;
    const before = held.size === 2 ? apart() : 0;
    held.set(event.pointerId, [event.clientX, event.clientY]);
    if (held.size === 2) {
      if (before && apart()) scale(before / apart());
      return;
    }
    view[0] -= (event.clientX - from[0]) * pixel();
    view[1] -= (event.clientY - from[1]) * pixel();
    showView();
  });
  for (const end of ['pointerup', 'pointerleave', 'pointercancel']) box.addEventListener(end, event => { held.delete(event.pointerId); });
  box.addEventListener('keydown', event => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (event.key === '+') scale(0.8);
    else if (event.key === '-') scale(1.25);
    else if (step && view) {
      view[0] += step[0] * view[2] / 10;
      view[1] += step[1] * view[3] / 10;
      showView();
    } else return;
    event.preventDefault();
  });
  byId('larger').addEventListener('click', () => scale(0.8));
  byId('smaller').addEventListener('click', () => scale(1.25));
  byId('whole').addEventListener('click', () => { if (whole) { view = [...whole]; showView(); } });
}

function lags(instances) {
  const found = new Map();
  for (const one of instances)
    for (const task of one.tasks || [])
      for (const input of task.inputs)
        if (input.lag !== null) found.set(input.topic, (found.get(input.topic) || 0) + input.lag);
  return found;
}

function badge(item, text, kind) {
  let mark = item.querySelector('.badge');
  if (!text) {
    if (mark) mark.remove();
    return;
  }
  if (!mark) {
    mark = document.createElementNS(SVG, 'g');
    mark.append(document.createElementNS(SVG, 'rect'), document.createElementNS(SVG, 'text'));
    item.append(mark);
  }
  mark.setAttribute('class', `badge ${kind}`);
  const [back, front] = mark.children, shape = item.querySelector('.shape').getBBox();
  if (front.textContent === text) return;
  front.textContent = text;
  const width = text.length * 6.4 + 12, middle = shape.x + shape.width / 2, top = shape.y + shape.height - 5;
  for (const [name, value] of Object.entries({ x: middle - width / 2, y: top, width, height: 15 }))
    back.setAttribute(name, value);
  front.setAttribute('x', middle);
  front.setAttribute('y', top + 11.5);
}

function showRates(application, nodes, behind) {
  const box = byId('drawing');
  for (const item of box.querySelectorAll('.processor[data-name]')) {
    const node = nodes.get(item.dataset.name);
    const texts = [];
    if (node && node.rate !== null) texts.push(`${short(node.rate)}/s`);
    if (node && node.failed) texts.push(`${short(node.failed)} failed`);
    if (node && node.late) texts.push(`${short(node.late)} late`);
    const other = node ? node.dropped - node.late - node.failed : 0;
    if (other > 0) texts.push(`${short(other)} dropped`);
    badge(item, texts.join(', '), node && node.dropped ? 'losing' : '');
  }
  for (const item of box.querySelectorAll('.topic[data-name], .internal[data-name]')) {
    const lag = behind.get(item.dataset.name) ?? behind.get(`${application}-${item.dataset.name}`);
    badge(item, lag === undefined ? '' : `lag ${short(lag)}`, lag > 0 ? 'lagging' : '');
  }
}

// ---- the tables

function rows(id, found) {
  const body = byId(id).querySelector('tbody');
  body.replaceChildren(...found.map(cells => {
    const row = document.createElement('tr');
    for (const cell of cells) {
      const made = document.createElement('td');
      made.textContent = cell.text ?? cell;
      if (cell.kind) made.className = cell.kind;
      row.append(made);
    }
    return row;
  }));
  body.closest('section').hidden = !found.length;
}

function losses(count) {
  return { text: short(count), kind: count ? 'bad' : '' };
}

function showTasks(instances, perTask) {
  const found = instances.flatMap(one => (one.tasks || []).map(task => ({ one, task })));
  found.sort((a, b) => a.task.subtopology - b.task.subtopology || a.task.partition - b.task.partition);
  rows('tasks', found.map(({ one, task }) => [
    task.id,
    `${one.instance}${task.thread ? ` ${threadOf(task.thread)}` : ''}`,
    task.running ? { text: 'running', kind: 'good' }
      : { text: task.remaining ? `restoring, ${short(task.remaining)} to go` : 'starting', kind: 'wait' },
    short(perTask.get(task.id)),
    { text: short(task.lag), kind: task.lag > 0 ? 'wait' : '' },
    losses(task.late), losses(task.dropped), losses(task.failed),
  ]));
}

function threadOf(name) {
  return name.slice(name.lastIndexOf('StreamThread') === -1 ? 0 : name.lastIndexOf('StreamThread'));
}

function showRest(instances) {
  rows('standbys', instances.flatMap(one => (one.standbys || []).map(copy => [
    copy.store, copy.partition, one.instance, { text: short(copy.lag), kind: copy.lag > 0 ? 'wait' : '' },
  ])));
  rows('members', instances.map(one => [
    one.instance || 'this one',
    one.error ? { text: one.error, kind: 'bad' } : { text: one.state, kind: one.ready ? 'good' : 'wait' },
    one.error ? '' : one.threads.map(thread => thread.state).join(', '),
  ]));
  const stores = instances[0].stores, list = byId('store');
  if (stores.map(one => one.name).join() !== [...list.options].map(option => option.value).join()) {
    list.replaceChildren(...stores.map(one => {
      const option = new Option(one.name, one.name);
      option.dataset.kind = one.kind;
      return option;
    }));
    list.closest('section').hidden = !stores.length;
  }
}

function showLog(instances) {
  const lines = instances.flatMap(one => (one.log || []).map(line => ({ ...line, instance: one.instance })));
  lines.sort((a, b) => a.at_ms - b.at_ms);
  const list = byId('log'), atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 30;
  list.replaceChildren(...lines.slice(-300).map(line => {
    const made = document.createElement('li');
    made.className = line.level;
    made.textContent = `${new Date(line.at_ms).toISOString().slice(11, 23)} ${line.level} ${line.text}`;
    made.title = `${line.instance} ${line.thread}`;
    return made;
  }));
  if (atEnd) list.scrollTop = list.scrollHeight;
}

let latest = null;

function showNode() {
  const list = byId('node');
  list.hidden = !chosen || !latest;
  if (list.hidden) return;
  const facts = [['name', chosen.name], ['kind', chosen.kind === 'processor' ? 'step' : chosen.kind]];
  const node = latest.nodes.get(chosen.name);
  if (node) facts.push(['records/s', short(node.rate)], ['late', node.late], ['dropped', node.dropped], ['failed', node.failed]);
  for (const [topic, lag] of latest.behind)
    if (topic === chosen.name || topic === `${latest.application}-${chosen.name}`) facts.push(['lag', lag]);
  list.replaceChildren(...facts.map(([name, value]) => {
    const pair = document.createElement('div'), term = document.createElement('dt'), text = document.createElement('dd');
    term.textContent = name;
    text.textContent = value;
    pair.append(term, text);
    return pair;
  }));
}

// ---- all of it

function show(instances) {
  const own = instances[0], { nodes, tasks } = rates(instances), behind = lags(instances);
  const told = instances.filter(one => !one.error), all = told.flatMap(one => one.tasks);
  byId('application').textContent = document.title = own.application;
  byId('state').textContent = told.every(one => one.ready) ? own.state : told.find(one => !one.ready).state;
  byId('state').className = `pill ${told.some(one => !one.alive) ? 'bad' : told.every(one => one.ready) ? 'good' : ''}`;
  const known = [...tasks.values()].filter(rate => rate !== null);
  byId('rate').textContent = known.length ? short(known.reduce((sum, rate) => sum + rate, 0)) : '-';
  byId('lag').textContent = short(all.reduce((sum, task) => sum + (task.lag || 0), 0));
  byId('dropped').textContent = short(all.reduce((sum, task) => sum + task.dropped, 0));
  byId('instances').textContent = instances.length;
  latest = { application: own.application, nodes, behind };
  showRates(own.application, nodes, behind);
  showTasks(instances, tasks);
  showRest(instances);
  showLog(instances);
  showNode();
  before = new Map(told.map(one => [one.instance, one]));
}

async function turn() {
  try {
    const { instances } = await (await asked('live.json?instances=all')).json();
    if (!whole) await draw();
    show(instances);
    tell('');
  } catch (error) {
    tell(`No facts for now: ${error.message}. Trying again.`);
  }
}

async function lookUp(event) {
  event.preventDefault();
  const store = encodeURIComponent(byId('store').value), key = byId('key').value;
  const kind = byId('store').selectedOptions[0].dataset.kind, asksKey = key ? `key=${encodeURIComponent(key)}` : '';
  const path = { window: 'windows', session: 'sessions' }[kind] || (key ? 'keys' : 'range');
  try {
    const answer = await ask(`stores/${store}/${path}?${path === 'keys' ? asksKey : `${asksKey}&limit=20`}`);
    const body = await answer.json();
    byId('found').textContent = answer.ok ? JSON.stringify(body, null, 2) : body.detail;
  } catch (error) {
    byId('found').textContent = error.message;
  }
}

byId('look-up').addEventListener('submit', lookUp);
byId('token').addEventListener('submit', event => {
  event.preventDefault();
  sessionStorage.setItem('token', byId('token-text').value);
  turn();
});
prepareDrawing();

// one turn after the other: a slow answer must not be followed by two at once
async function forever() {
  await turn();
  setTimeout(forever, document.hidden ? 5 * INTERVAL_MS : INTERVAL_MS);
}
forever();
