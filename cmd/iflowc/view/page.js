const data = JSON.parse(document.getElementById('data').textContent);
const main = document.getElementById('main'), search = document.getElementById('search'), found = document.getElementById('found');

/* The views by name; the address is #view/what. Each gets what stands behind the slash. */
const views = {
  ir: { title: 'IR', show: showIR }, graph: { title: 'Graph', show: showGraph }, weights: { title: 'Weights', show: showWeights },
  memory: { title: 'Memory', show: showMemory }, choices: { title: 'Choices', show: showChoices }, source: { title: 'Source', show: showSource },
  ...(data.ranks ? { partition: { title: 'Partition', show: showPartition } } : {}),
  time: { title: 'Time', show: showTime }, spec: { title: 'Model spec', show: showSpec },
};
const go = (view, what) => { location.hash = view + (what === undefined ? '' : '/' + encodeURIComponent(what)); };
const ref = (view, what) => '#' + view + '/' + encodeURIComponent(what);

function showIR(what) {
  const [name, line] = (what || data.stages[data.stages.length - 1].name).split(':');
  const at = Math.max(0, data.stages.findIndex(st => st.name === name)), stage = data.stages[at], before = data.stages[at - 1];
  const bar = h('div', { role: 'group', 'aria-label': 'Passes' }, data.stages.map((st, i) =>
    h('button', { 'aria-pressed': i === at, onclick: () => go('ir', st.name) }, (i ? i + '. ' : '') + st.name + (i && st.ir === data.stages[i - 1].ir ? ' (no change)' : ''))));
  main.append(bar, h('p', {}, stage.doc));
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
  left.addEventListener('scroll', () => { right.scrollLeft = left.scrollLeft; });
  const target = line && document.getElementById('line-' + line);
  if (target) { target.scrollIntoView({ block: 'center' }); target.style.outline = '2px solid var(--accent)'; }
}

function showGraph(what) {
  const at = Math.max(0, data.graphs.findIndex(g => g.name === what)), g = data.graphs[at];
  main.append(h('div', { role: 'group', 'aria-label': 'Graphs' }, data.graphs.map((x, i) => h('button', { 'aria-pressed': i === at, onclick: () => go('graph', x.name) }, x.name))),
    h('p', {}, 'Ops in their order after the last pass; a blue box is a fused region, which one kernel computes. Arcs lead to later uses. A box leads to the C that computes it.'),
    drawGraph(g.ops, op => op.region >= 0 && data.regions[op.region] ? ref('source', data.regions[op.region].function) : ref('ir', data.stages[data.stages.length - 1].name + ':' + op.line)));
}

function table(heads, rows) {
  return h('table', {}, h('thead', {}, h('tr', {}, heads.map(t => h('th', { scope: 'col', class: t.startsWith('#') ? 'num' : '' }, t.replace('#', ''))))),
    h('tbody', {}, rows.map(r => h('tr', {}, r.map((c, i) => h('td', { class: heads[i].startsWith('#') ? 'num' : '' }, c))))));
}

function showWeights() {
  const total = data.weights.reduce((n, w) => n + w.bytes, 0), list = data.weights.slice().sort((a, b) => b.bytes - a.bytes);
  main.append(h('p', {}, `Packed: ${megabytes(total)}. A transform says how a weight is made of the file's tensors.`),
    table(['weight', '#of them', 'type', '#packed', 'share', 'transform'], list.map(w => [h('code', {}, '@' + w.name), w.count, h('code', {}, w.type), w.bytes ? megabytes(w.bytes) : '–',
      h('span', { class: 'bar', style: `width:${(120 * w.bytes / (total || 1)).toFixed(1)}px` }), h('code', {}, w.transform)])),
    h('h2', {}, 'States'), table(['state', '#of them', '#bytes a token, all of them'], (data.states || []).map(x => [h('code', {}, '%' + x.name), x.count, x.bytes])));
}

function showMemory() {
  if (!data.slots) { main.append(h('p', {}, data.origin)); return; }
  const bytes = data.slots.reduce((n, x) => n + x.cols * 4, 0);
  main.append(h('p', {}, `Buffers between regions: ${data.slots.length}, together ${megabytes(bytes)} a row. Time goes from left to right, a line a region; bars are values, from the region that makes them to the last that reads them.`),
    drawMemory(data.slots, data.regions));
}

