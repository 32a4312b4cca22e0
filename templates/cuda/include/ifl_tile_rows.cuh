/* The inputs of attention on tensor cores (ifl_tiles.cuh): a block's tile of query rows, and stages of KV cache rows that
 * cp.async loads into shared memory. int8 rows are converted to 16-bit floats there. */
#pragma once
#include "ifl_attention.cuh"
#include "ifl_flat.cuh"

/* The 16-bit type of a KV cache type in shared memory, and its limits for the unified maximum: the largest exponent, and the
 * least sum of a row's probabilities. f16 loses probabilities below 2⁻²⁵. (codegen/cuda/tiles.go uses the same limits.) */
template <class K> struct ifl_tile_type {
  typedef ifl_flat_f16 type;
  static constexpr float MOST = 15, LEAST = 0.0625f;
};
template <> struct ifl_tile_type<ifl_kv_bf16> {
  typedef ifl_flat_bf16 type;
  static constexpr float MOST = 60, LEAST = 1e-18f;
};

/* Sizes and offsets in shared memory, in bytes; codegen/cuda/tiles.go computes the same. D and V are the widths of key and
 * value heads in a page. */
template <class K, int D, int V, int QT, int KEYS> struct ifl_tile_shape {
  static constexpr int ROW_WARPS = QT / 16, KEY_WARPS = 4 / ROW_WARPS < KEYS / 16 ? 4 / ROW_WARPS : KEYS / 16;
  static constexpr int THREADS = 32 * ROW_WARPS * KEY_WARPS, WARP_KEYS = KEYS / KEY_WARPS;
  static constexpr int QROW = 2 * D + 16, VROW = 2 * V + 16; /* 16 bytes of padding, so that rows start in different banks */
  static constexpr int KB = (D + 31) / 32, VB = (V + 31) / 32; /* blocks of int8 rows */
  static constexpr int TILE = KEYS * (2 * D + VROW), RAW = KEYS * (D + V + 2 * (KB + VB));
  static constexpr int STAGE = K::scaled ? RAW : TILE;
  static constexpr int Q = 0, INFO = 2 * QT * QROW, NODE = INFO + 12 * QT, SUMS = NODE + 16 * KEYS, FLAG = SUMS + 8 * QT,
                       STAGES = FLAG + 16, UNPACKED = STAGES + 2 * STAGE;
};

