/* Linear attention with a matrix S of [DIM][VDIM] per head as state (op linear_recurrence), by the chunkwise algorithm of
 * ifl_recurrence.h, with its cells:
 *   out_i = (q_i·E_i)ᵀS₀ + Σ_{j≤i} ((q_i·E_ij)·k_j) u_j,  E_i = exp(Σ_{m≤i} decay_m),  E_ij = exp(Σ_{j<m≤i} decay_m)
 *
 * A block computes TILES tiles of 16 columns of a head of a sequence: grid (heads × groups of tiles, sequences). Its part of S is
 * in registers for the whole step. A token reads it once, 512 consecutive bytes per warp and load, and only the end of a cell
 * writes it. The rows of a cell are in shared memory; the coefficients of the rows j are dot products by warps.
 *
 * Sums over the rows of S: each thread adds every 8·SPLIT-th row in order; 8 lanes are added as a tree, then the warps in order.
 * Then the rows j in order. A dot product has 32 lanes, which are added as a tree. None of this depends on how many rows of a cell
 * a step computes, so neither do the results. */
#pragma once
#include "ifl_rc_rows.cuh"

/* Sums of 4 values over a warp: lanes 8·i … 8·i+7 get the sum of value i. */
IFL_DEVICE float ifl_rc_sums(const float (&v)[4], int lane) {
  const bool hi = lane & 16, odd = lane & 8;
  const float a = (hi ? v[2] : v[0]) + __shfl_xor_sync(0xffffffffu, hi ? v[0] : v[2], 16);
  const float b = (hi ? v[3] : v[1]) + __shfl_xor_sync(0xffffffffu, hi ? v[1] : v[3], 16);
  float c = (odd ? b : a) + __shfl_xor_sync(0xffffffffu, odd ? a : b, 8);
  for (int o = 4; o; o >>= 1)
    c += __shfl_xor_sync(0xffffffffu, c, o);
  return c;
}

/* Sums of 4 columns of one row, or of 4 rows, over the 8 lanes with the same lane % 4. Of one row, lane gets column lane / 8; of 4
 * rows it gets row lane / 8 and two columns, from 0 or, if lane & 4, from 2 on. Both add in the same order. */
IFL_DEVICE void ifl_rc_fold(const float (&v)[1][4], int lane, float (&sum)[2]) {
  const bool hi = lane & 16, odd = lane & 8;
  const float a = (hi ? v[0][2] : v[0][0]) + __shfl_xor_sync(0xffffffffu, hi ? v[0][0] : v[0][2], 16);
  const float b = (hi ? v[0][3] : v[0][1]) + __shfl_xor_sync(0xffffffffu, hi ? v[0][1] : v[0][3], 16);
  const float c = (odd ? b : a) + __shfl_xor_sync(0xffffffffu, odd ? a : b, 8);
  sum[0] = c + __shfl_xor_sync(0xffffffffu, c, 4);
}
IFL_DEVICE void ifl_rc_fold(const float (&v)[4][4], int lane, float (&sum)[2]) {
  const bool hi = lane & 16, odd = lane & 8, far = lane & 4;
  float a[2][4], b[4];
#pragma unroll
  for (int i = 0; i < 2; i++)
#pragma unroll
    for (int c = 0; c < 4; c++)
      a[i][c] = (hi ? v[i + 2][c] : v[i][c]) + __shfl_xor_sync(0xffffffffu, hi ? v[i][c] : v[i + 2][c], 16);
#pragma unroll
  for (int c = 0; c < 4; c++)
    b[c] = (odd ? a[1][c] : a[0][c]) + __shfl_xor_sync(0xffffffffu, odd ? a[0][c] : a[1][c], 8);
#pragma unroll
  for (int c = 0; c < 2; c++)
    sum[c] = (far ? b[c + 2] : b[c]) + __shfl_xor_sync(0xffffffffu, far ? b[c] : b[c + 2], 4);
}

