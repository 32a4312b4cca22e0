const data = JSON.parse(document.getElementById('data').textContent);
const main = document.getElementById('main'), search = document.getElementById('search'), found = document.getElementById('found');

/* The views by name, in the order of the tabs. The address is #view/what; each view gets the part behind the slash. */
const views = {
  graph: { title: 'Graph', show: showGraph }, ir: { title: 'Passes', show: showIR }, weights: { title: 'Weights', show: showWeights },
  memory: { title: 'Memory', show: showMemory }, kernels: { title: 'Kernels', show: showKernels }, source: { title: 'C source', show: showSource },
  ...(data.ranks ? { partition: { title: 'Partition', show: showPartition } } : {}),
  profile: { title: 'Profile', show: showProfile }, spec: { title: 'Model spec', show: showSpec },
};
const earlier = { choices: 'kernels', time: 'profile' }; // addresses of earlier versions
const go = (view, what) => { location.hash = view + (what === undefined ? '' : '/' + encodeURIComponent(what)); show(); };
const ref = (view, what) => '#' + view + '/' + encodeURIComponent(what);

function showIR(what) {
  const [name, line] = (what || data.stages[data.stages.length - 1].name).split(':');
  const at = Math.max(0, data.stages.findIndex(st => st.name === name)), stage = data.stages[at], before = data.stages[at - 1];
  const equal = i => i > 0 && data.stages[i].ir === data.stages[i - 1].ir;
  const bar = h('div', { class: 'pills', role: 'group', 'aria-label': 'Passes' }, data.stages.map((st, i) =>
    h('button', { 'aria-pressed': i === at, class: equal(i) ? 'same' : '', title: equal(i) ? 'No change' : '', onclick: () => go('ir', st.name) }, (i ? i + '. ' : '') + st.name)));
  main.append(bar, h('p', {}, stage.doc, equal(at) ? ' This pass changes nothing in this model.' : ''));
  if (before) main.append(h('div', { class: 'diffhead' }, h('span', {}, 'Before'), h('span', {}, 'After')));
  const b = stage.ir.split('\n'), a = before ? before.ir.split('\n') : b;
  const left = h('div', { class: 'mono' }), right = h('div', { class: 'mono' });
  const row = (side, n, text, kind) => side.append(h('div', { class: 'row ' + kind, id: side === right && n ? 'line-' + n : undefined }, h('span', { class: 'n' }, n || ''), text === undefined ? '' : text));
  let i = 0, j = 0;
  for (const [p, q] of common(a, b).concat([[a.length, b.length]])) {
    while (i < p || j < q) {
      const del = i < p, add = j < q;
      row(left, del && i + 1, del ? a[i] : undefined, del ? 'del' : 'gap');
      row(right, add && j + 1, add ? b[j] : undefined, add ? 'add' : 'gap');
      if (del) i++;
      if (add) j++;
    }
    if (p < a.length) { row(left, i + 1, a[i], ''); row(right, j + 1, b[j], ''); i++; j++; }
  }
  if (before) main.append(h('div', { class: 'diff' }, left, right));
  else { right.style.borderLeft = 'none'; main.append(h('div', { class: 'diff', style: 'grid-template-columns:1fr' }, right)); }
  for (const [x, y] of [[left, right], [right, left]]) x.addEventListener('scroll', () => { y.scrollLeft = x.scrollLeft; });
  const target = line && document.getElementById('line-' + line);
  if (target) { target.scrollIntoView({ block: 'center' }); target.style.outline = '2px solid var(--accent)'; }
}

function showGraph(what) {
  const at = Math.max(0, data.graphs.findIndex(g => g.name === what)), g = data.graphs[at];
  main.append(facts(), h('div', { class: 'pills', role: 'group', 'aria-label': 'Graphs' }, data.graphs.length > 1 && data.graphs.map((x, i) => h('button', { 'aria-pressed': i === at, onclick: () => go('graph', x.name) }, x.name))),
    h('p', {}, 'Ops after the last pass, in order. A blue box is a fused region: one C function. An arc leads to a later use. Click a box for its C source.'),
    drawGraph(g.ops, op => op.region >= 0 && data.regions && data.regions[op.region] ? ref('source', data.regions[op.region].function) : ref('ir', data.stages[data.stages.length - 1].name + ':' + op.line)));
}

/* facts is the summary above the graph. */
function facts() {
  const bytes = sum(data.weights, w => w.bytes), held = sum(data.states || [], x => x.bytes), of = data.ranks ? ` (rank ${data.rank || 0})` : '';
  const list = [['Weights' + of, bytes && megabytes(bytes)], ['KV cache per token' + of, held && megabytes(held)], ['Regions', (data.regions || []).length], ['Kernels', (data.kernels || []).length],
    ['Instruction set', data.kernels && data.kernels[0] && data.kernels[0].isa], ['Devices', data.devices && data.devices !== '0' && data.devices]];
  return h('dl', { class: 'facts' }, list.filter(([, value]) => value).map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))));
}

