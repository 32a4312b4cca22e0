'use strict';

/* Small builders: h makes an HTML element, s an SVG one. Text is always set as text, never read as markup. */
const fill = (e, attrs, kids) => {
  for (const [k, v] of Object.entries(attrs || {})) {
    if (v === undefined || v === null || v === false) continue;
    if (k.startsWith('on')) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v);
  }
  for (const kid of kids.flat(9)) if (kid !== null && kid !== undefined && kid !== false) e.append(kid);
  return e;
};
const h = (name, attrs, ...kids) => fill(document.createElement(name), attrs, kids);
const s = (name, attrs, ...kids) => fill(document.createElementNS('http://www.w3.org/2000/svg', name), attrs, kids);

const megabytes = n => n >= 1e10 ? (n / 1e9).toFixed(1) + ' GB' : n >= 1e6 ? (n / 1e6).toFixed(1) + ' MB' : n >= 1e3 ? (n / 1e3).toFixed(1) + ' KB' : n + ' B';
const number = (n, digits = 0) => n.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });

/* Text in drawings: labels are measured, and a label longer than its place ends in an ellipsis. Its tooltip has all of it. */
const pen = document.createElement('canvas').getContext('2d');
pen.font = '12px ui-monospace, monospace'; // as svg text in style.css
const widthOf = text => pen.measureText(text).width;
function fit(text, width) {
  if (widthOf(text) <= width) return text;
  let lo = 0, hi = text.length;
  while (lo < hi) {
    const mid = (lo + hi + 1) >> 1;
    if (widthOf(text.slice(0, mid) + '…') <= width) lo = mid;
    else hi = mid - 1;
  }
  return lo ? text.slice(0, lo) + '…' : '';
}
/* The width for a drawing in the window. */
const room = (least, most) => Math.max(least, Math.min(most, main.clientWidth - 30));

/* common returns the lines that two texts share as pairs of indices, by their longest common subsequence. The table leaves
 * out equal lines at both ends. If the rest is too long for a table, only lines that are unique in both texts match. */
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

/* drawGraph draws a graph's ops as boxes from top to bottom, in their order. Arcs on the left lead from a value to later uses
 * that are not in the next box. link(op) is the address that a box leads to. */
