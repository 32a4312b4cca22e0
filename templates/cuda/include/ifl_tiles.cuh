/* Attention on tensor cores. A thread block computes a tile of up to QT query rows of one KV head and one sequence over a
 * split of the context, KEYS rows at a time. Row i of a sequence is query head i % GROUP of its token i / GROUP, so that
 * heads that share keys fill the M operand of mma.sync together. Keys and values are loaded through two cp.async stages;
 * int8 elements are converted to 16-bit floats in shared memory. Queries and probabilities are split into sums of two 16-bit
 * floats, like activations in ifl_flat.cuh. Warps divide the rows and, if there are few rows, the keys of a stage. The parts
 * of warps and then of blocks are merged in order.
 *
 * Softmax uses a running maximum or, if a model's scores have a narrow range, the unified maximum of FlashDecoding++ (§3):
 * exponents are relative to a constant, so that no stage waits for an earlier maximum and no sum is rescaled. Two cases fall
 * back to the running maximum: a block's part with a score too far above the constant, and a whole tile, computed by its
 * last block, if the sum of a row's probabilities is too small. */
#pragma once
#include "ifl_tile_rows.cuh"

/* The work of one block. UNIFIED: start with exponents relative to the constant phi, which is times log₂e. */
template <class K, int HEADS, int KV_HEADS, int DIM, int VDIM, int QT, int KEYS, bool UNIFIED>
struct ifl_tile : ifl_tile_rows<K, HEADS, KV_HEADS, DIM, VDIM, QT, KEYS> {
  typedef ifl_tile_rows<K, HEADS, KV_HEADS, DIM, VDIM, QT, KEYS> rows_of;
  typedef typename rows_of::S S;
  typedef typename rows_of::E E;
  typedef ifl_tile_type<K> T;
  using rows_of::a, rows_of::sm, rows_of::kv, rows_of::row, rows_of::n, rows_of::first, rows_of::rows, rows_of::from, rows_of::to;
  using rows_of::tree, rows_of::lane, rows_of::local, rows_of::row_warp, rows_of::info, rows_of::swizzled;
  static constexpr int D = rows_of::D, V = rows_of::V, GROUP = rows_of::GROUP, NT = S::WARP_KEYS / 8;

  float phi, top[2], sum[2], o[V / 8][4]; /* for this thread's two query rows */
  bool over;                              /* a score was too far above phi */

  __device__ __forceinline__ ifl_tile(const ifl_attention &a_, uint8_t *sm_, float phi_) : rows_of(a_, sm_), phi(phi_) {}
  __device__ __forceinline__ int key_warp() const { return (threadIdx.x >> 5) / S::ROW_WARPS; }
  __device__ __forceinline__ bool idle() const { return 16 * row_warp() >= n; }
  __device__ __forceinline__ float *sums() const { return reinterpret_cast<float *>(sm + S::SUMS); } /* top, sum [QT] */
  __device__ __forceinline__ int *flag() const { return reinterpret_cast<int *>(sm + S::FLAG); }
  __device__ __forceinline__ float *parts() const { return reinterpret_cast<float *>(sm + S::STAGES); }

  /* The scores of a chunk, times log₂e, for the thread's two rows; −∞ for masked rows. */
  __device__ __forceinline__ void scores(int chunk, const uint8_t *keys, float (&s)[NT][4]) {
    const int l = lane(); /* the thread reads keys at constant offsets from here: */
    const uint8_t *at = keys + S::WARP_KEYS * key_warp() * 2 * D + 16 * swizzled((l & 15) * 2 + (l >> 4));
#pragma unroll
    for (int ks = 0; ks < D / 16; ks++) {
      uint32_t hi[4], rest[4];
      const uint8_t *q = sm + S::Q + (16 * row_warp() + (l & 15)) * S::QROW + 32 * ks + (l >> 4) * 16;
      ifl_ldmatrix_x4(hi, q);
      ifl_ldmatrix_x4(rest, q + QT * S::QROW);
#pragma unroll
      for (int j = 0; j < NT / 2; j++) {
        uint32_t b[4];
        ifl_ldmatrix_x4_trans(b, at + 32 * (j * D + 16 * ks));
        const uint32_t even[2] = {b[0], b[1]}, odd[2] = {b[2], b[3]};
        E::mma(s[2 * j], hi, even);
        E::mma(s[2 * j + 1], hi, odd);
        E::mma(s[2 * j], rest, even);
        E::mma(s[2 * j + 1], rest, odd);
      }
    }
    const bool all = !tree && !a.selected && a.every <= 1 && chunk * KEYS >= info()[2 * QT - 1] && chunk * KEYS + KEYS <= info()[2 * QT];
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int j = 0; j < NT; j++)
#pragma unroll
        for (int e = 2 * h; e < 2 * h + 2; e++) {
          const int r = S::WARP_KEYS * key_warp() + 8 * j + 2 * (l & 3) + (e & 1);
          int pos = chunk * KEYS + r;
          const bool see = all || this->sees(chunk, r, h, pos);
          float x = s[j][e];
          if (a.softcap > 0)
            x = a.softcap * IFL_LOG2E * tanhf(x);
          if (a.alibi || a.rel)
            x = fmaf(ifl_attn_bias(a, this->head(h), see ? pos : this->own(h), this->own(h)), IFL_LOG2E, x);
          s[j][e] = see ? x : -INFINITY;
        }
  }

  /* Replaces scores with probabilities relative to the running maximum, and rescales earlier sums. */
  __device__ __forceinline__ void weigh(float (&s)[NT][4]) {
#pragma unroll
    for (int h = 0; h < 2; h++) {
      float most = top[h];
#pragma unroll
      for (int j = 0; j < NT; j++)
        most = fmaxf(most, fmaxf(s[j][2 * h], s[j][2 * h + 1]));
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, 2));
      const float base = most == -INFINITY ? 0.0f : most, shrink = exp2f(top[h] - base);
      top[h] = most;
      sum[h] *= shrink;
