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
  int seq, first, end, past, wide, d, i, part;
  float h[OWN], log_a[OWN];

  __device__ ifl_scanner(const ifl_scan &scan, float *sm)
      : a(scan), s(scan.cells.step), dts(sm), dtxs(dts + ROWS * CHANNELS), bs(dtxs + ROWS * CHANNELS), cs(bs + ROWS * STATES),
        seq(blockIdx.y) {
    first = s->first[seq], end = s->first[seq + 1], past = s->past[seq], wide = (a.channels + 15) / 16 * 16;
    i = (threadIdx.x >> 5) * 8 + (threadIdx.x & 7), d = blockIdx.x * CHANNELS + i, part = threadIdx.x >> 3 & 3;
  }

  /* Number j of this thread; it may be STATES or more. */
  __device__ __forceinline__ int state(int j) const { return 4 * j + part; }
  __device__ __forceinline__ bool has(int j) const { return d < wide && state(j) < STATES; }

  /* h before a cell, h after its last row, and the number of rows up to there. */
  __device__ __forceinline__ float *before(int id) const {
    return ifl_cell_start(a.cells, id) + d / 16 * (32 * (int64_t)STATES + 16) + d % 16;
  }
  __device__ __forceinline__ float *after(int id) const { return before(id) + 16 * STATES; }
  __device__ __forceinline__ int *count(int id) const { return reinterpret_cast<int *>(after(id) + 16 * STATES); }

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

  /* Stages rows lo … hi−1 of a sequence, all in one cell: those before past from the cell, the others from the arguments. */
  __device__ __forceinline__ void stage(int lo, int hi) {
    const int id = ifl_cell_of(s, seq, lo);
    for (int x = threadIdx.x; x < (hi - lo) * CHANNELS; x += IFL_SCAN_THREADS) {
      const int r = lo + x / CHANNELS, k = blockIdx.x * CHANNELS + x % CHANNELS, t = first + r - past;
      float dt = 0, dtx = 0;
      if (r < past && k < wide) {
        const float *row = ifl_cell_row(a.cells, id, r);
        dt = row[k], dtx = row[wide + k];
      } else if (r >= past && k < a.channels) {
        dt = a.dt[t * a.lddt + k], dtx = dt * a.x[t * a.ldx + k];
      }
      dts[x] = dt, dtxs[x] = dtx;
    }
    for (int x = threadIdx.x; x < (hi - lo) * STATES; x += IFL_SCAN_THREADS) {
      const int r = lo + x / STATES, n = x % STATES, t = first + r - past;
      bs[x] = r < past ? ifl_cell_row(a.cells, id, r)[2 * wide + n] : a.b[t * a.ldb + n];
      if (r >= past)
        cs[x] = a.c[t * a.ldc + n];
    }
  }

  __device__ __forceinline__ void next(float dt, float dtx, const float *b) {
#pragma unroll
    for (int j = 0; j < OWN; j++)
      if (state(j) < STATES)
        h[j] = fmaf(expf(dt * log_a[j]), h[j], dtx * b[state(j)]);
  }

  /* The output of token t, and its row r. */
  __device__ __forceinline__ void emit(int t, int r, float dt, float dtx, const float *b, const float *c) const {
    float y = 0;
#pragma unroll
    for (int j = 0; j < OWN; j++)
      if (state(j) < STATES)
        y = fmaf(c[state(j)], h[j], y);
    y += __shfl_xor_sync(0xffffffffu, y, 8);
    y += __shfl_xor_sync(0xffffffffu, y, 16);
    const int id = ifl_cell_of(s, seq, r);
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
   * after which h is. */
  __device__ __forceinline__ int resume() {
    const int id = past > 0 ? ifl_cell_of(s, seq, past - 1) : -1, from = s->cell_from[seq] * ROWS;
    load(id >= 0 ? after(id) : NULL);
    const int counted = id >= 0 && d < wide ? *count(id) : past;
    if (__syncthreads_and(counted == past))
      return past;
    load(from > 0 ? before(ifl_cell_of(s, seq, from)) : NULL);
    return from;
  }

  /* Rows lo … hi−1, all in one cell. */
  __device__ __forceinline__ void rows(int lo, int hi) {
    const int id = ifl_cell_of(s, seq, lo);
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
        emit(first + r - past, r, dt, dtx, bs + at * STATES, cs + at * STATES);
    }
    if (hi <= past || id < 0)
      return;
    store(after(id));
    if (part == 0 && d < wide)
      *count(id) = hi;
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
          emit(t, past + t - first, dt, dtx, a.b + t * a.ldb, a.c + t * a.ldc);
      }
    }
    __syncwarp();
    for (int r = past; r < past + end - first; r++)
      if (part == 0 && d < wide)
        *count(ifl_cell_of(s, seq, r)) = -1;
  }

  /* Grid (blocks of channels, sequences). */
  __device__ __forceinline__ void run() {
    if (first == end)
      return;
#pragma unroll
    for (int j = 0; j < OWN; j++)
      log_a[j] = has(j) ? a.a[d / 16 * (16 * (int64_t)STATES) + 16 * state(j) + d % 16] : 0.0f;
    const bool branches = ifl_cells_tree(s, seq);
    const int until = branches ? past : past + end - first;
    for (int r = resume(); r < until;) {
      const int hi = ifl_min_int((r / ROWS + 1) * ROWS, until);
      rows(r, hi);
      r = hi;
    }
    if (!branches)
      return;
    const int id = past > 0 && past % ROWS == 0 ? ifl_cell_of(s, seq, past) : -1;
    if (id >= 0)
      store(before(id));
    tree();
  }
};
