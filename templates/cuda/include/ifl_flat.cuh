/* Matmuls of a few rows on tensor cores (FlashDecoding++ §5, ImplB). Weights are the M operand of mma.sync, 16 rows per warp,
 * and activation rows the N operand, in NB tiles of 8. Weights of block types go from memory straight into the registers of the
 * fragments; 16-bit floats pass through a cp.async ring of the warp. The warps of a block share columns: a chunk of them, of all
 * rows, is in shared memory while the next one is being loaded. gridDim.z blocks may divide K. */
#pragma once
#include "ifl_gemv.cuh"

#define IFL_STAGES 5 /* pieces of weights per warp in the ring: four in flight, 4 KB */

/* Block types. Activations are packed as ifl_a8<F::BLOCK, O>. K is permuted within a tile-block, which does not change exact
 * integer sums: thread t of the four that share a row of a fragment takes code vectors SHARE·t … SHARE·t+SHARE−1. Dot products
 * are exact in int32, and each tile-block's sum is scaled in float. */
template <class F, int O, int NB> struct ifl_flat_block : ifl_block_panel<F, O> {
  static constexpr int NT = 8 * NB, COLUMNS = 512; /* of a chunk */
  static constexpr int TILES = COLUMNS / F::BLOCK;                      /* tile-blocks of a chunk */
  static constexpr int PITCH = COLUMNS + 64, ROWS = NT + 2;             /* bytes per row of codes, floats per tile-block: few bank conflicts */
  static constexpr int BUFFER = NT * PITCH + 2 * TILES * ROWS * 4, WARP = 0; /* bytes of a chunk; of a warp */
  static constexpr int SHARE = F::BLOCK / 16;                            /* code vectors per thread and tile-block */
  static constexpr int OWNERS = F::QUADS > SHARE ? F::QUADS / SHARE : 1; /* threads that decode the same unit */
  static constexpr int LOADS = OWNERS > 1 ? F::VECTORS : SHARE / F::QUADS * F::VECTORS; /* per thread and tile-block */
  static constexpr int WORDS = 2 * LOADS + (F::SIGNED ? 1 : 2);
  static constexpr int RING = ifl_divisor(TILES, (NB > 4 ? 36 : NB > 2 ? 48 : 72) / WORDS); /* tile-blocks in flight per thread */
  uint2 code[RING * LOADS];
  uint32_t scale[RING], base[RING];
  const uint8_t *next; /* the thread's codes in the tile-block to load next */
  int left;            /* tile-blocks of the block's part that are not loaded yet */

  __device__ __forceinline__ void load(int slot) {
    const bool wanted = left > 0;
#pragma unroll
    for (int i = 0; i < LOADS; i++)
      ifl_load_stream_if(code[slot * LOADS + i], next + 64 * i, wanted);
    const uint8_t *scales = next + scales_at();
    ifl_load_stream_if(scale[slot], scales, wanted);
    if (!F::SIGNED)
      ifl_load_stream_if(base[slot], scales + 32, wanted);
    next += F::STRIDE, left--;
  }
  /* The distance from the thread's codes to its scales. */
  static __device__ __forceinline__ int scales_at() { return F::CODES + (F::SCALE == 1 ? group() / 2 * 4 : 4 * group()) - codes_at(); }
  static __device__ __forceinline__ int codes_at() { return 8 * group() + (threadIdx.x & 3) / OWNERS * 64 * LOADS; }
  static __device__ __forceinline__ int group() { return (threadIdx.x & 31) >> 2; }

  __device__ __forceinline__ void open(const uint8_t *panel, int k, int begin, int end, uint8_t *) {
    next = panel + (int64_t)begin * TILES * F::STRIDE + codes_at();
    left = ifl_min_int(ifl_blocks(k, F::BLOCK), end * TILES) - begin * TILES;
#pragma unroll
    for (int j = 0; j < RING; j++) {
      scale[j] = base[j] = 0; /* also of tile-blocks beyond the last, which meet activations of 0 */
      load(j);
    }
  }

  /* The thread's code vectors of a tile-block, of rows 2g and 2g+1. */
  __device__ __forceinline__ void decode(int slot, uint2 (&v)[SHARE]) const {
    const int t = threadIdx.x & 3;
#pragma unroll
    for (int u = 0; u < LOADS / F::VECTORS; u++)
      F::decode(ifl_pair_in_registers{&code[slot * LOADS + u * F::VECTORS]}, [&](int j, ifl_codes c) {
        if (OWNERS == 1)
          v[u * F::QUADS + j] = make_uint2(c.x[0], c.x[1]);
        else if (j / SHARE == t % OWNERS)
          v[j % SHARE] = make_uint2(c.x[0], c.x[1]);
      });
  }

  /* f[j][i] += the product over a chunk: row 8·j + 2·(lane%4) + i%2 of the activations, row 2·(lane/4) + i/2 of the panel. */
  __device__ __forceinline__ void multiply(const uint8_t *x, float (&f)[NB][4]) {
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    const uint8_t *codes = x + g * PITCH + 4 * SHARE * t;
    const float *scales = reinterpret_cast<const float *>(x + NT * PITCH) + 2 * t;
#pragma unroll RING
    for (int b = 0; b < TILES; b++) {
      const int slot = b % RING;
      uint2 v[SHARE];
      decode(slot, v);
      const uint32_t pair = F::SCALE == 1 ? scale[slot] >> 16 * (group() & 1) : scale[slot]; /* a word has the bytes of four rows */
      const float s[2] = {ifl_scale_of<F>(pair), ifl_scale_of<F>(pair >> 8 * F::SCALE)};
      const float o[2] = {F::SIGNED ? 0.0f : ifl_half_bits(base[slot] & 0xffff), F::SIGNED ? 0.0f : ifl_half_bits(base[slot] >> 16)};
      load(slot);
#pragma unroll
      for (int j = 0; j < NB; j++) {
        uint32_t words[4];
        const uint8_t *p = codes + 8 * j * PITCH + b * F::BLOCK;
        if constexpr (SHARE == 4) {
          const uint4 q = *reinterpret_cast<const uint4 *>(p);
          words[0] = q.x, words[1] = q.y, words[2] = q.z, words[3] = q.w;
        } else {
          const uint2 q = *reinterpret_cast<const uint2 *>(p);
          words[0] = q.x, words[1] = q.y;
        }
        int acc[4] = {};
#pragma unroll
        for (int i = 0; i < SHARE / 2; i++) {
          const uint32_t flip = F::SIGNED ? 0x80808080u : 0u, n[2] = {words[2 * i], words[2 * i + 1]};
          const uint32_t a[4] = {v[2 * i].x ^ flip, v[2 * i].y ^ flip, v[2 * i + 1].x ^ flip, v[2 * i + 1].y ^ flip};
          if (F::SIGNED)
            ifl_mma_m16n8k32_s8(acc, a, n);
          else
            ifl_mma_m16n8k32_u8s8(acc, a, n);
        }
        const float2 xs = *reinterpret_cast<const float2 *>(scales + b * ROWS + 8 * j);
#pragma unroll
        for (int i = 0; i < 4; i++)
          f[j][i] = fmaf((float)acc[i] * s[i >> 1], i & 1 ? xs.y : xs.x, f[j][i]);
        if (!F::SIGNED) {
          const float2 xm = *reinterpret_cast<const float2 *>(scales + (TILES + b) * ROWS + 8 * j);
#pragma unroll
          for (int i = 0; i < 4; i++)
            f[j][i] = fmaf(o[i >> 1], i & 1 ? xm.y : xm.x, f[j][i]);
        }
      }
    }
  }
  static __device__ __forceinline__ int panel_row(int g, int i) { return 2 * g + (i >> 1); }

  /* Copies a chunk of the rows to shared memory: the codes by cp.async; by tile-block and row, the scales and the scales times
   * the sums of codes, which wait in registers. */
  struct rows {
    static constexpr int THREADS = 32 * IFL_WARPS, PIECES = NT * COLUMNS / 16 / THREADS, NUMBERS = 2 * NT * TILES;
    float v[(NUMBERS + THREADS - 1) / THREADS];
    __device__ __forceinline__ void fetch(const ifl_rows_in &x, int k, int chunk, uint8_t *to) {
      constexpr int STEP = THREADS / (COLUMNS / 16); /* rows between two pieces of a thread */
      const int from = chunk * TILES, have = ifl_blocks(k, F::BLOCK) - from;
      const int row = threadIdx.x / (COLUMNS / 16), c = threadIdx.x % (COLUMNS / 16) * 16;
      to += row * PITCH + c;
#pragma unroll
      for (int i = 0; i < PIECES; i++)
        if (row + i * STEP < x.rows && c < have * F::BLOCK)
          ifl_cp_async16(to + i * STEP * PITCH, x.row(row + i * STEP) + from * F::BLOCK + c);
        else
          *reinterpret_cast<uint4 *>(to + i * STEP * PITCH) = make_uint4(0, 0, 0, 0);
      ifl_cp_async_commit();
#pragma unroll
      for (int i = 0; i * THREADS < NUMBERS; i++) {
        const int at = i * THREADS + threadIdx.x, b = at % TILES, t = at / TILES % NT;
        const int64_t list = at < NT * TILES ? ifl_a8_scale_at(k, F::BLOCK) : ifl_a8_sum_at(k, F::BLOCK);
        v[i] = b < have && t < x.rows ? *reinterpret_cast<const float *>(x.row(t) + list + 4 * (from + b)) : 0.0f;
      }
    }
    __device__ __forceinline__ void store(uint8_t *to) {
      float *numbers = reinterpret_cast<float *>(to + NT * PITCH);
#pragma unroll
      for (int i = 0; i * THREADS < NUMBERS; i++) {
        const int at = i * THREADS + threadIdx.x, b = at % TILES, t = at / TILES % NT;
        if (NUMBERS % THREADS == 0 || at < NUMBERS)
          numbers[(at / (NT * TILES) * TILES + b) * ROWS + t] = v[i];
      }
      ifl_cp_async_wait<0>();
    }
  };
};

