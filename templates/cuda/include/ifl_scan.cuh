/* The selective scan of Mamba (op selective_scan), with STATES numbers h per channel as state:
 *   h[n] = exp(dt·a[n])·h[n] + (dt·x)·b[n], out = Σ_n c[n]·h[n]
 * A channel belongs to 4 threads of a warp, which hold every fourth h in registers; their sums are added as a tree. A block
 * computes 32 channels of a sequence and stages the inputs of 16 rows, those of a cell, in shared memory.
 *
 * A cell has the contents of ifl_scan.h, but for the number of rows up to h after its last row: each of the 16 channels has its
 * own copy, because the channels of a group belong to two warps. */
#pragma once
#include "ifl_cells.cuh"

#define IFL_SCAN_THREADS 128

struct ifl_scan {
  ifl_cells cells;
  const float *x; /* [T][channels] */
  int64_t ldx;
  const float *dt;
  int64_t lddt;
  const float *b; /* [T][states] */
  int64_t ldb;
  const float *c;
  int64_t ldc;
  const float *a; /* [channels16/16][states][16] */
  int channels, states;
  float *out;
  int64_t ldo;
};

template <int STATES> struct ifl_scanner {
  static constexpr int OWN = (STATES + 3) / 4, CHANNELS = IFL_SCAN_THREADS / 4, ROWS = IFL_CELL_ROWS;
  static constexpr int FLOATS = ROWS * (2 * CHANNELS + 2 * STATES); /* of shared memory */

  const ifl_scan &a;
  const ifl_step *s;
  float *dts, *dtxs, *bs, *cs; /* shared: [16][CHANNELS], the same, [16][STATES], the same */
  const int32_t *list; /* ids of the sequence's cells, by number */
  int seq, first, end, past, wide, d, i, part;
  float h[OWN], log_a[OWN];

  __device__ ifl_scanner(const ifl_scan &scan, float *sm)
      : a(scan), s(scan.cells.step), dts(sm), dtxs(dts + ROWS * CHANNELS), bs(dtxs + ROWS * CHANNELS), cs(bs + ROWS * STATES),
        seq(blockIdx.y) {
    list = ifl_cells_of(s, seq);
    first = s->first[seq], end = s->first[seq + 1], past = s->past[seq], wide = (a.channels + 15) / 16 * 16;
    i = (threadIdx.x >> 5) * 8 + (threadIdx.x & 7), d = blockIdx.x * CHANNELS + i, part = threadIdx.x >> 3 & 3;
  }

  /* Number j of this thread; it may be STATES or more. */
  __device__ __forceinline__ int state(int j) const { return 4 * j + part; }
  __device__ __forceinline__ bool has(int j) const { return d < wide && state(j) < STATES; }

  /* h before a cell, h after its last row, and the number of rows up to there, each for a channel. */
  __device__ __forceinline__ float *group_of(int id, int channel) const {
    return ifl_cell_start(a.cells, id) + channel / 16 * (32 * (int64_t)STATES + 16) + channel % 16;
  }
  __device__ __forceinline__ float *before(int id) const { return group_of(id, d); }
  __device__ __forceinline__ float *after(int id) const { return group_of(id, d) + 16 * STATES; }
  __device__ __forceinline__ int *count(int id, int channel) const {
    return reinterpret_cast<int *>(group_of(id, channel) + 32 * STATES);
  }

  __device__ __forceinline__ void load(const float *from) {
#pragma unroll
    for (int j = 0; j < OWN; j++)
      h[j] = from && has(j) ? from[16 * state(j)] : 0.0f;
  }
  __device__ __forceinline__ void store(float *to) const {
#pragma unroll
    for (int j = 0; j < OWN; j++)
      if (has(j))
        to[16 * state(j)] = h[j];
  }

  /* The inputs of token t for this thread's channel. */
  __device__ __forceinline__ float step_size(int t) const { return d < a.channels ? a.dt[t * a.lddt + d] : 0.0f; }
  __device__ __forceinline__ float input(int t) const { return d < a.channels ? a.x[t * a.ldx + d] : 0.0f; }

  /* Stages rows lo … hi−1 of a sequence, all in one cell: those before past from the cell, the others from the arguments. All
   * loads are issued before the first store. */
  __device__ __forceinline__ void stage(int lo, int hi) {
    constexpr int EACH = ROWS * CHANNELS / IFL_SCAN_THREADS, VECTORS = (ROWS * STATES + IFL_SCAN_THREADS - 1) / IFL_SCAN_THREADS;
    const int id = list[lo / ROWS], t0 = first - past;
    float dt[EACH], x[EACH], b[VECTORS], c[VECTORS];
#pragma unroll
    for (int n = 0; n < EACH; n++) {
      const int at = threadIdx.x + n * IFL_SCAN_THREADS, r = lo + at / CHANNELS, k = blockIdx.x * CHANNELS + at % CHANNELS;
      const bool old = r < past;
      const float *row = old ? ifl_cell_row(a.cells, id, r) : NULL, *from = old ? row + k : a.dt + (t0 + r) * a.lddt + k;
      const float *too = old ? row + wide + k : a.x + (t0 + r) * a.ldx + k;
      const bool in = r < hi && k < (old ? wide : a.channels);
      dt[n] = in ? *from : 0.0f, x[n] = in ? *too : 0.0f;
    }
#pragma unroll
    for (int n = 0; n < VECTORS; n++) {
      const int at = threadIdx.x + n * IFL_SCAN_THREADS, r = lo + at / STATES, k = at % STATES;
      const bool old = r < past;
      const float *from = old ? ifl_cell_row(a.cells, id, r) + 2 * wide + k : a.b + (t0 + r) * a.ldb + k;
      b[n] = r < hi ? *from : 0.0f, c[n] = r < hi && !old ? a.c[(t0 + r) * a.ldc + k] : 0.0f;
    }
#pragma unroll
    for (int n = 0; n < EACH; n++) {
      const int at = threadIdx.x + n * IFL_SCAN_THREADS, r = lo + at / CHANNELS;
      dts[at] = dt[n], dtxs[at] = r < past ? x[n] : dt[n] * x[n];
    }
#pragma unroll
    for (int n = 0; n < VECTORS; n++) {
      const int at = threadIdx.x + n * IFL_SCAN_THREADS;
      if (at < ROWS * STATES)
        bs[at] = b[n], cs[at] = c[n];
    }
  }

  __device__ __forceinline__ void next(float dt, float dtx, const float *b) {
#pragma unroll
    for (int j = 0; j < OWN; j++)
      if (state(j) < STATES)
        h[j] = fmaf(expf(dt * log_a[j]), h[j], dtx * b[state(j)]);
  }

  /* The output of token t, and its row r in cell `id`; −1: it is not kept. */
  __device__ __forceinline__ void emit(int t, int r, int id, float dt, float dtx, const float *b, const float *c) const {
    float y = 0;
#pragma unroll
    for (int j = 0; j < OWN; j++)
      if (state(j) < STATES)
        y = fmaf(c[state(j)], h[j], y);
    y += __shfl_xor_sync(0xffffffffu, y, 8);
    y += __shfl_xor_sync(0xffffffffu, y, 16);
    if (part == 0 && d < a.channels)
      a.out[t * a.ldo + d] = y;
    if (id < 0)
      return;
    float *row = ifl_cell_row(a.cells, id, r);
    if (part == 0 && d < wide)
      row[d] = dt, row[wide + d] = dtx;
    if (blockIdx.x == 0)
      for (int n = threadIdx.x; n < STATES; n += IFL_SCAN_THREADS)
        row[2 * wide + n] = b[n];
  }

  /* Sets h to that after the last row of earlier steps if its cell has it, else to that before the first cell. Returns the row
   * after which h is. The block's first channel decides for all, which have the same count. */
  __device__ __forceinline__ int resume() {
    const int id = past > 0 ? list[(past - 1) / ROWS] : -1, from = s->cell_from[seq] * ROWS;
    load(id >= 0 ? after(id) : NULL);
    const bool known = id < 0 || *count(id, blockIdx.x * CHANNELS) == past;
    __syncthreads(); /* before another warp changes the count */
    if (known)
      return past;
    load(from > 0 ? before(list[from / ROWS]) : NULL);
    return from;
  }

  /* Rows lo … hi−1, all in one cell. */
  __device__ __forceinline__ void rows(int lo, int hi) {
    const int id = list[lo / ROWS];
    if (lo % ROWS == 0 && lo > s->cell_from[seq] * ROWS && id >= 0)
      store(before(id));
    __syncthreads();
    stage(lo, hi);
    __syncthreads();
    for (int r = lo; r < hi; r++) {
      const int at = r - lo;
      const float dt = dts[at * CHANNELS + i], dtx = dtxs[at * CHANNELS + i];
      next(dt, dtx, bs + at * STATES);
      if (r >= past)
        emit(first + r - past, r, id, dt, dtx, bs + at * STATES, cs + at * STATES);
    }
    if (hi <= past || id < 0)
      return;
    store(after(id));
    if (part == 0 && d < wide)
      *count(id, d) = hi;
  }

  __device__ __forceinline__ void tree() {
    float root[OWN];
#pragma unroll
    for (int j = 0; j < OWN; j++)
      root[j] = h[j];
    for (int t = first; t < end; t++) {
#pragma unroll
      for (int j = 0; j < OWN; j++)
        h[j] = root[j];
      for (int k = first; k <= t; k++) {
        if (k < t && !ifl_cells_sees(s, t, k - first))
          continue;
        const float dt = step_size(k), dtx = dt * input(k);
        next(dt, dtx, a.b + k * a.ldb);
        if (k == t)
          emit(t, past + t - first, list[(past + t - first) / ROWS], dt, dtx, a.b + t * a.ldb, a.c + t * a.ldc);
      }
    }
    __syncwarp();
    for (int r = past; r < past + end - first; r++)
      if (part == 0 && d < wide)
        *count(list[r / ROWS], d) = -1;
  }

  /* Grid (blocks of channels, sequences). */
  __device__ __forceinline__ void run() {
    if (first == end)
      return;
#pragma unroll
    for (int j = 0; j < OWN; j++)
      log_a[j] = has(j) ? a.a[d / 16 * (16 * (int64_t)STATES) + 16 * state(j) + d % 16] : 0.0f;
    const bool branches = ifl_tree(s, seq);
    const int until = branches ? past : past + end - first;
    for (int r = resume(); r < until;) {
      const int hi = ifl_min_int((r / ROWS + 1) * ROWS, until);
      rows(r, hi);
      r = hi;
    }
    if (!branches)
      return;
    const int id = past > 0 && past % ROWS == 0 ? list[past / ROWS] : -1;
    if (id >= 0)
      store(before(id));
    tree();
  }
};