function drawGraph(ops, link) {
  const line = 17, boxes = [], at = new Map(), arcs = [];
  let y = 6;
  const use = (op, box) => op.args.forEach(a => { if (at.has(a)) arcs.push({ from: at.get(a), to: box, name: a }); });
  const place = (op, depth) => {
    const inner = op.op === 'fuse' ? op.body : [], box = { op, depth, y, rows: inner.length ? [regionRow(op), ...inner.map(opRow)] : [op.op === 'repeat' ? repeatRow(op) : opRow(op)], kind: inner.length ? 'fuse' : op.op === 'repeat' ? 'repeat' : '' };
    use(op, box);
    boxes.push(box);
    box.h = box.rows.length * line + 12;
    if (op.op === 'repeat') {
      y += box.h + 4;
      for (const p of op.params || []) at.set(p, box);
      for (const o of op.body) place(o, depth + 1);
      box.inside = box.h;
      box.h = y - box.y;
    } else y += box.h;
    y += 10;
    for (const r of op.results) at.set(r, box);
  };
  for (const op of ops) place(op, 0);
  const lanes = lanesOf(arcs.map(a => ({ ...a, top: endOf(a.from, a.to), bottom: a.to.y + 14 })).filter(a => a.bottom - a.top > 44));
  const X = 14 + 10 * Math.min(lanes.length, 12), W = room(560, 1240), left = b => X + b.depth * 14;
  const edges = lanes.flatMap((lane, k) => lane.map(a => arc(left(a.from), a.top, left(a.to), a.bottom, X - 12 - 10 * Math.min(k, 11), a.name)));
  return h('div', { class: 'scroll' }, s('svg', { class: 'graph', width: W, height: y, viewBox: `0 0 ${W} ${y}`, role: 'group', 'aria-label': 'Ops in order, with arcs from values to later uses' },
    s('defs', {}, s('marker', { id: 'tip', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto' }, s('path', { d: 'M0 0 L8 4 L0 8 z' }))),
    boxes.map(b => drawBox(b, left(b), W - left(b) - 2 - b.depth * 8, line, link)), edges));
}

/* What a box says: a row has parts on the left, each a text and its class, and a type on the right. */
const values = list => list.flatMap((v, i) => [[i ? ', ' : '', ''], [v, v[0] === '@' ? 'weight' : '']]);
const opRow = op => ({ parts: [...values(op.results), [op.results.length ? ' = ' : '', ''], [op.op, 'op'], [' ', ''], ...values(op.args)], right: op.type || '' });
const repeatRow = op => ({ parts: [['repeat', 'op'], [op.rounds === 1 ? ' once' : ` ${op.rounds} times`, ''], ...(op.params || []).flatMap((p, i) => [[i ? ', ' : '  ', ''], [`${p} = ${op.args[i]}`, '']])], right: '→ ' + op.results.join(', ') });
function regionRow(op) {
  const region = (data.regions || [])[op.region];
  return { parts: [['fused region ' + (region ? region.function : ''), 'dim']], right: '→ ' + op.results.join(', ') };
}
const endOf = (from, to) => from.op.op === 'repeat' && to.depth > from.depth ? from.y + 14 : from.y + from.h - 10;

/* lanesOf puts arcs side by side, so that those of one lane do not touch; short ones are nearest to the boxes. */
function lanesOf(arcs) {
  const lanes = [];
  for (const a of arcs.sort((p, q) => (p.bottom - p.top) - (q.bottom - q.top))) {
    const free = lanes.find(lane => lane.every(b => a.bottom < b.top || a.top > b.bottom));
    if (free) free.push(a);
    else lanes.push([a]);
  }
  return lanes;
}
function arc(x0, y0, x1, y1, x, name) {
  const d = `M${x0} ${y0} H${x + 6} Q${x} ${y0} ${x} ${y0 + 6} V${y1 - 6} Q${x} ${y1} ${x + 6} ${y1} H${x1 - 1}`;
  return s('g', { class: 'arc' }, s('title', {}, name), s('path', { class: 'hit', d }), s('path', { class: 'edge', 'marker-end': 'url(#tip)', d }));
}

function drawBox(b, x, w, line, link) {
  const full = b.rows.map(r => r.parts.map(p => p[0]).join('') + (r.right ? '   ' + r.right : '')).join('\n');
  const texts = b.rows.map((r, i) => {
    const y = b.y + 17 + i * line, inside = w - 20, right = fit(r.right, inside / 2), whole = r.parts.map(p => p[0]).join(''), text = fit(whole, inside - widthOf(right) - 16);
    let left = text.length - (text === whole ? 0 : 1);
    const spans = r.parts.map(([part, kind]) => {
      const piece = part.slice(0, left);
      left -= piece.length;
      return piece && s('tspan', kind ? { class: kind } : {}, piece);
    });
    return [s('text', { x: x + 10, y }, spans, text === whole ? null : '…'), right ? s('text', { class: 'dim', x: x + w - 10, y, 'text-anchor': 'end' }, right) : null];
  });
  return s('a', { href: link(b.op), tabindex: 0, 'aria-label': full }, s('title', {}, full), s('rect', { class: 'box ' + b.kind, x, y: b.y, width: w, height: b.h, rx: 6 }), texts);
}

/* drawCurves draws the measured time per row of each implementation of one shape, with its interval, over the rows. Both axes
 * are logarithmic. */
function drawCurves(m) {
  const W = 420, H = 250, L = 48, R = 12, T = 44, B = 40, colors = ['var(--c1)', 'var(--c2)', 'var(--c3)', 'var(--c4)'];
  const pts = [];
  for (const impl of m.impls) m.rows.forEach((r, i) => { if (impl.us[i] > 0) pts.push(impl.us[i] / r); });
  const lo = Math.min(...pts) / 1.2, hi = Math.max(...pts) * 1.2, r0 = m.rows[0], r1 = m.rows[m.rows.length - 1];
  const x = r => L + (W - L - R) * Math.log(r / r0) / Math.log(r1 / r0 || 2), y = us => T + (H - T - B) * Math.log(hi / us) / Math.log(hi / lo);
  const out = [];
  for (const r of [1, 2, 4, 8, 16, 32, 64, 128, 256, 512]) if (r >= r0 && r <= r1)
    out.push(s('line', { class: 'axis', x1: x(r), x2: x(r), y1: T, y2: H - B }), s('text', { class: 'dim', x: x(r), y: H - B + 15, 'text-anchor': 'middle' }, r));
  const powers = [], first = Math.ceil(Math.log2(lo)), last = Math.floor(Math.log2(hi));
  for (let p = first; p <= last; p += Math.ceil((last - first + 1) / 9)) powers.push(2 ** p);
  for (const us of powers)
    out.push(s('line', { class: 'axis', x1: L, x2: W - R, y1: y(us), y2: y(us) }), s('text', { class: 'dim', x: L - 5, y: y(us) + 4, 'text-anchor': 'end' }, us < 0.01 ? us.toExponential(0) : +us.toFixed(3)));
  const marks = [['M1', m.m1], ['M2', m.m2]].filter(([, r]) => r > 1 && r <= r1);
  marks.forEach(([name, r], i) => {
    const near = i && x(r) - x(marks[0][1]) < 30; // the second label goes to the other side
    out.push(s('line', { x1: x(r), x2: x(r), y1: T - 6, y2: H - B, stroke: 'currentColor', 'stroke-dasharray': '4 3' }), s('text', { x: x(r) + (near ? 4 : 0), y: T - 9, 'text-anchor': near ? 'start' : marks.length > 1 && !i && x(marks[1][1]) - x(r) < 30 ? 'end' : 'middle' }, name));
  });
  let key = W - R;
  m.impls.map((impl, k) => [impl.impl, colors[k % 4]]).reverse().forEach(([name, color]) => {
    out.push(s('text', { x: key, y: 14, 'text-anchor': 'end' }, name), s('rect', { x: key - widthOf(name) - 15, y: 6, width: 10, height: 8, rx: 1, style: `fill:${color}` }));
    key -= widthOf(name) + 28;
  });
  out.push(s('text', { class: 'dim', x: 2, y: 14 }, 'µs per row'), s('text', { class: 'dim', x: W - R, y: H - 6, 'text-anchor': 'end' }, 'rows'));
  m.impls.forEach((impl, k) => {
    const seen = m.rows.map((r, i) => [r, impl.us[i] / r, impl.lo[i] / r, impl.hi[i] / r]).filter(p => p[1] > 0), c = colors[k % 4], level = us => y(Math.max(lo, Math.min(hi, us)));
    if (!seen.length) return;
    const band = seen.map(p => `${x(p[0])},${level(p[3])}`).concat(seen.slice().reverse().map(p => `${x(p[0])},${level(p[2])}`));
    out.push(s('polygon', { points: band.join(' '), style: `fill:${c}`, opacity: 0.18 }), s('polyline', { points: seen.map(p => `${x(p[0])},${level(p[1])}`).join(' '), fill: 'none', style: `stroke:${c}`, 'stroke-width': 1.6 }));
  });
  return h('div', { class: 'scroll' }, s('svg', { width: W, height: H, viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': 'Microseconds per row over the number of rows' }, out));
}

/* drawMemory draws which values each buffer holds from region to region. Values of a buffer that share a region, because one
 * is computed in the place of the other, are drawn below one another. */
function drawMemory(slots, regions) {
  const names = slots.map(slot => `slot ${slot.slot}`), sizes = slots.map(slot => `${number(slot.cols)} × ${slot.rows}`);
  const N = Math.max(...names.map(widthOf)) + 14, L = N + Math.max(...sizes.map(widthOf)) + 14, row = 24, end = Math.max(regions.length, 1), column = Math.max(40, Math.min(110, (room(560, 1240) - L - 10) / end)), W = L + column * end + 4, out = [];
  const x = i => L + column * i;
  let y = 24;
  const bars = slots.flatMap((slot, k) => {
    const lanes = [], top = y;
    for (const life of slot.lives) {
      const free = lanes.find(lane => lane.every(b => b.to < life.from || b.from > life.to));
      if (free) free.push(life);
      else lanes.push([life]);
    }
    y += Math.max(lanes.length, 1) * row + 4;
    return [s('line', { class: 'axis', x1: 0, x2: W, y1: top - 2, y2: top - 2 }), s('text', { x: 2, y: top + 15 }, names[k]), s('text', { class: 'dim', x: L - 12, y: top + 15, 'text-anchor': 'end' }, sizes[k]),
      lanes.map((lane, i) => lane.map(life => {
        const from = x(life.from) + 1, width = x(Math.min(life.to + 1, end)) - from - 1, text = fit(life.value, width - 8);
        return s('g', {}, s('title', {}, `${life.value}: ${[life.from, life.to].map(r => regions[r] ? regions[r].function || regions[r].name : r).join(' to ')}`),
          s('rect', { class: 'box fuse', x: from, y: top + i * row + 1, width, height: row - 4, rx: 3 }), text ? s('text', { x: from + 5, y: top + i * row + 15 }, text) : null);
      }))];
  });
  regions.forEach((r, i) => out.push(s('line', { class: 'axis', x1: x(i), x2: x(i), y1: 0, y2: y }),
    s('text', { class: 'dim', x: x(i) + column / 2, y: 14, 'text-anchor': 'middle' }, s('title', {}, r.function || r.name), fit(r.function || r.name, column - 6))));
  return h('div', { class: 'scroll' }, s('svg', { width: W, height: y, viewBox: `0 0 ${W} ${y}`, role: 'img', 'aria-label': 'Values in each buffer over the regions of a step' }, out, bars));
}
