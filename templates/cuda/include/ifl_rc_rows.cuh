/* The inputs of linear attention in shared memory (ifl_recurrence.cuh): the rows of a cell, from the cell or from the arguments of
 * the op. */
#pragma once
#include "ifl_cells.cuh"

#define IFL_RC_THREADS 256

enum { IFL_DECAY_NONE, IFL_DECAY_FIXED, IFL_DECAY_HEAD, IFL_DECAY_CHANNEL };
enum { IFL_DELTA_NONE, IFL_DELTA_RULE, IFL_DELTA_VECTORS };

struct ifl_recurrence {
  ifl_cells cells;
  const float *q; /* [T][key_heads·dim] */
  int64_t ldq;
  const float *k; /* the same */
  int64_t ldk;
  const float *v; /* [T][heads·vdim] */
  int64_t ldv;
  const float *decay; /* [T][heads] or [T][heads·dim]; logarithms */
  int64_t lddecay;
  const float *beta; /* [T][heads], or NULL: 1 */
  int64_t ldbeta;
  const float *erase; /* a: [T][heads·dim] */
  int64_t lderase;
  const float *write; /* b: the same */
  int64_t ldwrite;
  const float *skip;   /* [heads], or NULL */
  const float *slopes; /* [heads], with IFL_DECAY_FIXED */
  float slope_scale;
  int heads, key_heads, dim, vdim, decays, delta;
  float scale;
  float *out; /* [T][heads·vdim] */
  int64_t ldo;
};