/* The part of one block. */
template <int HEADS, int KEY_HEADS, int DIM, int VDIM, int DECAYS, int DELTA, int TILES> struct ifl_rc
    : ifl_rc_rows<HEADS, KEY_HEADS, DIM, VDIM, DECAYS, DELTA, TILES> {
  typedef ifl_rc_rows<HEADS, KEY_HEADS, DIM, VDIM, DECAYS, DELTA, TILES> base;
  using base::ROWS, base::WARPS, base::GROUP, base::D, base::V, base::COLS, base::SPLIT, base::CHUNK, base::PITCH, base::PARTS;
  using base::CHANNEL, base::HEAD, base::READS, base::VECTORS, base::U_AT, base::W_AT;
  using base::KS, base::GS, base::BS, base::XQ, base::XR, base::ES, base::US, base::WS, base::YQ, base::YR;
  using base::QK, base::RK, base::QB, base::RB, base::BETA;
  using base::a, base::s, base::sm, base::list, base::token, base::cell, base::slot, base::seq, base::head, base::tile, base::cols;
  using base::warp, base::lane, base::part, base::first, base::past, base::holds, base::take, base::stage, base::place, base::line;
  static constexpr int HELD = 8 * SPLIT;              /* rows of a tile that its threads load at once */
  static constexpr int OWN = (DIM + HELD - 1) / HELD; /* loads of a thread, each 4 columns of a row */

  float4 m[OWN];

  __device__ ifl_rc(const ifl_recurrence &rec, float *shared) : base(rec, shared) {}

  /* The row of S in load n of this thread, and its first column in the block. */
  __device__ __forceinline__ int row_of(int n) const { return n * HELD + part * 8 + (lane >> 2); }
  __device__ __forceinline__ int column() const { return warp / SPLIT * 16 + (lane & 3) * 4; }

  __device__ __forceinline__ float4 *start_of(int id, int n) const {
    float *at = ifl_cell_start(a.cells, id) + ((int64_t)(head * (V / 16) + tile + warp / SPLIT) * DIM + row_of(n)) * 16;
    return reinterpret_cast<float4 *>(at + (lane & 3) * 4);
  }

  /* S before a cell; −1: zero. */
  __device__ __forceinline__ void load(int id) {
#pragma unroll
    for (int n = 0; n < OWN; n++)
      m[n] = id >= 0 && holds && row_of(n) < DIM ? __ldcg(start_of(id, n)) : make_float4(0, 0, 0, 0);
  }

  /* Adds the decays of row j. */
  static constexpr int LOGS = CHANNEL ? CHUNK : 1;
  __device__ __forceinline__ void decay(float (&log)[LOGS], int j) const {
#pragma unroll
    for (int n = 0; n < LOGS; n++)
      if (CHANNEL)
        log[n] += lane + 32 * n < D ? sm[GS + j * D + lane + 32 * n] : 0.0f;
      else if (DECAYS != IFL_DECAY_NONE)
        log[n] += HEAD ? sm[GS + j] : a.slopes[head] * a.slope_scale;
  }
  __device__ __forceinline__ void factors(float (&e)[LOGS], const float (&log)[LOGS]) const {
#pragma unroll
    for (int n = 0; n < LOGS; n++)
      e[n] = DECAYS == IFL_DECAY_NONE ? 1.0f : expf(log[n]);
  }

  /* The coefficients of row i, the r-th new one, for rows 4·quarter … 4·quarter+3; quarter 0 also its vectors for S. One warp. */
  __device__ __forceinline__ void coefficients(int i, int quarter, int r) {
    float q[CHUNK], x[CHUNK], log[LOGS] = {}, e[LOGS], qk[4] = {}, xk[4] = {}, qb[4] = {}, xb[4] = {};
    take(q, a.q + token[i] * a.ldq + (int64_t)(head / GROUP) * DIM);
    if (VECTORS)
      take(x, a.erase + token[i] * a.lderase + (int64_t)head * DIM);
#pragma unroll
    for (int n = 0; n < CHUNK; n++) {
      q[n] *= a.scale;
      if (DELTA == IFL_DELTA_RULE)
        x[n] = lane + 32 * n < D ? sm[KS + i * D + lane + 32 * n] : 0.0f;
    }
    for (int j = i; j > 4 * quarter + 3; j--)
      decay(log, j);
#pragma unroll
    for (int at = 3; at >= 0; at--) {
      const int j = 4 * quarter + at;
      if (j > i)
        continue;
      factors(e, log);
#pragma unroll
      for (int n = 0; n < CHUNK; n++) {
        const int d = lane + 32 * n;
        const float k = d < D ? sm[KS + j * D + d] : 0.0f, b = VECTORS && d < D ? sm[BS + j * D + d] : 0.0f;
        const float f = CHANNEL ? e[CHANNEL ? n : 0] : 1.0f, eq = f * q[n], ex = READS ? f * x[n] : 0.0f;
        qk[at] = fmaf(eq, k, qk[at]);
        if (READS)
          xk[at] = fmaf(ex, k, xk[at]);
        if (VECTORS)
          qb[at] = fmaf(eq, b, qb[at]), xb[at] = fmaf(ex, b, xb[at]);
      }
      if (!CHANNEL)
        qk[at] *= e[0], xk[at] *= e[0], qb[at] *= e[0], xb[at] *= e[0];
      decay(log, j);
    }
    const int to = i * ROWS + 4 * quarter + (lane >> 3);
    keep(QK + to, qk);
    if (READS)
      keep(RK + to, xk);
    if (VECTORS)
      keep(QB + to, qb), keep(RB + to, xb);
    if (quarter > 0)
      return;
    factors(e, log);
#pragma unroll
    for (int n = 0; n < CHUNK; n++) {
      const int d = lane + 32 * n;
      if (d < DIM)
        sm[XQ + d * PITCH + r] = e[CHANNEL ? n : 0] * q[n];
      if (READS && d < DIM)
        sm[XR + d * PITCH + r] = e[CHANNEL ? n : 0] * x[n];
    }
  }
  __device__ __forceinline__ void keep(int at, const float (&v)[4]) {
    const float sum = ifl_rc_sums(v, lane);
    if ((lane & 7) == 0)
      sm[at] = sum;
  }

  /* The products of S and the vectors at x of new rows r … r+NR−1, to y. */
  template <int NR> __device__ __forceinline__ void product(const float *x, float *y, int r) const {
    float acc[NR][4] = {}, sum[2];
#pragma unroll
    for (int n = 0; n < OWN; n++) {
      const int k = row_of(n);
      if (k >= DIM)
        continue;
      float f[NR];
      if (NR == 1) {
        f[0] = x[k * PITCH + r];
      } else {
        const float4 v = *reinterpret_cast<const float4 *>(x + k * PITCH + r);
        f[0] = v.x, f[NR > 1 ? 1 : 0] = v.y, f[NR > 2 ? 2 : 0] = v.z, f[NR > 3 ? 3 : 0] = v.w;
      }
#pragma unroll
      for (int i = 0; i < NR; i++) {
        acc[i][0] = fmaf(f[i], m[n].x, acc[i][0]), acc[i][1] = fmaf(f[i], m[n].y, acc[i][1]);
        acc[i][2] = fmaf(f[i], m[n].z, acc[i][2]), acc[i][3] = fmaf(f[i], m[n].w, acc[i][3]);
      }
    }
    ifl_rc_fold(acc, lane, sum);
    y += part * ROWS * COLS + r * COLS + column();
    if (NR == 4)
      *reinterpret_cast<float2 *>(y + (lane >> 3) * COLS + (lane & 4) / 2) = make_float2(sum[0], sum[1]);
    else if ((lane & 4) == 0)
      y[lane >> 3] = sum[0];
  }

  /* The products of all n new rows. */
  __device__ __forceinline__ void read(int n) const {
    if (!holds)
      return;
    if (n == 1) {
      product<1>(sm + XQ, sm + YQ, 0);
      if (READS)
        product<1>(sm + XR, sm + YR, 0);
      return;
    }
    for (int r = 0; r < n; r += 4) {
      product<4>(sm + XQ, sm + YQ, r);
      if (READS)
        product<4>(sm + XR, sm + YR, r);
    }
  }

  /* A product with S of the r-th new row. */
  __device__ __forceinline__ float product_of(int y, int r, int c) const {
    float sum = 0;
#pragma unroll
    for (int p = 0; p < SPLIT; p++)
      sum += sm[y + (p * ROWS + r) * COLS + c];
    return sum;
  }

  /* u of rows lo … n−1, and w: row after row, a thread for each column. */
  __device__ __forceinline__ void solve(int lo, int n) {
    const int c = threadIdx.x;
    if (c >= cols)
      return;
    float u[ROWS], w[ROWS];
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
      if (i >= n)
        break;
      u[i] = sm[US + i * COLS + c];
      if (i < lo) {
        if (VECTORS)
          w[i] = sm[WS + i * COLS + c];
        continue;
      }
      if (a.skip)
        sm[YQ + (i - lo) * COLS + c] = fmaf(a.skip[head], u[i], sm[YQ + (i - lo) * COLS + c]);
      float held = READS ? product_of(YR, i - lo, c) : 0.0f;
#pragma unroll
      for (int j = 0; READS && j < i; j++) {
        held = fmaf(sm[RK + i * ROWS + j], u[j], held);
        if (VECTORS)
          held = fmaf(sm[RB + i * ROWS + j], w[j], held);
      }
      if (DELTA == IFL_DELTA_RULE)
        u[i] -= held;
      sm[US + i * COLS + c] = u[i] = u[i] * sm[BETA + i];
      if (VECTORS)
        sm[WS + i * COLS + c] = w[i] = held;
    }
  }

  /* The results of rows lo … n−1. */
  __device__ __forceinline__ void finish(int lo, int n) const {
    for (int x = threadIdx.x; x < (n - lo) * COLS; x += IFL_RC_THREADS) {
      const int i = lo + x / COLS, c = x % COLS, col = 16 * tile + c;
      if (c >= cols)
        continue;
      float y = product_of(YQ, i - lo, c);
#pragma unroll 4
      for (int j = 0; j <= i; j++) {
        y = fmaf(sm[QK + i * ROWS + j], sm[US + j * COLS + c], y);
        if (VECTORS)
          y = fmaf(sm[QB + i * ROWS + j], sm[WS + j * COLS + c], y);
      }
      if (col < VDIM)
        a.out[token[i] * a.ldo + (int64_t)head * VDIM + col] = y;
      if (cell[i] < 0)
        continue;
      float *row = ifl_cell_row(a.cells, cell[i], slot[i]) + head * V + col;
      row[U_AT] = sm[US + i * COLS + c];
      if (VECTORS)
        row[W_AT] = sm[WS + i * COLS + c];
    }
  }

  /* Computes rows lo … n−1 of a cell, whose rows up to n are staged. */
  __device__ __forceinline__ void compute(int lo, int n) {
    for (int job = warp; job < 4 * (n - lo); job += WARPS) {
      const int i = lo + job / 4, quarter = (job + i) & 3;
      if (4 * quarter <= i)
        coefficients(i, quarter, i - lo);
    }
    __syncthreads();
    read(n - lo);
    __syncthreads();
    solve(lo, n);
    __syncthreads();
    finish(lo, n);
    __syncthreads();
  }

  /* S = S·E + Σ_j x_j·u_j with the vectors x of the 16 rows; without `decays`, E is 1. */
  __device__ __forceinline__ void add(const float *x, const float *u, bool decays) {
#pragma unroll
    for (int j = 0; j < ROWS; j += 4) {
      float4 v[4];
#pragma unroll
      for (int i = 0; i < 4; i++)
        v[i] = *reinterpret_cast<const float4 *>(u + (j + i) * COLS + column());
#pragma unroll
      for (int n = 0; n < OWN; n++) {
        const int k = row_of(n);
        if (k >= DIM)
          continue;
        const float4 f = *reinterpret_cast<const float4 *>(x + k * PITCH + j);
        const float e = j == 0 && decays ? sm[ES + k] : 1.0f, each[4] = {f.x, f.y, f.z, f.w};
        m[n].x *= e, m[n].y *= e, m[n].z *= e, m[n].w *= e;
#pragma unroll
        for (int i = 0; i < 4; i++) {
          m[n].x = fmaf(each[i], v[i].x, m[n].x), m[n].y = fmaf(each[i], v[i].y, m[n].y);
          m[n].z = fmaf(each[i], v[i].z, m[n].z), m[n].w = fmaf(each[i], v[i].w, m[n].w);
        }
      }
    }
  }

  /* S of the next cell from the 16 staged rows of this one. It is stored as the start of cell `to`; −1: nowhere. */
  __device__ __forceinline__ void advance(int to) {
    for (int d = threadIdx.x; d < DIM; d += IFL_RC_THREADS) {
      float log = 0, e = 1;
#pragma unroll
      for (int j = ROWS - 1; j >= 0; j--) {
        sm[XQ + d * PITCH + j] = sm[KS + j * D + d] * e;
        if (VECTORS)
          sm[XR + d * PITCH + j] = sm[BS + j * D + d] * e;
        if (DECAYS == IFL_DECAY_NONE)
          continue;
        log += CHANNEL ? sm[GS + j * D + d] : HEAD ? sm[GS + j] : a.slopes[head] * a.slope_scale;
        e = expf(log);
      }
      sm[ES + d] = e;
    }
    __syncthreads();
    if (holds) {
      add(sm + XQ, sm + US, DECAYS != IFL_DECAY_NONE);
      if (VECTORS)
        add(sm + XR, sm + WS, false);
    }
#pragma unroll
    for (int n = 0; n < OWN; n++)
      if (to >= 0 && holds && row_of(n) < DIM)
        __stcg(start_of(to, n), m[n]);
    __syncthreads();
  }

  /* Computes the nodes of a tree whose root follows `have` rows of cell c; S before it is in registers, and zero or its start. */
  __device__ __forceinline__ void tree(int c, int have, int start) {
    const int end = s->first[seq + 1];
    bool moved = false; /* S and the rows are no longer those of cell c */
    for (int t = first; t < end; t++) {
      if (moved) {
        load(start);
        line(c, have, have);
        moved = false;
      }
      int n = have, k = first;
      for (;;) {
        const int lo = n;
        for (; k <= t && n < ROWS; k++) {
          if (k < t && !ifl_cells_sees(s, t, k - first))
            continue;
          if (threadIdx.x == 0)
            place(n, k, past + k - first);
          n++;
        }
        __syncthreads();
        stage(lo, n, k > t ? n - 1 : n);
        if (k > t)
          break;
        advance(-1);
        n = 0, moved = true;
      }
      compute(n - 1, n);
    }
  }

  __device__ __forceinline__ void run() {
    const int count = s->first[seq + 1] - first;
    if (count == 0)
      return;
    const bool branches = ifl_tree(s, seq);
    const int end = branches ? past : past + count, last = branches ? past / ROWS : (end - 1) / ROWS;
    int c = s->cell_from[seq], start = c > 0 ? list[c] : -1;
    load(start);
    for (;; c++) {
      const int n = ifl_min_int(end - c * ROWS, ROWS), have = ifl_max_int(ifl_min_int(past - c * ROWS, ROWS), 0);
      line(c, n, have);
      if (have < n)
        compute(have, n);
      if (c == last) {
        if (branches)
          tree(c, have, start);
        return;
      }
      advance(start = list[c + 1]);
    }
  }
};
