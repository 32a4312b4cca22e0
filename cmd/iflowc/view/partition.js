/* A model on several devices: stages from left to right, the ranks of each one below the other; arrows between stages and
 * lines between ranks say how many bytes they tell one another for one token. */
const sum = (list, f) => list.reduce((n, x) => n + (f(x) || 0), 0);
const layersOf = r => r.hi > r.lo ? `layers ${r.lo} to ${r.hi - 1}` : 'no layer';
/* What a rank tells others in a step of the first graph with one output row: a step of generation. */
const told = r => { const t = r.traffic[0] || {}; return { exchanges: (t.exchanges || 0) + (t.out_row_exchanges || 0), exchanged: (t.exchanged_token || 0) + (t.exchanged_out_row || 0), sends: t.sends || 0, sent: t.sent_token || 0 }; };

function drawPartition(ranks) {
  const W = 210, H = 96, GX = 120, GY = 34, T = 26, stages = Math.max(...ranks.map(r => r.stage)) + 1, tp_size = Math.max(...ranks.map(r => r.tp_size));
  const x = r => 10 + r.stage * (W + GX), y = r => T + r.tp_rank * (H + GY), width = 80 + stages * W + (stages - 1) * GX, /* what stands beside a line is wider than a box */ height = T + tp_size * (H + GY);
  const out = [s('defs', {}, s('marker', { id: 'to', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: 'auto' }, s('path', { d: 'M0 0 L8 4 L0 8 z', fill: 'currentColor' })))];
  for (let i = 0; i < stages; i++) out.push(s('text', { class: 'dim', x: 10 + i * (W + GX), y: 16 }, stages > 1 ? `stage ${i}` : 'one group'));
  ranks.forEach((r, i) => {
    const t = told(r), lines = [`rank ${i} on device ${r.device}`, layersOf(r), `${megabytes(r.bytes)} of weights`, `${megabytes(r.state)} a token held`];
    out.push(s('a', { href: '#partition/' + i, tabindex: 0 }, s('title', {}, lines.join('\n')), s('rect', { class: 'box' + (i === (data.rank || 0) ? ' fuse' : ''), x: x(r), y: y(r), width: W, height: H, rx: 6 }),
      lines.map((text, k) => s('text', { x: x(r) + 10, y: y(r) + 20 + k * 21, class: k ? 'dim' : '' }, text))));
    if (r.tp_rank > 0 && t.exchanges) out.push(s('path', { class: 'edge', d: `M${x(r) + 24} ${y(r)} v${-GY}` }), s('text', { class: 'dim', x: x(r) + 32, y: y(r) - 12 }, `${t.exchanges} exchanges, ${megabytes(t.exchanged)} from each`));
    if (t.sends) out.push(s('path', { class: 'edge', 'marker-end': 'url(#to)', d: `M${x(r) + W} ${y(r) + H / 2} h${GX - 2}` }),
      s('text', { class: 'dim', x: x(r) + W + GX / 2, y: y(r) + H / 2 - 8, 'text-anchor': 'middle' }, megabytes(t.sent)), s('text', { class: 'dim', x: x(r) + W + GX / 2, y: y(r) + H / 2 + 17, 'text-anchor': 'middle' }, `${t.sends} sent`));
  });
  return s('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': 'ranks, and the bytes that they tell one another for a token' }, out);
}

function showPartition(what) {
  const ranks = data.ranks, at = ranks[+what] ? +what : data.rank || 0, whole = sum(ranks, r => r.bytes);
  main.append(h('p', {}, h('code', {}, data.devices), `: ${ranks.length} ranks, ${megabytes(whole)} of weights together, and what a step of generation, one token of one sequence, makes them tell one another. ` +
    `The other tabs show the program of rank ${data.rank || 0}; iflowc view --rank N shows another one's.`), drawPartition(ranks));
  main.append(h('h2', {}, 'Traffic of a step'), table(['rank', 'graph', '#exchanges', '#bytes a token', '#bytes an output row', '#sends', '#bytes a token sent', '#receives', '#bytes a token received'],
    ranks.flatMap((r, i) => r.traffic.map(t => [i, t.graph, `${t.exchanges || 0}` + (t.out_row_exchanges ? ` + ${t.out_row_exchanges}` : ''), t.exchanged_token || 0, t.exchanged_out_row || 0, t.sends || 0, t.sent_token || 0, t.receives || 0, t.received_token || 0]))));
  main.append(h('h2', {}, 'Shards'), h('div', { role: 'group', 'aria-label': 'Ranks' }, ranks.map((r, i) => h('button', { 'aria-pressed': i === at, onclick: () => go('partition', i) }, 'rank ' + i))),
    h('p', {}, `Rank ${at} of ${ranks.length}, on device ${ranks[at].device}: ${layersOf(ranks[at])}; ${megabytes(ranks[at].bytes)}, ${(100 * ranks[at].bytes / (whole || 1)).toFixed(1)} % of all.`),
    table(['weight', '#of them', 'each', '#bytes', 'share'], ranks[at].shards.slice().sort((a, b) => b.bytes - a.bytes).map(w => [h('code', {}, '@' + w.name), w.count, h('code', {}, w.type), megabytes(w.bytes),
      h('span', { class: 'bar', style: `width:${(120 * w.bytes / (ranks[at].bytes || 1)).toFixed(1)}px` })])));
}