/* 16-bit floats. An activation is split into the sum of two numbers of the weights' type, to keep its precision. It saturates
 * at the type's largest number. K is permuted within 16 columns, so that a thread reads its numbers of both halves at once. */
template <class E, int NB> struct ifl_flat_float {
  static constexpr bool MORE = false;
  static constexpr int NT = 8 * NB, COLUMNS = NB > 4 ? 64 : 128;
  static constexpr int PITCH = 4 * COLUMNS + 64, BUFFER = NT * PITCH; /* a column is two numbers; as above */
  static constexpr int PIECE = 32, BYTES = PIECE * 32, WARP = IFL_STAGES * BYTES;
  const uint8_t *w; /* the thread's 16 bytes of 16 columns */
  uint8_t *ring;
  int k, column; /* column of the thread's 16 bytes of the next piece */
  int slot;      /* of the piece that is multiplied next */

  static __device__ __forceinline__ int64_t bytes(int k) { return (int64_t)k * 32; }

  /* Loads the next piece. Always commits a group, so that groups count pieces. The 16 bytes that a thread loads are those
   * whose place in the ring is the one that it gives to ldmatrix, so neither has bank conflicts. */
  __device__ __forceinline__ void load(int to) {
#pragma unroll
    for (int s = 0; s < 2; s++)
      if (column + 16 * s < k)
        ifl_cp_async16(ring + to * BYTES + 512 * s, w + 512 * s);
      else
        *reinterpret_cast<uint4 *>(ring + to * BYTES + 512 * s) = make_uint4(0, 0, 0, 0);
    ifl_cp_async_commit();
    w += BYTES, column += PIECE;
  }
  __device__ __forceinline__ void open(const uint8_t *panel, int columns, int begin, int, uint8_t *mine) {
    const int lane = threadIdx.x & 31;
    column = begin * COLUMNS + (lane & 1) + (lane >> 4) * 2 + (lane >> 1 & 3) * 4;
    w = panel + (int64_t)column * 32 + (lane >> 3 & 1) * 16, ring = mine + 16 * lane, k = columns, slot = 0;
#pragma unroll
    for (int i = 0; i < IFL_STAGES - 1; i++)
      load(i);
  }
  __device__ __forceinline__ void multiply(const uint8_t *x, float (&f)[NB][4]) {
    const int lane = threadIdx.x & 31;
    const uint8_t *row = x + (lane >> 2) * PITCH + 16 * (lane & 3);
#pragma unroll
    for (int p = 0; p < COLUMNS / PIECE; p++) {
      ifl_cp_async_wait<IFL_STAGES - 2>();
      __syncwarp(); /* the piece is complete, and all threads have finished the previous one */
      load(slot == 0 ? IFL_STAGES - 1 : slot - 1);
#pragma unroll
      for (int s = 0; s < 2; s++) {
        uint32_t a[4]; /* the tile is [k][16 rows]: load the transposed fragment */
        ifl_ldmatrix_x4_trans(a, ring + slot * BYTES + 512 * s);
#pragma unroll
        for (int j = 0; j < NB; j++) {
          const uint4 v = *reinterpret_cast<const uint4 *>(row + 8 * j * PITCH + 64 * (2 * p + s));
          const uint32_t hi[2] = {v.x, v.y}, lo[2] = {v.z, v.w};
          E::mma(f[j], a, hi);
          E::mma(f[j], a, lo);
        }
      }
      slot = slot == IFL_STAGES - 1 ? 0 : slot + 1;
    }
  }
  static __device__ __forceinline__ int panel_row(int g, int i) { return g + (i >> 1) * 8; }

  /* Splits a chunk of the rows: of four columns, the high numbers and then the low ones. They wait in registers until the buffer
   * is free. */
  struct rows {
    static constexpr int STEP = 32 * IFL_WARPS / (COLUMNS / 4), FOURS = NT / STEP; /* rows between two fours of a thread; fours */
    float4 v[FOURS];
    static __device__ __forceinline__ int row() { return threadIdx.x / (COLUMNS / 4); }
    static __device__ __forceinline__ int column() { return threadIdx.x % (COLUMNS / 4) * 4; }
    __device__ __forceinline__ void fetch(const ifl_rows_in &x, int k, int chunk, uint8_t *) {
      const int c = chunk * COLUMNS + column();
#pragma unroll
      for (int i = 0; i < FOURS; i++) {
        const int t = row() + i * STEP;
        const bool in = t < x.rows;
        const float *from = reinterpret_cast<const float *>(x.row(t)) + c;
        v[i] = make_float4(0, 0, 0, 0);
        if (k % 4 == 0) {
          if (in && c < k)
            v[i] = *reinterpret_cast<const float4 *>(from);
        } else if (in) {
          v[i].x = c < k ? from[0] : 0, v[i].y = c + 1 < k ? from[1] : 0, v[i].z = c + 2 < k ? from[2] : 0, v[i].w = c + 3 < k ? from[3] : 0;
        }
      }
    }
    __device__ __forceinline__ void store(uint8_t *to) {
      to += row() * PITCH + column() * 4;
#pragma unroll
      for (int i = 0; i < FOURS; i++) {
        uint4 q;
        E::split(v[i].x, v[i].y, q.x, q.z);
        E::split(v[i].z, v[i].w, q.y, q.w);
        *reinterpret_cast<uint4 *>(to + i * STEP * PITCH) = q;
      }
    }
  };
};