/* table makes a table; the heading of a column of numbers begins with #. */
function table(heads, rows) {
  const kind = heads.map(t => t.startsWith('#') ? 'num' : '');
  return h('div', { class: 'scroll' }, h('table', {}, h('thead', {}, h('tr', {}, heads.map((t, i) => h('th', { scope: 'col', class: kind[i] }, t.replace('#', ''))))),
    h('tbody', {}, rows.map(r => h('tr', {}, r.map((c, i) => h('td', { class: kind[i] }, c)))))));
}
/* sizes is the unit for a column of bytes, and their text in it. */
const sizes = total => total >= 1e10 ? { unit: 'MB', text: n => number(n / 1e6, 1) } : { unit: 'KB', text: n => number(n / 1e3, 1) };
const share = (n, of) => [number(100 * n / (of || 1), 1), h('span', { class: 'bar', style: `width:${(120 * n / (of || 1)).toFixed(1)}px` })];

function showWeights() {
  const total = sum(data.weights, w => w.bytes), list = data.weights.slice().sort((a, b) => b.bytes - a.bytes), size = sizes(total);
  main.append(h('p', {}, `Packed weights: ${megabytes(total)}. The transform says how a weight is made from the tensors of the model file. A weight without a size is part of another one.`),
    table(['Weight', '#Count', 'Type', `#Size (${size.unit})`, '#Share (%)', '', 'Transform'], list.map(w => [h('code', {}, '@' + w.name), number(w.count), h('code', {}, w.type),
      ...(w.bytes ? [size.text(w.bytes), ...share(w.bytes, total)] : ['–', '–', '']), h('code', {}, w.transform)])));
  if ((data.states || []).length) main.append(h('h2', {}, 'KV cache'), table(['State', '#Count', '#Size of all per token (bytes)'], data.states.map(x => [h('code', {}, '%' + x.name), number(x.count), number(x.bytes)])));
}

function showMemory() {
  if (!data.slots || !data.slots.length) { main.append(h('p', {}, data.origin || 'No buffers.')); return; }
  const bytes = sum(data.slots, x => x.cols * 4);
  main.append(h('p', {}, `Activation buffers: ${data.slots.length}, ${megabytes(bytes)} per row. A row of the drawing is a buffer, a column is a region of the step. A bar is a value, from the region that computes it to the last region that reads it.`),
    drawMemory(data.slots, data.regions || []));
}

function showKernels(what) {
  const from = (name, rows) => rows ? `${name} from ${rows} rows` : `${name} never`;
  main.append(h('p', {}, data.origin ? data.origin[0].toUpperCase() + data.origin.slice(1) + '.' : ''), h('div', { class: 'cards' }, (data.matmuls || []).map(matmul => h('section', { class: 'card', id: 'matmul-' + matmul.name },
    h('h2', {}, matmul.name), h('div', { class: 'mono' }, `${matmul.dtype}[${matmul.n}, ${matmul.k}]`), h('div', { class: 'mono' }, matmul.chosen.replace(/rows>=(\d+): ([^,]+)/g, '$2 from $1 rows')),
    matmul.measured ? [drawCurves(matmul.measured), h('div', {}, `Fastest: ${from('flat GEMM', matmul.measured.m1)} (M1), ${from('GEMM', matmul.measured.m2)} (M2). These thresholds cost at most ${(100 * matmul.measured.regret).toFixed(1)}% of the fastest time.`)]
      : h('p', {}, 'Estimated by the roofline model: this shape was not measured. iflowc profile measures it.'),
    h('div', {}, 'Source: ', (matmul.symbols || []).map((f, i) => [i ? ', ' : '', h('a', { href: ref('source', f), class: 'mono' }, f)]))))));
  const target = what && document.getElementById('matmul-' + what);
  if (target) { target.scrollIntoView(); target.style.outline = '2px solid var(--accent)'; }
}

function showSource(what) {
  const all = (data.regions || []).map(r => ({ name: r.function, doc: `${r.graph}: ${r.doc}`, text: r.source })).concat((data.kernels || []).map(k => ({ name: k.symbol, doc: `${k.isa}: ${k.doc}`, text: k.source })));
  if (!all.length) { main.append(h('p', {}, data.origin)); return; }
  const item = all.find(x => x.name === what) || all[0];
  main.append(h('div', { class: 'split' }, h('ul', { 'aria-label': 'Functions' }, all.map(x => h('li', {}, h('button', { class: 'mono', title: x.name, 'aria-pressed': x === item, onclick: () => go('source', x.name) }, x.name)))),
    h('div', {}, h('h2', { class: 'mono' }, item.name), h('p', {}, item.doc), h('pre', { tabindex: 0 }, item.text))));
}

