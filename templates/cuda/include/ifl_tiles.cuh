/* Attention on tensor cores. A block of threads takes a tile of up to QT query rows of one KV head and one sequence (row i
 * of a sequence is query head i % GROUP of its token i / GROUP, so that heads which share keys fill the M operand of
 * mma.sync together) over some of the context, KEYS state rows at a time. Keys and values come through two stages of
 * cp.async; int8 ones become 16-bit floats in shared memory. Queries and weights go as sums of two 16-bit numbers, as
 * activations do in ifl_flat.cuh. Warps share the rows out, and where there are few rows the keys of a stage; parts of
 * warps, and then parts of blocks, are merged in order.
 *
 * Softmax is the usual one with a running maximum, or, where a model's scores lie close enough together, FlashDecoding++'s
 * (§3): weights are taken relative to one constant, so that no stage waits for the maximum of the ones before and nothing is
 * scaled again. What its numbers cannot hold is computed once more in the usual way: a block's part with a score too far
 * above the constant, and all parts of a tile, by the last of its blocks, when the weights of a row come to too little. */
#pragma once
#include "ifl_attention.cuh"
#include "ifl_flat.cuh"

/* What the numbers of a state type are in shared memory, and what weights relative to a constant may be there: the largest
 * exponent, and the least sum of a row's. Of a weight in f16 what is below 2⁻²⁵ is lost. (codegen/cuda_tiles.go knows both.) */
template <class K> struct ifl_tile_type {
  typedef ifl_flat_f16 type;
  static constexpr float MOST = 15, LEAST = 0.0625f;
};
template <> struct ifl_tile_type<ifl_kv_bf16> {
  typedef ifl_flat_bf16 type;
  static constexpr float MOST = 60, LEAST = 1e-18f;
};

/* Sizes and places in shared memory, in bytes; codegen/cuda_tiles.go adds up the same. D and V are the widths of key and
 * value heads in a page. */
template <class K, int D, int V, int QT, int KEYS> struct ifl_tile_shape {
  static constexpr int ROW_WARPS = QT / 16, KEY_WARPS = 4 / ROW_WARPS < KEYS / 16 ? 4 / ROW_WARPS : KEYS / 16;
  static constexpr int THREADS = 32 * ROW_WARPS * KEY_WARPS, WARP_KEYS = KEYS / KEY_WARPS;
  static constexpr int QROW = 2 * D + 16, VROW = 2 * V + 16; /* 16 more, so that rows begin in different banks */
  static constexpr int KB = (D + 31) / 32, VB = (V + 31) / 32; /* blocks of int8 rows */
  static constexpr int TILE = KEYS * (2 * D + VROW), RAW = KEYS * (D + V + 2 * (KB + VB));
  static constexpr int STAGE = K::scaled ? RAW : TILE;
  static constexpr int Q = 0, INFO = 2 * QT * QROW, NODE = INFO + 12 * QT, SUMS = NODE + 16 * KEYS, FLAG = SUMS + 8 * QT,
                       STAGES = FLAG + 16, UNPACKED = STAGES + 2 * STAGE;
};