#pragma unroll
      for (int j = 0; j < NT; j++)
#pragma unroll
        for (int e = 2 * h; e < 2 * h + 2; e++)
          sum[h] += s[j][e] = exp2f(s[j][e] - base);
#pragma unroll
      for (int i = 0; i < V / 8; i++)
        o[i][2 * h] *= shrink, o[i][2 * h + 1] *= shrink;
    }
  }

  /* Replaces scores with probabilities relative to phi. */
  __device__ __forceinline__ void weigh_unified(float (&s)[NT][4]) {
#pragma unroll
    for (int j = 0; j < NT; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        over = over || s[j][e] - phi > T::MOST;
        sum[e >> 1] += s[j][e] = exp2f(s[j][e] - phi);
      }
  }

  /* Adds the weighted values of a chunk. The accumulator layout of the first mma is the M operand layout of the second. */
  __device__ __forceinline__ void values(const uint8_t *v, const float (&s)[NT][4]) {
    const int l = lane();
#pragma unroll
    for (int j = 0; j < NT / 2; j++) {
      uint32_t hi[4], rest[4];
#pragma unroll
      for (int i = 0; i < 4; i++)
        E::split(s[2 * j + (i >> 1)][2 * (i & 1)], s[2 * j + (i >> 1)][2 * (i & 1) + 1], hi[i], rest[i]);
      const uint8_t *at = v + (S::WARP_KEYS * key_warp() + 16 * j + (l & 15)) * S::VROW + (l >> 4) * 16;
#pragma unroll
      for (int i = 0; i < V / 16; i++) {
        uint32_t b[4];
        ifl_ldmatrix_x4_trans(b, at + 32 * i);
        const uint32_t even[2] = {b[0], b[1]}, odd[2] = {b[2], b[3]};
        E::mma(o[2 * i], hi, even);
        E::mma(o[2 * i + 1], hi, odd);
        E::mma(o[2 * i], rest, even);
        E::mma(o[2 * i + 1], rest, odd);
      }
    }
  }

  /* Computes chunks c0 … c1−1, and stores the part of each warp in shared memory if warps divide the keys. */
  __device__ __forceinline__ void pass(int c0, int c1, bool unified) {
    over = false;
#pragma unroll
    for (int h = 0; h < 2; h++)
      top[h] = -INFINITY, sum[h] = 0;
#pragma unroll
    for (int i = 0; i < V / 8; i++)
#pragma unroll
      for (int e = 0; e < 4; e++)
        o[i][e] = 0;
    if (c0 < c1)
      this->fetch(c0);
    ifl_cp_async_commit();
    for (int chunk = c0; chunk < c1; chunk++) {
      if (tree)
        this->nodes(chunk);
      ifl_cp_async_wait<0>();
      __syncthreads(); /* the chunk is complete, and all threads have finished the previous one */
      if (chunk + 1 < c1)
        this->fetch(chunk + 1);
      ifl_cp_async_commit();
      const uint8_t *tile = sm + S::STAGES + (chunk & 1) * S::STAGE;
      if constexpr (K::scaled) {
        this->unpack(chunk);
        __syncthreads();
        tile = sm + S::UNPACKED;
      }
      if (idle())
        continue;
      float s[NT][4] = {};
      scores(chunk, tile, s);
      if (unified)
        weigh_unified(s);
      else
        weigh(s);
      values(tile + KEYS * 2 * D, s);
    }
    __syncthreads();
    leave(unified);
    __syncthreads();
  }

  /* A part: the rows' largest scores [n], sums of weights [n] and weighted values [n][V]. */
  __device__ __forceinline__ int part() const { return n * (2 + V); }
  __device__ __forceinline__ void leave(bool unified) {
    float *p = parts() + key_warp() * part();
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int r = local(h);
      sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], 1);
      sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], 2);
      if (r >= n)
        continue;
      if (unified && sum[h] > 0)
        top[h] = phi;
      if ((lane() & 3) == 0)
        p[r] = top[h], p[n + r] = sum[h];