function showProfile() {
  const t = data.trace;
  if (!t) {
    main.append(h('p', {}, 'This page was made without a trace. To see the time of each region, write a trace and pass it to iflowc view:'), h('pre', {}, `BIN generate -p "…" --trace trace.json\niflowc view SPEC --trace trace.json`));
    return;
  }
  const rows = t.rows.slice().sort((a, b) => b.busy_us + b.wait_us - a.busy_us - a.wait_us), most = rows[0].busy_us + rows[0].wait_us;
  main.append(h('p', {}, `${t.file}: ${number(t.steps)} steps, mean ${number(t.us / t.steps)} µs per step. Yellow: time in which threads wait for each other.`),
    table(['Region', '#Time per step (µs)', '#Share (%)', '', 'Ops'], rows.map(r => {
      const region = data.regions[r.region], us = r.busy_us + r.wait_us;
      return [h('a', { href: ref('source', region.function), class: 'mono' }, region.graph + '.' + region.name), number(us / t.steps, 1), number(100 * us / t.us, 1),
        h('span', { class: 'bars' }, h('span', { class: 'bar', style: `width:${(180 * r.busy_us / most).toFixed(1)}px` }), h('span', { class: 'bar wait', style: `width:${(180 * r.wait_us / most).toFixed(1)}px` })), h('code', {}, region.doc)];
    })));
}

function showSpec() { main.append(h('p', {}, 'Compiled by iflowc ' + data.compiler + '.'), h('pre', { tabindex: 0 }, data.spec)); }

/* Search marks every match in the view; Enter goes to the next one. */
let marks = [], now = -1;
function mark() {
  for (const m of marks) if (m.isConnected) m.replaceWith(...m.childNodes);
  main.normalize();
  marks = [];
  now = -1;
  const want = search.value.trim().toLowerCase();
  found.textContent = '';
  if (!want) return;
  const texts = [], walk = document.createTreeWalker(main, NodeFilter.SHOW_TEXT, n => n.parentElement.closest('svg,style') ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
  while (walk.nextNode()) if (walk.currentNode.data.toLowerCase().includes(want)) texts.push(walk.currentNode);
  for (let node of texts)
    for (let i; marks.length < 5000 && (i = node.data.toLowerCase().indexOf(want)) >= 0;) {
      const hit = node.splitText(i), rest = hit.splitText(want.length), m = h('mark');
      hit.replaceWith(m);
      m.append(hit);
      marks.push(m);
      node = rest;
    }
  step(1);
}
function step(by) {
  if (!marks.length) { found.textContent = search.value.trim() ? 'no match' : ''; return; }
  if (marks[now]) marks[now].classList.remove('now');
  now = (now + by + marks.length) % marks.length;
  marks[now].classList.add('now');
  marks[now].scrollIntoView({ block: 'center' });
  found.textContent = `${now + 1} of ${marks.length}`;
}

let change = -1;
function nextChange() {
  const rows = [...main.querySelectorAll('.diff .add, .diff .del')];
  if (!rows.length) return;
  change = (change + 1) % rows.length;
  while (change > 0 && rows[change].previousElementSibling === rows[change - 1] && change < rows.length - 1) change++;
  rows[change].scrollIntoView({ block: 'center' });
}

let shown = '', address = null; // the view on the page, and the address that led to it
function show() {
  if (location.hash === address) return;
  address = location.hash;
  const [view, ...rest] = location.hash.slice(1).split('/'), name = views[view] ? view : earlier[view] || 'graph';
  if (name !== shown) window.scrollTo(0, 0);
  shown = name;
  main.replaceChildren();
  marks = [];
  change = -1;
  for (const b of document.querySelectorAll('#tabs button')) b.setAttribute('aria-selected', b.dataset.view === name);
  let what;
  try { what = rest.length ? decodeURIComponent(rest.join('/')) : undefined; } catch { what = undefined; }
  views[name].show(what);
  mark();
}

document.title = data.name + ' · iflowc view';
document.getElementById('name').textContent = data.name;
Object.entries(views).forEach(([name, v], i) => document.getElementById('tabs').append(
  h('button', { role: 'tab', 'data-view': name, 'aria-controls': 'main', title: 'Key ' + (i + 1), onclick: () => go(name) }, v.title)));
search.addEventListener('input', mark);
search.addEventListener('keydown', e => { if (e.key === 'Enter') step(e.shiftKey ? -1 : 1); else if (e.key === 'Escape') { search.value = ''; mark(); main.focus(); } });
document.addEventListener('keydown', e => {
  if (e.target === search || e.ctrlKey || e.metaKey || e.altKey) return;
  const help = document.getElementById('help'), tab = Object.keys(views)[+e.key - 1];
  if (e.key === '/') { e.preventDefault(); search.focus(); }
  else if (e.key === '?') { if (!help.open) help.showModal(); }
  else if (e.key === 'c') nextChange();
  else if (e.key === '[' || e.key === ']') {
    const pressed = [...main.querySelectorAll('[role=group] button')], at = pressed.findIndex(b => b.getAttribute('aria-pressed') === 'true');
    const next = pressed[at + (e.key === ']' ? 1 : -1)];
    if (next) next.click();
  } else if (tab) go(tab);
});
window.addEventListener('hashchange', show);
/* Drawings fit the window: draw them again when its width changes. */
let width = window.innerWidth, later = 0;
window.addEventListener('resize', () => {
  clearTimeout(later);
  later = setTimeout(() => {
    if (window.innerWidth === width || !main.querySelector('svg')) return;
    width = window.innerWidth;
    const y = window.scrollY;
    address = null;
    show();
    window.scrollTo(0, y);
  }, 100);
});
show();