function showChoices(what) {
  main.append(h('p', {}, data.origin), h('div', { class: 'cards' }, (data.matmuls || []).map(matmul => h('section', { class: 'card', id: 'matmul-' + matmul.name },
    h('h2', { style: 'margin-top:0' }, matmul.name), h('div', { class: 'mono' }, `[${matmul.n}, ${matmul.k}] ${matmul.dtype}, ${matmul.chosen}`),
    matmul.measured ? [drawCurves(matmul.measured), h('div', {}, `flat GEMM wins ${matmul.measured.m1 ? `from ${matmul.measured.m1} rows on` : 'nowhere'} (M1), GEMM ${matmul.measured.m2 ? `from ${matmul.measured.m2}` : 'nowhere'} (M2); the rules cost at most ${(100 * matmul.measured.regret).toFixed(1)} %.`)]
      : h('p', {}, 'A roofline estimate: this shape was not measured. iflowc profile measures it.'),
    h('div', {}, (matmul.symbols || []).map(f => [h('a', { href: ref('source', f) }, f), ' ']))))));
  const target = what && document.getElementById('matmul-' + what);
  if (target) { target.scrollIntoView(); target.style.outline = '2px solid var(--accent)'; }
}

function showSource(what) {
  const all = (data.regions || []).map(r => ({ name: r.function, doc: `${r.graph}: ${r.doc}`, text: r.source })).concat((data.kernels || []).map(k => ({ name: k.symbol, doc: `${k.isa}: ${k.doc}`, text: k.source })));
  if (!all.length) { main.append(h('p', {}, data.origin)); return; }
  const item = all.find(x => x.name === what) || all[0];
  main.append(h('div', { class: 'split' }, h('ul', { 'aria-label': 'Functions' }, all.map(x => h('li', {}, h('button', { class: 'mono', 'aria-pressed': x === item, onclick: () => go('source', x.name) }, x.name)))),
    h('div', { style: 'min-width:0' }, h('h2', { class: 'mono', style: 'margin-top:0' }, item.name), h('p', {}, item.doc), h('pre', {}, item.text))));
}

function showTime() {
  const t = data.trace;
  if (!t) {
    main.append(h('p', {}, 'No trace was given. Make one, then give it to view:'), h('pre', {}, `BIN generate -p "…" --trace trace.json\niflowc view SPEC --trace trace.json`));
    return;
  }
  const rows = t.rows.slice().sort((a, b) => b.busy_us + b.wait_us - a.busy_us - a.wait_us), most = rows[0].busy_us + rows[0].wait_us;
  main.append(h('p', {}, `${t.file}: ${t.steps} steps, ${(t.us / t.steps).toFixed(0)} µs each in the mean. Yellow: threads waiting for one another.`),
    table(['region', '#µs a step', '#share', '', 'ops'], rows.map(r => {
      const region = data.regions[r.region], us = r.busy_us + r.wait_us;
      return [h('a', { href: ref('source', region.function), class: 'mono' }, region.graph + '.' + region.name), (us / t.steps).toFixed(1), (100 * us / t.us).toFixed(1) + ' %',
        [h('span', { class: 'bar', style: `width:${(220 * r.busy_us / most).toFixed(1)}px` }), h('span', { class: 'bar wait', style: `width:${(220 * r.wait_us / most).toFixed(1)}px` })], h('code', {}, region.doc)];
    })));
}

function showSpec() { main.append(h('pre', {}, data.spec), h('p', {}, 'Compiled by iflowc ' + data.compiler + '.')); }

/* Search marks every match in the view; Enter goes from one to the next. */
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
  if (!marks.length) { found.textContent = search.value.trim() ? 'nothing' : ''; return; }
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

function show() {
  const [view, ...rest] = location.hash.slice(1).split('/'), name = views[view] ? view : 'ir';
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
  h('button', { role: 'tab', 'data-view': name, title: 'Key ' + (i + 1), onclick: () => go(name) }, v.title)));
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
show();