#pragma unroll
      for (int i = 0; i < V / 8; i++) {
        float *out = p + 2 * n + r * V + 8 * i + 2 * (lane() & 3);
        out[0] = o[i][2 * h], out[1] = o[i][2 * h + 1];
      }
    }
  }

  /* Stores the maximum score and the sum of each row over some parts to shared memory; parts of other blocks are read
   * past L1. */
  template <bool FAR> static __device__ __forceinline__ float read(const float *p) { return FAR ? __ldcg(p) : *p; }
  template <bool FAR> __device__ __forceinline__ void merge(const float *p, int count) {
    for (int r = threadIdx.x; r < n; r += S::THREADS) {
      float most = -INFINITY, total = 0;
      for (int i = 0; i < count; i++)
        most = fmaxf(most, read<FAR>(p + (int64_t)i * part() + r));
      for (int i = 0; i < count; i++)
        total = fmaf(read<FAR>(p + (int64_t)i * part() + n + r), factor(read<FAR>(p + (int64_t)i * part() + r), most), total);
      sums()[r] = most, sums()[QT + r] = total;
    }
    __syncthreads();
  }
  static __device__ __forceinline__ float factor(float m, float most) { return m == -INFINITY ? 0.0f : exp2f(m - most); }
  template <bool FAR> __device__ __forceinline__ float merged(const float *p, int count, int at) const {
    float x = 0;
    for (int i = 0; i < count; i++, p += part())
      x = fmaf(read<FAR>(p + 2 * n + at), factor(read<FAR>(p + at / V), sums()[at / V]), x);
    return x;
  }

  /* Stores the block's part, and reports whether this block is the last one of its tile. */
  __device__ __forceinline__ float *shared_parts() const { /* for all blocks of this tile */
    const int64_t at = (int64_t)kv * a.step->tokens * GROUP + first * GROUP + row;
    return reinterpret_cast<float *>(a.scratch) + at * gridDim.z * (2 + V);
  }
  __device__ __forceinline__ bool last() {
    float *mine = shared_parts() + (int64_t)blockIdx.z * part();
    for (int r = threadIdx.x; r < n; r += S::THREADS)
      mine[r] = sums()[r], mine[n + r] = sums()[QT + r];
    for (int i = threadIdx.x; i < n * V; i += S::THREADS)
      mine[2 * n + i] = merged<false>(parts(), S::KEY_WARPS, i);
    return ifl_attn_last(a, first * HEADS + row / GROUP * HEADS + kv * GROUP + row % GROUP, flag());
  }

  template <bool FAR> __device__ __forceinline__ void finish(const float *p, int count) {
    for (int i = threadIdx.x; i < n * VDIM; i += S::THREADS) {
      const int r = i / VDIM, at = row + r, h = kv * GROUP + at % GROUP;
      const float f = ifl_attn_factor(a, h, sums()[r], sums()[QT + r]);
      if (a.lse && i % VDIM == 0)
        ifl_attn_write_lse(a, first + at / GROUP, (int64_t)HEADS * VDIM, h, sums()[r], sums()[QT + r]);
      a.out[(first + at / GROUP) * a.ldo + (int64_t)h * VDIM + i % VDIM] = f == 0 ? 0.0f : merged<FAR>(p, count, r * V + i % VDIM) * f;
    }
  }

  /* Reports whether the condition holds in any thread. */
  __device__ __forceinline__ bool any(bool say) const {
    if (threadIdx.x == 0)
      flag()[1] = 0;
    __syncthreads();
    if (say)
      atomicExch(flag() + 1, 1);
    __syncthreads();
    const bool said = flag()[1];
    __syncthreads();
    return said;
  }
  /* Reports whether the sum relative to phi is too small for one of this thread's rows. */
  __device__ __forceinline__ bool low() const {
    bool is = false;
    for (int r = threadIdx.x; r < n; r += S::THREADS)
      is = is || sums()[r] == -INFINITY || (sums()[r] == phi && sums()[QT + r] < T::LEAST);
    return is;
  }

  __device__ __forceinline__ void run() {
    if (!this->find())
      return;
    this->open();
    const int lo_ = from / KEYS, count = ifl_max_int((to + KEYS - 1) / KEYS - lo_, 0);
    int c0 = lo_ + (int)((int64_t)count * blockIdx.z / gridDim.z), c1 = lo_ + (int)((int64_t)count * (blockIdx.z + 1) / gridDim.z);
    bool unified = UNIFIED, split = gridDim.z > 1;
    for (;;) {
      pass(c0, c1, unified);
      if (unified && any(over)) {
        unified = false;
        continue;
      }
      merge<false>(parts(), S::KEY_WARPS);
      if (split) {
        if (!last())
          return;
        merge<true>(shared_parts(), gridDim.z);
      }
      if (!UNIFIED || !any(low()))
        break;
      if (c0 == lo_ && c1 == lo_ + count && !unified)
        break; /* the row sees nothing */
      unified = split = false;
      c0 = lo_, c1 = lo_ + count;
    }
    if (split)
      finish<true>(shared_parts(), gridDim.z);
    else
      finish<false>(parts(), S::KEY_WARPS);
  }
};