struct ifl_flat_f16 {
  static __device__ __forceinline__ void split(float u, float v, uint32_t &hi, uint32_t &lo) {
    u = fminf(fmaxf(u, -65504.0f), 65504.0f), v = fminf(fmaxf(v, -65504.0f), 65504.0f);
    const __half uh = __float2half_rn(u), vh = __float2half_rn(v), ul = __float2half_rn(u - __half2float(uh)),
                 vl = __float2half_rn(v - __half2float(vh));
    hi = ifl_bits16(uh) | (uint32_t)ifl_bits16(vh) << 16, lo = ifl_bits16(ul) | (uint32_t)ifl_bits16(vl) << 16;
  }
  static __device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    ifl_mma_m16n8k16_f16(d, a, b);
  }
};
struct ifl_flat_bf16 {
  static __device__ __forceinline__ void split(float u, float v, uint32_t &hi, uint32_t &lo) {
    const __nv_bfloat16 uh = __float2bfloat16(u), vh = __float2bfloat16(v), ul = __float2bfloat16(u - __bfloat162float(uh)),
                        vl = __float2bfloat16(v - __bfloat162float(vh));
    hi = ifl_bits16(uh) | (uint32_t)ifl_bits16(vh) << 16, lo = ifl_bits16(ul) | (uint32_t)ifl_bits16(vl) << 16;
  }
  static __device__ __forceinline__ void mma(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
    ifl_mma_m16n8k16_bf16(d, a, b);
  }
};