/* The tile of a block. D and V are the widths of heads in a page. */
template <class K, int HEADS, int KV_HEADS, int DIM, int VDIM, int QT, int KEYS> struct ifl_tile_rows {
  static constexpr int D = (DIM + 15) / 16 * 16, V = (VDIM + 15) / 16 * 16, GROUP = HEADS / KV_HEADS, PLAIN = -2;
  typedef ifl_tile_shape<K, D, V, QT, KEYS> S;
  typedef typename ifl_tile_type<K>::type E;

  const ifl_attention &a;
  uint8_t *sm;
  int kv, seq, row, n, first; /* the tile: rows row … row+n−1 of a sequence; `first` is its first token */
  int rows, past, from, to;   /* KV cache rows: of the sequence, before this step, and the range that any query row sees */
  bool tree;

  __device__ __forceinline__ ifl_tile_rows(const ifl_attention &a_, uint8_t *sm_) : a(a_), sm(sm_), kv(blockIdx.x) {}
  __device__ __forceinline__ int lane() const { return threadIdx.x & 31; }
  __device__ __forceinline__ int row_warp() const { return (threadIdx.x >> 5) % S::ROW_WARPS; }
  __device__ __forceinline__ int *info() const { return reinterpret_cast<int *>(sm + S::INFO); } /* own, lo, end [QT] */
  /* This thread's query row h of two. The limits of its visible rows are read from shared memory on demand: they would
   * occupy ten registers that the products need. */
  __device__ __forceinline__ int local(int h) const { return 16 * row_warp() + (lane() >> 2) + 8 * h; }
  __device__ __forceinline__ int own(int h) const { return info()[local(h)]; }
  __device__ __forceinline__ int lo(int h) const { return info()[QT + local(h)]; }
  __device__ __forceinline__ int end(int h) const { return info()[2 * QT + local(h)]; }
  __device__ __forceinline__ int token(int h) const { return first + (row + ifl_min_int(local(h), n - 1)) / GROUP; }
  __device__ __forceinline__ int head(int h) const { return kv * GROUP + (row + ifl_min_int(local(h), n - 1)) % GROUP; }
  __device__ __forceinline__ int *node(int chunk) const { /* place in the tree, position [KEYS] */
    return reinterpret_cast<int *>(sm + S::NODE) + (chunk & 1) * 2 * KEYS;
  }

  /* Finds the block's tile. The grid is sized for ⌈rows/QT⌉ + sequences − 1 tiles, the most that are possible. Returns
   * false if there is no tile for the block. */
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

  /* Loads the query rows, times the factor of scores, and the range that each sees. Rows beyond the last repeat it. */
  __device__ __forceinline__ void open() {
    tree = ifl_tree(a.step, seq);
    rows = ifl_attn_seq_rows(a.step, seq), past = a.step->past[seq];
    for (int r = threadIdx.x; r < QT; r += S::THREADS) {
      const int t = first + (row + ifl_min_int(r, n - 1)) / GROUP;
      info()[r] = ifl_attn_own(a.step, t);
      info()[QT + r] = ifl_attn_first_row(a, t);
      info()[2 * QT + r] = ifl_min_int(ifl_attn_end_row(a, t, rows), rows);
    }
    const float f = a.softcap > 0 ? a.scale / a.softcap : a.scale * IFL_LOG2E;
    if constexpr (K::packed)
      rotate(f);
    else
      load(f);
    __syncthreads();
    from = info()[QT], to = tree ? rows : info()[3 * QT - 1]; /* ascending, except in a tree */
    for (int r = 1; tree && r < n; r++)
      from = ifl_min_int(from, info()[QT + r]);
  }

  /* Writes the query rows times f, split into two numbers each. */
  __device__ __forceinline__ void load(float f) {
    for (int i = threadIdx.x; i < QT * D / 2; i += S::THREADS) {
      const int r = i / (D / 2), c = i % (D / 2) * 2, at = row + ifl_min_int(r, n - 1);
      const float *q = a.q + (first + at / GROUP) * a.ldq + (int64_t)(kv * GROUP + at % GROUP) * DIM + c;
      uint32_t hi, rest;
      E::split(c < DIM ? q[0] * f : 0.0f, c + 1 < DIM ? q[1] * f : 0.0f, hi, rest);
      *reinterpret_cast<uint32_t *>(sm + S::Q + r * S::QROW + 2 * c) = hi;
      *reinterpret_cast<uint32_t *>(sm + S::Q + (QT + r) * S::QROW + 2 * c) = rest;
    }
  }
  /* The same, rotated like the keys; a warp per row. */
  __device__ __forceinline__ void rotate(float f) {
    for (int r = threadIdx.x >> 5; r < QT; r += S::THREADS / 32) {
      const int at = row + ifl_min_int(r, n - 1);
      const float *q = a.q + (first + at / GROUP) * a.ldq + (int64_t)(kv * GROUP + at % GROUP) * DIM + lane();
      float x[DIM / 32];
#pragma unroll
      for (int j = 0; j < DIM / 32; j++)
        x[j] = q[32 * j];
      ifl_kv_rotate<DIM>(x);
#pragma unroll
      for (int j = 0; j < DIM / 32; j++) {
        uint32_t hi, rest;
        E::split(x[j] * f, 0.0f, hi, rest);
        *reinterpret_cast<uint16_t *>(sm + S::Q + r * S::QROW + 2 * (32 * j + lane())) = (uint16_t)hi;
        *reinterpret_cast<uint16_t *>(sm + S::Q + (QT + r) * S::QROW + 2 * (32 * j + lane())) = (uint16_t)rest;
      }
    }
  }

  /* Loads KEYS KV cache rows into a stage. Memory beyond the last row and the last channel is uninitialized: values of such
   * rows and keys of such channels are set to 0; everything else is masked later. */
  __device__ __forceinline__ void fetch(int chunk) {
    const int at = chunk * KEYS;
    const uint8_t *page = a.state + ifl_kv_page(a.step, seq, at) * a.page_bytes;
    uint8_t *keys = sm + S::STAGES + (chunk & 1) * S::STAGE;
    const int64_t k = K::key_at(at % 64, kv, DIM), v = K::value_at(at % 64, kv, KV_HEADS, DIM, VDIM);
    if constexpr (K::scaled) {
      const uint8_t *scales = page + K::scales_at(KV_HEADS, DIM, VDIM);
      uint8_t *values = keys + KEYS * D, *key_scales = values + KEYS * V, *value_scales = key_scales + KEYS * 2 * S::KB;
      copy(keys, page + k, KEYS * (K::packed ? D / 32 * 20 : D) / 16);
      copy(values, page + v, KEYS * (K::packed ? V / 2 : V) / 16);
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
  /* The offset of piece i, eight keys of a channel; eight consecutive channels use different banks. */
  static __device__ __forceinline__ int swizzled(int i) { return i ^ (i >> 3 & 1); }

  /* Converts a stage of int8 rows to 16-bit floats. */
  __device__ __forceinline__ void unpack(int chunk) {
    const uint8_t *keys = sm + S::STAGES + (chunk & 1) * S::STAGE, *values = keys + KEYS * D, *scales = values + KEYS * V;
    const uint16_t *ks = reinterpret_cast<const uint16_t *>(scales), *vs = ks + KEYS * S::KB;
    uint8_t *to_keys = sm + S::UNPACKED, *to_values = to_keys + KEYS * 2 * D;
    for (int i = threadIdx.x; i < KEYS * D / 8; i += S::THREADS) { /* eight rows of a channel, each with its own scale */
      const int d = i / 2 % D;
      const uint16_t *scale = ks + (i / (2 * D) * S::KB + d / 32) * 16 + i % 2 * 8;
      *reinterpret_cast<uint4 *>(to_keys + 16 * swizzled(i)) =
          eight(key_codes(keys, i), [&](int j) { return d < DIM ? scale[j] : (uint16_t)0; });
    }
    for (int i = threadIdx.x; i < KEYS * V / 8; i += S::THREADS) { /* eight channels of a row */
      const int r = i / (V / 8), c = i % (V / 8);
      const uint16_t scale = chunk * KEYS + r < rows ? vs[c / 4 * KEYS + r] : 0;
      *reinterpret_cast<uint4 *>(to_values + r * S::VROW + 16 * c) = eight(value_codes(values, i), [&](int) { return scale; });
    }
  }
  /* Eight codes of a stage, a byte each: rows of a channel, or channels of a row. */
  static __device__ __forceinline__ uint2 key_codes(const uint8_t *keys, int i) {
    if constexpr (!K::packed) {
      return *reinterpret_cast<const uint2 *>(keys + 8 * i);
    } else {
      const int d = i / 2 % D;
      const uint8_t *block = keys + (i / (2 * D) * (D / 32) + d / 32) * 20 * 16 + i % 2 * 8;
      const uint2 low = *reinterpret_cast<const uint2 *>(block + d % 16 * 16);
      const uint2 signs = *reinterpret_cast<const uint2 *>(block + (16 + d % 32 / 8) * 16);
      const int half = d / 16 % 2 * 4, bit = d % 8;
      return make_uint2(extended(low.x >> half, signs.x >> bit), extended(low.y >> half, signs.y >> bit));
    }
  }
  static __device__ __forceinline__ uint2 value_codes(const uint8_t *values, int i) {
    if constexpr (!K::packed) {
      return *reinterpret_cast<const uint2 *>(values + 8 * i);
    } else {
      const int r = i / (V / 8), c = i % (V / 8) * 8;
      const uint2 both = *reinterpret_cast<const uint2 *>(values + r * (V / 2) + c / 32 * 16 + c % 16);
      const int half = c / 16 % 2 * 4;
      return make_uint2(extended(both.x >> half, both.x >> (half + 3)), extended(both.y >> half, both.y >> (half + 3)));
    }
  }
  /* Four codes from their low four bits and their signs, each the lowest of a byte. */
  static __device__ __forceinline__ uint32_t extended(uint32_t low, uint32_t signs) {
    return (low & 0x0f0f0f0fu) | (signs & 0x01010101u) * 0xf0u;
  }
  template <class F> static __device__ __forceinline__ uint4 eight(const uint2 c, F scale) {
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

  /* The tree token that wrote each row of a chunk, and its position; PLAIN for rows from before this step. */
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

  /* Reports whether the thread's row h sees row r of a chunk, and sets pos to the row's position. */
  __device__ __forceinline__ bool sees(int chunk, int r, int h, int &pos) const {
    if (!tree || node(chunk)[r] == PLAIN)
      return pos >= lo(h) && pos < end(h) && ifl_attn_selected(a, token(h), pos);
    const int at = node(chunk)[r];
    pos = node(chunk)[KEYS + r];
    if (at < 0 || pos < lo(h) || pos >= end(h))
      return false;
    return (a.step->mask[(int64_t)token(h) * a.step->mask_words + at / 64] >> (at % 64) & 1) && ifl_attn_selected(a, token(h), pos);
  }
};
