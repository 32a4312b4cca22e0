/* A model on several devices: pipeline stages from left to right, the ranks of a tensor-parallel group below one another.
 * Arrows and lines say how many bytes ranks exchange for one token. */
const sum = (list, f) => list.reduce((n, x) => n + (f(x) || 0), 0);
const layersOf = r => r.hi > r.lo ? `layers ${r.lo} to ${r.hi - 1}` : 'no layers';
/* perToken is a rank's communication in a decode step: one token and one output row of the first graph. */
const perToken = r => { const t = r.traffic[0] || {}; return { collectives: (t.exchanges || 0) + (t.out_row_exchanges || 0), bytes: (t.exchanged_token || 0) + (t.exchanged_out_row || 0), sends: t.sends || 0, sent: t.sent_token || 0 }; };

function drawPartition(ranks) {
  const count = Math.max(...ranks.map(r => r.stage)) + 1, group = Math.max(...ranks.map(r => r.tp_size));
  const rows = ranks.map((r, i) => [`rank ${i}, device ${r.device}`, layersOf(r), `${megabytes(r.bytes)} weights`, `${megabytes(r.state)} KV cache per token`]);
  const beside = ranks.map(r => { const t = perToken(r); return t.collectives ? `${t.collectives} collectives, ${megabytes(t.bytes)} per rank` : ''; });
  const sent = ranks.map(r => { const t = perToken(r); return t.sends ? [megabytes(t.sent), t.sends === 1 ? '1 send' : t.sends + ' sends'] : []; });
  const W = Math.max(200, ...rows.flat().map(t => widthOf(t) + 22), ...beside.map(t => widthOf(t) + 36)), H = 98, GX = Math.max(80, ...sent.flat().map(t => widthOf(t) + 30)), GY = 36, T = 26;
  const x = r => 2 + r.stage * (W + GX), y = r => T + r.tp_rank * (H + GY), width = 4 + count * W + (count - 1) * GX, height = T + group * (H + GY) - GY + 4;
  const out = [s('defs', {}, s('marker', { id: 'to', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: 'auto' }, s('path', { d: 'M0 0 L8 4 L0 8 z' })))];
  for (let i = 0; i < count; i++) out.push(s('text', { class: 'dim', x: 2 + i * (W + GX), y: 16 }, count > 1 ? `PP stage ${i}` : 'TP group'));
  ranks.forEach((r, i) => {
    out.push(s('a', { href: '#partition/' + i, tabindex: 0, 'aria-label': rows[i].join(', ') }, s('title', {}, rows[i].join('\n')), s('rect', { class: 'box' + (i === (data.rank || 0) ? ' fuse' : ''), x: x(r), y: y(r), width: W, height: H, rx: 6 }),
      rows[i].map((text, k) => s('text', { x: x(r) + 11, y: y(r) + 21 + k * 21, class: k ? 'dim' : 'op' }, text))));
    if (r.tp_rank > 0 && beside[i]) out.push(s('path', { class: 'edge', d: `M${x(r) + 20} ${y(r)} v${-GY}` }), s('text', { class: 'dim', x: x(r) + 30, y: y(r) - 14 }, beside[i]));
    if (sent[i].length) out.push(s('path', { class: 'edge', 'marker-end': 'url(#to)', d: `M${x(r) + W} ${y(r) + H / 2} h${GX - 1}` }),
      sent[i].map((text, k) => s('text', { class: 'dim', x: x(r) + W + GX / 2, y: y(r) + H / 2 + (k ? 17 : -8), 'text-anchor': 'middle' }, text)));
  });
  return h('div', { class: 'scroll' }, s('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'group', 'aria-label': 'Ranks, and the bytes that they exchange for a token' }, out));
}

function showPartition(what) {
  const ranks = data.ranks, at = ranks[+what] ? +what : data.rank || 0, r = ranks[at], whole = sum(ranks, x => x.bytes);
  main.append(h('p', {}, 'Devices ', h('code', {}, data.devices), `: ${ranks.length} ranks with ${megabytes(whole)} of weights. The drawing shows the communication of a decode step with one token. ` +
    `The other tabs show the program of rank ${data.rank || 0}; iflowc view --rank N shows the program of rank N.`), drawPartition(ranks));
  main.append(h('h2', {}, 'Communication per step'), table(['Rank', 'Graph', '#Collectives', '#Bytes per token', '#Output collectives', '#Bytes per output row', '#Sends', '#Bytes sent per token', '#Receives', '#Bytes received per token', '#Result bytes per token', '#Result bytes per output row', '#Result bytes per row without a chosen token', '#Result bytes per sequence'],
    ranks.flatMap((x, i) => x.traffic.map(t => [i, t.graph, ...[t.exchanges, t.exchanged_token, t.out_row_exchanges, t.exchanged_out_row, t.sends, t.sent_token, t.receives, t.received_token, t.result_token, t.result_out_row, t.result_read, t.result_sequence].map(n => number(n || 0))]))));
  const size = sizes(whole);
  main.append(h('h2', {}, 'Shards'), h('div', { class: 'pills', role: 'group', 'aria-label': 'Ranks' }, ranks.map((_, i) => h('button', { 'aria-pressed': i === at, onclick: () => go('partition', i) }, 'Rank ' + i))),
    h('p', {}, `Rank ${at} of ${ranks.length}, on device ${r.device}: ${layersOf(r)}, ${megabytes(r.bytes)}, ${(100 * r.bytes / (whole || 1)).toFixed(1)}% of all weights.`),
    table(['Weight', '#Count', 'Type of each', `#Size (${size.unit})`, '#Share (%)', ''], r.shards.slice().sort((a, b) => b.bytes - a.bytes).map(w => [h('code', {}, '@' + w.name), number(w.count), h('code', {}, w.type), size.text(w.bytes), ...share(w.bytes, r.bytes)])));
}