/* As ifl_gemv for up to 8·NB rows. buffers holds 2·P::BUFFER + IFL_WARPS·P::WARP bytes, aligned to 16. */
template <class P, int NB, int COLS> struct ifl_flat : ifl_matrix<P> {
  static constexpr int PASSES = (COLS / 16 + IFL_WARPS - 1) / IFL_WARPS; /* panels per warp */
  using ifl_matrix<P>::k;
  using ifl_matrix<P>::panels;
  int begin, end; /* the block's chunks */
  uint8_t *buffers;
  P stream;

  __device__ __forceinline__ ifl_flat(const uint8_t *w_, int k_, int panels_, uint8_t *buffers_, const uint8_t *other_ = NULL, int half_ = 0)
      : ifl_matrix<P>{w_, other_, k_, panels_, half_}, buffers(buffers_) {
    const int chunks = (k + P::COLUMNS - 1) / P::COLUMNS;
    begin = (int)blockIdx.z * chunks / (int)gridDim.z, end = ((int)blockIdx.z + 1) * chunks / (int)gridDim.z;
    open(threadIdx.x >> 5);
  }
  __device__ __forceinline__ void open(int p) {
    if (p < panels)
      stream.open(this->panel(p), k, begin, end, buffers + 2 * P::BUFFER + (threadIdx.x >> 5) * P::WARP);
  }

  /* y may be the memory of the buffers if there is a warp for each panel. Ends with a block barrier. */
  __device__ __forceinline__ void run(const ifl_rows_in &x, float *y, int ldy) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
#pragma unroll 1
    for (int pass = 0; pass < PASSES; pass++) {
      const int p = pass * IFL_WARPS + warp;
      float f[NB][4] = {};
      typename P::rows rows;
      if (pass > 0)
        open(p);
      rows.fetch(x, k, begin, buffers);
      rows.store(buffers);
      __syncthreads();
      for (int c = begin; c < end; c++) {
        const bool last = c + 1 == end;
        uint8_t *next = buffers + ((c - begin + 1) & 1) * P::BUFFER;
        if (!last)
          rows.fetch(x, k, c + 1, next);
        if (p < panels)
          stream.multiply(buffers + ((c - begin) & 1) * P::BUFFER, f);
        if (!last)
          rows.store(next);
        __syncthreads();
      }
      if (p < panels)
#pragma unroll
        for (int j = 0; j < NB; j++)
#pragma unroll
          for (int i = 0; i < 4; i++)
            y[(8 * j + 2 * (lane & 3) + (i & 1)) * ldy + p * 16 + P::panel_row(lane >> 2, i)] = f[j][i];
      __syncthreads();
    }
  }
};
