'use strict';

/* Small builders: h makes an HTML element, s an SVG one. Text is always set as text, never read as markup. */
const fill = (e, attrs, kids) => {
  for (const [k, v] of Object.entries(attrs || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v);
  }
  for (const kid of kids.flat(9)) if (kid !== null && kid !== undefined) e.append(kid);
  return e;
};
const h = (name, attrs, ...kids) => fill(document.createElement(name), attrs, kids);
const s = (name, attrs, ...kids) => fill(document.createElementNS('http://www.w3.org/2000/svg', name), attrs, kids);

const megabytes = n => n >= 1e10 ? (n / 1e9).toFixed(1) + ' GB' : n >= 1e6 ? (n / 1e6).toFixed(1) + ' MB' : n >= 1e3 ? (n / 1e3).toFixed(1) + ' KB' : n + ' B';

/* Lines that two texts share, by their longest common subsequence. What stands the same at both ends is left out of the
 * table; where the rest is too long for one, its lines are matched by being unique in both. Returns pairs of indices. */
function common(a, b) {
  const pairs = [];
  let lo = 0, ha = a.length, hb = b.length;
  while (lo < ha && lo < hb && a[lo] === b[lo]) { pairs.push([lo, lo]); lo++; }
  const tail = [];
  while (ha > lo && hb > lo && a[ha - 1] === b[hb - 1]) tail.push([--ha, --hb]);
  const n = ha - lo, m = hb - lo;
  if (n * m > 9e6) pairs.push(...unique(a, b, lo, ha, hb));
  else if (n && m) {
    const w = m + 1, t = new Uint16Array((n + 1) * w);
    for (let i = n - 1; i >= 0; i--)
      for (let j = m - 1; j >= 0; j--)
        t[i * w + j] = a[lo + i] === b[lo + j] ? t[(i + 1) * w + j + 1] + 1 : Math.max(t[(i + 1) * w + j], t[i * w + j + 1]);
    for (let i = 0, j = 0; i < n && j < m;) {
      if (a[lo + i] === b[lo + j]) pairs.push([lo + i++, lo + j++]);
      else if (t[(i + 1) * w + j] >= t[i * w + j + 1]) i++;
      else j++;
    }
  }
  return pairs.concat(tail.reverse());
}

function unique(a, b, lo, ha, hb) {
  const count = (list, from, to) => {
    const seen = new Map();
    for (let i = from; i < to; i++) seen.set(list[i], seen.has(list[i]) ? -1 : i);
    return seen;
  };
  const inA = count(a, lo, ha), inB = count(b, lo, hb), out = [];
  let last = -1;
  for (const [line, i] of inA) {
    const j = inB.get(line);
    if (i >= 0 && j !== undefined && j > last) { out.push([i, j]); last = j; }
  }
  return out;
}

/* A graph's ops as boxes from top to bottom, which is their order. Arcs on the left lead from a value to each later use;
 * a value's next use needs none. link(op) is where a box leads. */