/* The rows of a cell in the shared memory of a block, and the block's sizes. */
template <int HEADS, int KEY_HEADS, int DIM, int VDIM, int DECAYS, int DELTA, int TILES> struct ifl_rc_rows {
  static constexpr int ROWS = IFL_CELL_ROWS, WARPS = IFL_RC_THREADS / 32, GROUP = HEADS / KEY_HEADS;
  static constexpr int D = (DIM + 15) / 16 * 16, V = (VDIM + 15) / 16 * 16, COLS = 16 * TILES, GROUPS = (V / 16 + TILES - 1) / TILES;
  static constexpr int SPLIT = WARPS / TILES;      /* warps that divide the rows of a tile of S */
  static constexpr int CHUNK = (D + 31) / 32;      /* elements per lane of a vector of D */
  static constexpr bool CHANNEL = DECAYS == IFL_DECAY_CHANNEL, HEAD = DECAYS == IFL_DECAY_HEAD;
  static constexpr bool READS = DELTA != IFL_DELTA_NONE, VECTORS = DELTA == IFL_DELTA_VECTORS;

  /* Offsets in a row of a cell. */
  static constexpr int U_AT = KEY_HEADS * D, G_AT = U_AT + HEADS * V;
  static constexpr int B_AT = G_AT + (CHANNEL ? HEADS * D : HEAD ? (HEADS + 15) / 16 * 16 : 0), W_AT = B_AT + HEADS * D;

  /* Offsets in shared memory. Vectors that S is multiplied by have a column for each row of the cell. */
  static constexpr int PITCH = ROWS + 4, PARTS = SPLIT * ROWS * COLS;
  static constexpr int KS = 0, GS = KS + ROWS * D, BS = GS + (CHANNEL ? ROWS * D : ROWS), XQ = BS + (VECTORS ? ROWS * D : 0);
  static constexpr int XR = XQ + D * PITCH, ES = XR + (READS ? D * PITCH : 0), US = ES + D, WS = US + ROWS * COLS;
  static constexpr int YQ = WS + (VECTORS ? ROWS * COLS : 0), YR = YQ + PARTS, QK = YR + (READS ? PARTS : 0);
  static constexpr int RK = QK + ROWS * ROWS, QB = RK + (READS ? ROWS * ROWS : 0), RB = QB + (VECTORS ? ROWS * ROWS : 0);
  static constexpr int BETA = RB + (VECTORS ? ROWS * ROWS : 0), TOKEN = BETA + ROWS, CELL = TOKEN + ROWS, SLOT = CELL + ROWS;
  static constexpr int FLOATS = SLOT + ROWS;

  const ifl_recurrence &a;
  const ifl_step *s;
  float *sm;
  const int32_t *list;      /* ids of the sequence's cells, by number */
  int *token, *cell, *slot; /* of each row: its token in this step, or −1; its cell, or −1; its row in the sequence */
  int seq, head, tile, cols, warp, lane, part, first, past;
  bool holds; /* this warp has a tile */

  __device__ ifl_rc_rows(const ifl_recurrence &rec, float *shared) : a(rec), s(rec.cells.step), sm(shared), seq(blockIdx.y) {
    token = reinterpret_cast<int *>(sm + TOKEN), cell = token + ROWS, slot = cell + ROWS;
    head = blockIdx.x / GROUPS, tile = blockIdx.x % GROUPS * TILES, cols = ifl_min_int(COLS, V - 16 * tile);
    warp = threadIdx.x >> 5, lane = threadIdx.x & 31, part = warp % SPLIT;
    holds = 16 * (warp / SPLIT) < cols;
    first = s->first[seq], past = s->past[seq], list = ifl_cells_of(s, seq);
  }

  __device__ __forceinline__ bool owner() const { return tile == 0; } /* of what all blocks of a head share */

  /* Copies n of at most MOST floats from global to shared memory without waiting; n is a multiple of 4. */
  template <int MOST> __device__ __forceinline__ void copy(float *to, const float *from, int n) const {
#pragma unroll
    for (int i = 0; i < MOST; i += 128)
      if (i + 4 * lane < n)
        ifl_cp_async16(to + i + 4 * lane, from + i + 4 * lane);
  }

  /* A vector of DIM floats of which this lane has every 32nd, and zeros. */
  __device__ __forceinline__ void take(float (&x)[CHUNK], const float *from) const {
#pragma unroll
    for (int n = 0; n < CHUNK; n++)
      x[n] = lane + 32 * n < DIM ? from[lane + 32 * n] : 0.0f;
  }
  __device__ __forceinline__ void give(const float (&x)[CHUNK], float *to, float *too) const {
#pragma unroll
    for (int n = 0; n < CHUNK; n++) {
      const int d = lane + 32 * n;
      if (d < D)
        to[d] = x[n];
      if (d < D && too)
        too[d] = x[n];
    }
  }

  /* Stages row i, of token t, from the arguments; v takes the place of u until solve. If its cell is kept, the owner of what is
   * staged writes it there. All loads are issued before the first store. */
  __device__ __forceinline__ void stage_token(int i, int t, bool fresh, float *row) {
    constexpr int VALUES = (COLS + 31) / 32;
    float k[CHUNK], g[CHUNK], b[CHUNK], v[VALUES], one = 0, beta = 1;
    take(k, a.k + t * a.ldk + (int64_t)(head / GROUP) * DIM);
    if (CHANNEL)
      take(g, a.decay + t * a.lddecay + (int64_t)head * DIM);
    if (VECTORS)
      take(b, a.write + t * a.ldwrite + (int64_t)head * DIM);
    if (HEAD)
      one = a.decay[t * a.lddecay + head];
    if (a.beta && fresh)
      beta = a.beta[t * a.ldbeta + head];
#pragma unroll
    for (int n = 0; n < VALUES; n++) {
      const int c = lane + 32 * n, col = 16 * tile + c;
      v[n] = fresh && c < COLS && col < VDIM ? a.v[t * a.ldv + (int64_t)head * VDIM + col] : 0.0f;
    }
    float *to = row && owner() ? row : NULL;
    give(k, sm + KS + i * D, to && head % GROUP == 0 ? to + head / GROUP * D : NULL);
    if (CHANNEL)
      give(g, sm + GS + i * D, to ? to + G_AT + head * D : NULL);
    if (VECTORS)
      give(b, sm + BS + i * D, to ? to + B_AT + head * D : NULL);
    if (HEAD && lane == 0) {
      sm[GS + i] = one;
      if (to)
        to[G_AT + head] = one;
    }
    if (!fresh)
      return;
#pragma unroll
    for (int n = 0; n < VALUES; n++)
      if (lane + 32 * n < cols)
        sm[US + i * COLS + lane + 32 * n] = v[n];
    if (lane == 0)
      sm[BETA + i] = beta;
  }

  /* Stages rows lo … n−1 of a cell. Those from `fresh` on are new. */
  __device__ __forceinline__ void stage(int lo, int n, int fresh) {
    for (int i = lo + warp; i < n; i += WARPS) {
      const int t = token[i];
      float *row = cell[i] < 0 ? NULL : ifl_cell_row(a.cells, cell[i], slot[i]);
      if (i < fresh) {
        copy<COLS>(sm + US + i * COLS, row + U_AT + head * V + 16 * tile, cols);
        if (VECTORS)
          copy<COLS>(sm + WS + i * COLS, row + W_AT + head * V + 16 * tile, cols);
      }
      if (t < 0) {
        copy<D>(sm + KS + i * D, row + head / GROUP * D, D);
        if (CHANNEL)
          copy<D>(sm + GS + i * D, row + G_AT + head * D, D);
        if (VECTORS)
          copy<D>(sm + BS + i * D, row + B_AT + head * D, D);
        continue;
      }
      stage_token(i, t, i >= fresh, i < fresh ? NULL : row);
    }
    ifl_cp_async_commit();
    const int i = lo + (int)threadIdx.x;
    if (HEAD && i < n && token[i] < 0)
      sm[GS + i] = ifl_cell_row(a.cells, cell[i], slot[i])[G_AT + head];
    ifl_cp_async_wait<0>();
    __syncthreads();
  }

  /* Row i of the current cell is row r of the sequence, of token t or, if that is −1, of an earlier step. One thread. */
  __device__ __forceinline__ void place(int i, int t, int r) {
    token[i] = t, cell[i] = list[r / ROWS], slot[i] = r;
  }

  /* Stages the rows of cell c of a sequence up to row end−1, of which those from `fresh` on are new. */
  __device__ __forceinline__ void line(int c, int n, int fresh) {
    const int r = c * ROWS + (int)threadIdx.x;
    if ((int)threadIdx.x < n)
      place(threadIdx.x, r < past ? -1 : first + r - past, r);
    __syncthreads();
    stage(0, n, fresh);
  }
};