/* One block. UNIFIED: weights are relative to the constant phi, times log₂e, at first. */
template <class K, int HEADS, int KV_HEADS, int DIM, int VDIM, int QT, int KEYS, bool UNIFIED> struct ifl_tile {
  static constexpr int D = (DIM + 15) / 16 * 16, V = (VDIM + 15) / 16 * 16;
  typedef ifl_tile_shape<K, D, V, QT, KEYS> S;
  typedef ifl_tile_type<K> T;
  typedef typename T::type E;
  static constexpr int GROUP = HEADS / KV_HEADS, NT = S::WARP_KEYS / 8, PLAIN = -2;

  const ifl_attention &a;
  uint8_t *sm;
  float phi;
  int kv, seq, row, n, first; /* the tile: rows row … row+n−1 of a sequence whose tokens begin at `first` */
  int rows, past, from, to;   /* state rows of the sequence, those before this step, those that any query row sees */
  bool tree;
  int own[2], lo[2], end[2], token[2], head[2]; /* of this thread's two query rows */
  float top[2], sum[2], o[V / 8][4];
  bool over; /* a score was too far above phi */

  __device__ __forceinline__ ifl_tile(const ifl_attention &a_, uint8_t *sm_, float phi_) : a(a_), sm(sm_), phi(phi_), kv(blockIdx.x) {}
  __device__ __forceinline__ int lane() const { return threadIdx.x & 31; }
  __device__ __forceinline__ int row_warp() const { return (threadIdx.x >> 5) % S::ROW_WARPS; }
  __device__ __forceinline__ int key_warp() const { return (threadIdx.x >> 5) / S::ROW_WARPS; }
  __device__ __forceinline__ bool idle() const { return 16 * row_warp() >= n; }
  __device__ __forceinline__ int *info() const { return reinterpret_cast<int *>(sm + S::INFO); } /* own, lo, end [QT] */
  __device__ __forceinline__ int *node(int chunk) const { /* place in the tree, position [KEYS] */
    return reinterpret_cast<int *>(sm + S::NODE) + (chunk & 1) * 2 * KEYS;
  }
  __device__ __forceinline__ float *sums() const { return reinterpret_cast<float *>(sm + S::SUMS); } /* top, sum [QT] */
  __device__ __forceinline__ int *flag() const { return reinterpret_cast<int *>(sm + S::FLAG); }
  __device__ __forceinline__ float *parts() const { return reinterpret_cast<float *>(sm + S::STAGES); }

  /* Finds the block's tile; there are at most as many as rows fill, and one less than there are sequences. */
  __device__ __forceinline__ bool find() {
    const ifl_step *s = a.step;
    int tile = blockIdx.y;
    for (seq = 0; seq < s->seqs; seq++) {
      first = s->first[seq];
      const int count = (s->first[seq + 1] - first) * GROUP, tiles = (count + QT - 1) / QT;
      if (tile < tiles) {
        row = tile * QT, n = ifl_min_int(QT, count - row);
        return true;
      }
      tile -= tiles;
    }
    return false;
  }

  /* Reads the query rows, times the factor of scores, and what each sees. Rows behind the last are copies of it. */
  __device__ __forceinline__ void open() {
    tree = ifl_attn_tree(a.step, seq);
    rows = ifl_attn_seq_rows(a.step, seq), past = a.step->past[seq];
    for (int r = threadIdx.x; r < QT; r += S::THREADS) {
      const int t = first + (row + ifl_min_int(r, n - 1)) / GROUP;
      info()[r] = ifl_attn_own(a.step, t);
      info()[QT + r] = ifl_attn_first_row(a, t);
      info()[2 * QT + r] = ifl_min_int(ifl_attn_end_row(a, t, rows), rows);
    }
    const float f = a.softcap > 0 ? a.scale / a.softcap : a.scale * IFL_LOG2E;
    for (int i = threadIdx.x; i < QT * D / 2; i += S::THREADS) {
      const int r = i / (D / 2), c = i % (D / 2) * 2, at = row + ifl_min_int(r, n - 1);
      const float *q = a.q + (first + at / GROUP) * a.ldq + (int64_t)(kv * GROUP + at % GROUP) * DIM + c;
      uint32_t hi, rest;
      E::split(c < DIM ? q[0] * f : 0.0f, c + 1 < DIM ? q[1] * f : 0.0f, hi, rest);
      *reinterpret_cast<uint32_t *>(sm + S::Q + r * S::QROW + 2 * c) = hi;
      *reinterpret_cast<uint32_t *>(sm + S::Q + (QT + r) * S::QROW + 2 * c) = rest;
    }
    __syncthreads();
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int r = 16 * row_warp() + (lane() >> 2) + 8 * h, i = row + ifl_min_int(r, n - 1);
      own[h] = info()[r], lo[h] = info()[QT + r], end[h] = info()[2 * QT + r];
      token[h] = first + i / GROUP, head[h] = kv * GROUP + i % GROUP;
    }
    from = info()[QT], to = tree ? rows : info()[3 * QT - 1]; /* in order, but in a tree */
    for (int r = 1; tree && r < n; r++)
      from = ifl_min_int(from, info()[QT + r]);
  }

  /* Brings KEYS state rows into a stage. Nobody wrote what lies behind the last row and behind the last channel: values of
   * such rows and keys of such channels become 0, all else of it is left out later. */
  __device__ __forceinline__ void fetch(int chunk) {
    const int at = chunk * KEYS;
    const uint8_t *page = a.state + ifl_kv_page(a.step, seq, at) * a.page_bytes;
    uint8_t *keys = sm + S::STAGES + (chunk & 1) * S::STAGE;
    const int64_t k = ifl_kv_key_at(at % 64, kv, DIM), v = ifl_kv_value_at(at % 64, kv, KV_HEADS, DIM, VDIM);
    if constexpr (K::scaled) {
      const uint8_t *scales = page + ifl_kv_elements(KV_HEADS, DIM, VDIM);
      uint8_t *values = keys + KEYS * D, *key_scales = values + KEYS * V, *value_scales = key_scales + KEYS * 2 * S::KB;
      copy(keys, page + k, KEYS * D / 16);
      copy(values, page + v, KEYS * V / 16);
      copy(key_scales, scales + 2 * ifl_kv_key_scale_at(at % 64, kv, DIM), KEYS * S::KB / 8);
      for (int i = threadIdx.x; i < KEYS / 8 * S::VB; i += S::THREADS)
        ifl_cp_async16(value_scales + 16 * i, scales + 2 * (ifl_kv_value_scale_at(at % 64, kv, KV_HEADS, DIM, VDIM) +
                                                            i / (KEYS / 8) * 64 + i % (KEYS / 8) * 8));
    } else {
      uint8_t *values = keys + KEYS * 2 * D;
      for (int i = threadIdx.x; i < KEYS * D / 8; i += S::THREADS)
        bring(i / 2 % D < DIM, keys + 16 * swizzled(i), page + 2 * k + 16 * i);
      for (int i = threadIdx.x; i < KEYS * V / 8; i += S::THREADS)
        bring(at + i / (V / 8) < rows, values + i / (V / 8) * S::VROW + i % (V / 8) * 16, page + 2 * v + 16 * i);
    }
  }
  static __device__ __forceinline__ void bring(bool written, uint8_t *to, const uint8_t *from) {
    if (written)
      ifl_cp_async16(to, from);
    else
      *reinterpret_cast<uint4 *>(to) = make_uint4(0, 0, 0, 0);
  }
  static __device__ __forceinline__ void copy(uint8_t *to, const uint8_t *from, int count) {
    for (int i = threadIdx.x; i < count; i += S::THREADS)
      ifl_cp_async16(to + 16 * i, from + 16 * i);
  }
  /* Where piece i of eight keys of a channel lies: eight channels on, and none of them shares banks. */
  static __device__ __forceinline__ int swizzled(int i) { return i ^ (i >> 3 & 1); }

  /* Turns a stage of int8 rows into one of 16-bit floats. */
  __device__ __forceinline__ void unpack(int chunk) {
    const uint8_t *keys = sm + S::STAGES + (chunk & 1) * S::STAGE, *values = keys + KEYS * D, *scales = values + KEYS * V;
    const uint16_t *ks = reinterpret_cast<const uint16_t *>(scales), *vs = ks + KEYS * S::KB;
    uint8_t *to_keys = sm + S::UNPACKED, *to_values = to_keys + KEYS * 2 * D;
    for (int i = threadIdx.x; i < KEYS * D / 8; i += S::THREADS) { /* eight rows of a channel, each with its own scale */
      const int d = i / 2 % D;
      const uint16_t *scale = ks + (i / (2 * D) * S::KB + d / 32) * 16 + i % 2 * 8;
      *reinterpret_cast<uint4 *>(to_keys + 16 * swizzled(i)) =
          eight(keys + 8 * i, [&](int j) { return d < DIM ? scale[j] : (uint16_t)0; });
    }
    for (int i = threadIdx.x; i < KEYS * V / 8; i += S::THREADS) { /* eight channels of a row */
      const int r = i / (V / 8), c = i % (V / 8);
      const uint16_t scale = chunk * KEYS + r < rows ? vs[c / 4 * KEYS + r] : 0;
      *reinterpret_cast<uint4 *>(to_values + r * S::VROW + 16 * c) = eight(values + 8 * i, [&](int) { return scale; });
    }
  }
  template <class F> static __device__ __forceinline__ uint4 eight(const uint8_t *codes, F scale) {
    const uint2 c = *reinterpret_cast<const uint2 *>(codes);
    uint32_t x[4];
#pragma unroll
    for (int j = 0; j < 4; j++) {
      const uint32_t two = (j < 2 ? c.x : c.y) >> 16 * (j & 1);
      uint32_t rest;
      E::split((float)(int8_t)two * ifl_half_bits(scale(2 * j)), (float)(int8_t)(two >> 8) * ifl_half_bits(scale(2 * j + 1)),
               x[j], rest);
    }
    return make_uint4(x[0], x[1], x[2], x[3]);
  }

  /* Which of the tree's tokens wrote each row of a chunk, and at which position; PLAIN for rows of before. */
  __device__ __forceinline__ void nodes(int chunk) {
    const ifl_step *s = a.step;
    for (int r = threadIdx.x; r < KEYS; r += S::THREADS) {
      const int slot = chunk * KEYS + r;
      int at = slot < past ? PLAIN : -1, pos = slot;
      for (int u = first; at == -1 && u < s->first[seq + 1]; u++)
        if (s->slot[u] == slot && u - first < 64 * s->mask_words)
          at = u - first, pos = s->pos[u];
      node(chunk)[r] = at, node(chunk)[KEYS + r] = pos;
    }
  }

  /* The scores of a chunk, times log₂e, of the thread's two rows: −∞ where a row does not see. */
  __device__ __forceinline__ void scores(int chunk, const uint8_t *keys, float (&s)[NT][4]) {
    const int l = lane(), w = S::WARP_KEYS / 16 * key_warp();
#pragma unroll
    for (int ks = 0; ks < D / 16; ks++) {
      uint32_t hi[4], rest[4];
      const uint8_t *q = sm + S::Q + (16 * row_warp() + (l & 15)) * S::QROW + 32 * ks + (l >> 4) * 16;
      ifl_ldmatrix_x4(hi, q);
      ifl_ldmatrix_x4(rest, q + QT * S::QROW);
#pragma unroll
      for (int j = 0; j < NT / 2; j++) {
        uint32_t b[4];
        ifl_ldmatrix_x4_trans(b, keys + 16 * swizzled(((w + j) * D + 16 * ks + (l & 15)) * 2 + (l >> 4)));
        const uint32_t even[2] = {b[0], b[1]}, odd[2] = {b[2], b[3]};
        E::mma(s[2 * j], hi, even);
        E::mma(s[2 * j + 1], hi, odd);
        E::mma(s[2 * j], rest, even);
        E::mma(s[2 * j + 1], rest, odd);
      }
    }
    const bool all = !tree && chunk * KEYS >= info()[2 * QT - 1] && chunk * KEYS + KEYS <= info()[2 * QT];
#pragma unroll
    for (int j = 0; j < NT; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int h = e >> 1, r = S::WARP_KEYS * key_warp() + 8 * j + 2 * (l & 3) + (e & 1);
        int pos = chunk * KEYS + r;
        const bool see = all || sees(chunk, r, h, pos);
        float x = s[j][e];
        if (a.softcap > 0)
          x = a.softcap * IFL_LOG2E * tanhf(x);
        if (a.alibi || a.rel)
          x = fmaf(ifl_attn_bias(a, head[h], see ? pos : own[h], own[h]), IFL_LOG2E, x);
        s[j][e] = see ? x : -INFINITY;
      }
  }
  __device__ __forceinline__ bool sees(int chunk, int r, int h, int &pos) const {
    if (!tree || node(chunk)[r] == PLAIN)
      return pos >= lo[h] && pos < end[h];
    const int at = node(chunk)[r];
    pos = node(chunk)[KEYS + r];
    if (at < 0 || pos < lo[h] || pos >= end[h])
      return false;
    return a.step->mask[(int64_t)token[h] * a.step->mask_words + at / 64] >> (at % 64) & 1;
  }

  /* Turns scores into weights relative to the rows' largest so far, by which the sums so far shrink. */
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

  /* The same relative to phi. */
  __device__ __forceinline__ void weigh_unified(float (&s)[NT][4]) {
#pragma unroll
    for (int j = 0; j < NT; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) {
        over = over || s[j][e] - phi > T::MOST;
        sum[e >> 1] += s[j][e] = exp2f(s[j][e] - phi);
      }
  }

  /* Adds the weighted values of a chunk. The layout of sums of one product is that of the M operand of the next. */
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

  /* The chunks c0 … c1−1: leaves a part of each of the warps that share keys out in shared memory. */
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
      fetch(c0);
    ifl_cp_async_commit();
    for (int chunk = c0; chunk < c1; chunk++) {
      if (tree)
        nodes(chunk);
      ifl_cp_async_wait<0>();
      __syncthreads(); /* every thread's part of the chunk is there, and all are done with the chunk before */
      if (chunk + 1 < c1)
        fetch(chunk + 1);
      ifl_cp_async_commit();
      const uint8_t *tile = sm + S::STAGES + (chunk & 1) * S::STAGE;
      if constexpr (K::scaled) {
        unpack(chunk);
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
      const int r = 16 * row_warp() + (lane() >> 2) + 8 * h;
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

  /* The largest score and the sum of each row over some parts, to shared memory; other blocks' parts are read past the
   * first cache. */
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

  /* Leaves the block's part for the block that finishes last, and says whether this one does. */
  __device__ __forceinline__ float *shared_parts() const { /* of all blocks with this tile */
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
      a.out[(first + at / GROUP) * a.ldo + (int64_t)h * VDIM + i % VDIM] = f == 0 ? 0.0f : merged<FAR>(p, count, r * V + i % VDIM) * f;
    }
  }

  /* Whether any thread says so. */
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
  /* Whether weights relative to phi were too small for one of the rows that this thread looks at. */
  __device__ __forceinline__ bool low() const {
    bool is = false;
    for (int r = threadIdx.x; r < n; r += S::THREADS)
      is = is || sums()[r] == -INFINITY || (sums()[r] == phi && sums()[QT + r] < T::LEAST);
    return is;
  }

  __device__ __forceinline__ void run() {
    if (!find())
      return;
    open();
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
        break; /* a row that sees nothing */
      unified = split = false;
      c0 = lo_, c1 = lo_ + count;
    }
    if (split)
      finish<true>(shared_parts(), gridDim.z);
    else
      finish<false>(parts(), S::KEY_WARPS);
  }
};