function drawGraph(ops, link) {
  const W = 640, X = 150, line = 17, boxes = [], at = new Map(), arcs = [];
  let y = 10;
  const text = op => (op.results.length ? op.results.join(', ') + ' = ' : '') + op.op + ' ' + op.args.join(', ');
  const place = (op, depth) => {
    const x = X + depth * 14, w = W - X - depth * 14 - 10, top = y;
    const inner = op.op === 'fuse' ? op.body : [];
    const box = { op, x, y: top, w, lines: inner.length ? inner.map(text) : [text(op)], fused: inner.length > 0 };
    for (const a of op.args) if (at.has(a)) arcs.push([at.get(a), top + 12, a]);
    boxes.push(box);
    if (op.op === 'repeat') {
      box.lines = [`repeat ${op.rounds} times ${op.params ? op.params.map((p, i) => p + ' = ' + op.args[i]).join(', ') : ''}`];
      y += 34;
      for (const p of op.params || []) at.set(p, top + 12);
      for (const o of op.body) place(o, depth + 1);
      box.h = y - top;
      y += 10;
    } else {
      box.h = box.lines.length * line + 12 + (box.fused ? 14 : 0);
      y += box.h + 10;
    }
    for (const r of op.results) at.set(r, top + box.h - 8);
  };
  for (const op of ops) place(op, 0);
  const lanes = [];
  const edges = arcs.sort((p, q) => (p[1] - p[0]) - (q[1] - q[0])).filter(([from, to]) => to - from > 40).map(([from, to, name]) => {
    let lane = lanes.findIndex(list => list.every(([f, t]) => to < f || from > t));
    if (lane < 0) lane = lanes.push([]) - 1;
    lanes[lane].push([from, to]);
    const x = X - 12 - Math.min(lane, 10) * 12;
    return s('g', {}, s('title', {}, name), s('path', { class: 'edge', 'marker-end': 'url(#tip)', d: `M${X} ${from} C${x} ${from} ${x} ${from} ${x} ${from + 10} L${x} ${to - 10} C${x} ${to} ${x} ${to} ${X - 2} ${to}` }));
  });
  const short = t => t.length > 66 ? t.slice(0, 65) + '…' : t;
  return s('svg', { width: W, height: y + 10, viewBox: `0 0 ${W} ${y + 10}`, role: 'img', 'aria-label': 'ops in order, and where their values are used' },
    s('defs', {}, s('marker', { id: 'tip', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto' }, s('path', { d: 'M0 0 L8 4 L0 8 z', fill: 'currentColor' }))),
    edges,
    boxes.map(b => s('a', { href: link(b.op), tabindex: 0 },
      s('title', {}, b.lines.join('\n') + (b.op.type ? '\n: ' + b.op.type : '')),
      s('rect', { class: 'box' + (b.fused ? ' fuse' : ''), x: b.x, y: b.y, width: b.w, height: b.h, rx: 5, 'fill-opacity': b.op.op === 'repeat' ? 0.25 : 1 }),
      b.lines.map((t, i) => s('text', { x: b.x + 8, y: b.y + 16 + i * line }, short(t))),
      b.fused ? s('text', { class: 'dim', x: b.x + 8, y: b.y + b.h - 6 }, 'one region → ' + b.op.results.join(', ')) : null)));
}

/* Measured times a row of one shape's implementations, with their intervals, over rows; both axes logarithmic. */
function drawCurves(m) {
  const W = 410, H = 230, L = 48, R = 10, T = 10, B = 28, colors = ['#0072b2', '#d55e00', '#009e73', '#cc79a7'];
  const pts = [];
  for (const impl of m.impls) m.rows.forEach((r, i) => { if (impl.us[i] > 0) pts.push(impl.us[i] / r); });
  const lo = Math.min(...pts) / 1.2, hi = Math.max(...pts) * 1.2, r0 = m.rows[0], r1 = m.rows[m.rows.length - 1];
  const x = r => L + (W - L - R) * Math.log(r / r0) / Math.log(r1 / r0 || 2), y = us => T + (H - T - B) * Math.log(hi / us) / Math.log(hi / lo);
  const out = [];
  for (const r of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]) if (r >= r0 && r <= r1)
    out.push(s('line', { class: 'axis', x1: x(r), x2: x(r), y1: T, y2: H - B }), s('text', { class: 'dim', x: x(r), y: H - 12, 'text-anchor': 'middle' }, r));
  for (let p = Math.ceil(Math.log2(lo)); p <= Math.log2(hi); p++)
    out.push(s('line', { class: 'axis', x1: L, x2: W - R, y1: y(2 ** p), y2: y(2 ** p) }), s('text', { class: 'dim', x: L - 4, y: y(2 ** p) + 4, 'text-anchor': 'end' }, 2 ** p));
  for (const [name, r] of [['M1', m.m1], ['M2', m.m2]]) if (r > 1)
    out.push(s('line', { x1: x(r), x2: x(r), y1: T, y2: H - B, stroke: 'currentColor', 'stroke-dasharray': '4 3' }), s('text', { x: x(r) + 3, y: T + 11 }, `${name} ${r}`));
  out.push(s('text', { class: 'dim', x: L + 4, y: H - B - 5 }, 'µs a row'), s('text', { class: 'dim', x: W - R, y: H - 1, 'text-anchor': 'end' }, 'rows'));
  m.impls.forEach((impl, k) => {
    const seen = m.rows.map((r, i) => [r, impl.us[i] / r, impl.lo[i] / r, impl.hi[i] / r]).filter(p => p[1] > 0), c = colors[k % 4];
    if (!seen.length) return;
    const band = seen.map(p => `${x(p[0])},${y(p[3])}`).concat(seen.slice().reverse().map(p => `${x(p[0])},${y(p[2])}`));
    out.push(s('polygon', { points: band.join(' '), fill: c, opacity: 0.18 }), s('polyline', { points: seen.map(p => `${x(p[0])},${y(p[1])}`).join(' '), fill: 'none', stroke: c, 'stroke-width': 1.6 }),
      s('text', { x: W - R - 4, y: T + 14 + k * 14, 'text-anchor': 'end', style: `fill:${c}` }, impl.impl));
  });
  return s('svg', { width: W, height: H, viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': 'microseconds a row over rows' }, out);
}

/* What each buffer holds from region to region. */
function drawMemory(slots, regions) {
  const L = 170, row = 24, end = Math.max(regions.length, 1), W = Math.max(620, L + end * 26), out = [];
  const x = i => L + (W - L - 10) * i / end;
  regions.forEach((r, i) => out.push(s('line', { class: 'axis', x1: x(i), x2: x(i), y1: 0, y2: slots.length * row + 8 }, s('title', {}, r.name))));
  slots.forEach((slot, k) => {
    out.push(s('text', { class: 'dim', x: 4, y: k * row + 18 }, `slot ${slot.slot}: ${slot.cols} × ${slot.rows}`));
    for (const life of slot.lives)
      out.push(s('g', {}, s('title', {}, `${life.value}: from ${regions[life.from] ? regions[life.from].name : life.from} to ${regions[life.to] ? regions[life.to].name : life.to}`),
        s('rect', { class: 'box fuse', x: x(life.from) + 1, y: k * row + 4, width: Math.max(6, x(Math.min(life.to + 1, end)) - x(life.from) - 2), height: row - 6, rx: 3 }),
        s('text', { x: x(life.from) + 5, y: k * row + 18 }, life.value)));
  });
  return s('svg', { width: W, height: slots.length * row + 12, viewBox: `0 0 ${W} ${slots.length * row + 12}`, role: 'img', 'aria-label': 'buffers over the regions of a step' }, out);
}
