/* How a warp multiplies its part of a panel, 16 rows of weights, with NT activation rows on CUDA cores. A panel type has
 *   stream  the weights of a thread that are being loaded, in registers; open() starts to load the first ones
 *   sum()   multiplies the part, and issues each load as soon as its registers are free
 * A thread has up to 16 loads of 16 bytes in flight. It owns ROWS rows; GROUPS threads own a panel's 16 rows, and the others
 * divide its columns. */
#pragma once
#include "ifl_act.cuh"
#include "ifl_codes.cuh"
#include <type_traits>

/* The activation rows of a thread block. */
struct ifl_rows_in {
  const uint8_t *at; /* of row 0 */
  int64_t stride;    /* bytes */
  int rows;          /* rows beyond the last repeat it */
  const int *index;  /* row numbers; NULL: consecutive rows */
  __device__ __forceinline__ const uint8_t *row(int t) const {
    const int i = t < rows ? t : rows - 1;
    return at + (index ? index[i] : i) * stride;
  }
};

/* The addresses of NT rows, computed once: the compiler would otherwise read the index for every weight. */
template <int NT> struct ifl_offsets {
  const uint8_t *at;
  uint32_t of[NT];
  __device__ __forceinline__ explicit ifl_offsets(const ifl_rows_in &x) : at(x.at) {
#pragma unroll
    for (int t = 0; t < NT; t++)
      of[t] = (uint32_t)(x.row(t) - x.at);
  }
  __device__ __forceinline__ const uint8_t *operator()(int t) const { return at + of[t]; }
};

/* A warp's part of the columns of a panel: part `index` of `count`. */
struct ifl_part {
  int index, count;
};

/* Reads the words of a row in ascending order, four at a time. The row is aligned to 16 bytes. */
struct ifl_words {
  uint4 v;
  __device__ __forceinline__ int at(const uint8_t *row, int i) {
    if (i % 4 == 0)
      v = reinterpret_cast<const uint4 *>(row)[i / 4];
    return (int)(i % 4 == 0 ? v.x : i % 4 == 1 ? v.y : i % 4 == 2 ? v.z : v.w);
  }
};

/* Four 16-bit floats. */
IFL_DEVICE void ifl_unpack_halves(uint2 v, float (&f)[4]) {
  f[0] = ifl_half_bits(v.x & 0xffff), f[1] = ifl_half_bits(v.x >> 16);
  f[2] = ifl_half_bits(v.y & 0xffff), f[3] = ifl_half_bits(v.y >> 16);
}

/* The largest divisor of n up to most. */
constexpr int ifl_divisor(int n, int most) {
  int d = most < n ? most : n;
  while (n % d)
    d--;
  return d;
}

/* The scales of a thread's four rows. tile is the address of the thread's 16 bytes of the first code vector. */
template <class F> IFL_DEVICE const uint8_t *ifl_scales_of(const uint8_t *tile) {
  return tile + F::CODES - (16 - 4 * F::SCALE) * (int)(threadIdx.x & 3);
}

/* The weights of a block type. Four threads read the 16 rows of a tile-block, so the eight fours of a warp read TILES
 * tile-blocks each in a step. */
template <class F> struct ifl_stream {
  static constexpr int ROWS = 4, GROUPS = 4, FOURS = 8;
  static constexpr int VECTORS = F::UNITS * F::VECTORS;                     /* loads per thread and tile-block */
  static constexpr int TILES = VECTORS > 5 ? 1 : VECTORS > 2 ? 2 : F::BLOCK == 16 && VECTORS == 2 ? 3 : 4; /* so that a step has at least six */
  static constexpr int UNITS = TILES * F::UNITS;                            /* of a step */
  static constexpr int RING = ifl_divisor(UNITS, 16 / F::VECTORS);          /* units in flight */
  uint4 code[RING * F::VECTORS];
  typename F::scales scale[TILES];
  uint2 base[TILES];
  const uint8_t *w; /* the thread's four rows */
  int total;        /* tile-blocks of the panel */
  int at, stride, steps;

  __device__ __forceinline__ const uint8_t *tile(int b) const { return w + (uint32_t)b * F::STRIDE; }
  __device__ __forceinline__ int within(int b) const { return ifl_min_int(b, total - 1); }

  __device__ __forceinline__ void load_unit(int slot, const uint8_t *tile, int u, bool wanted) {
#pragma unroll
    for (int v = 0; v < F::VECTORS; v++)
      ifl_load_stream_if(code[slot * F::VECTORS + v], tile + 64 * (u * F::VECTORS + v), wanted);
  }
  __device__ __forceinline__ void load_scales(int j, const uint8_t *tile, bool wanted) {
    const uint8_t *p = ifl_scales_of<F>(tile);
    ifl_load_stream_if(scale[j], p, wanted);
    if (!F::SIGNED)
      ifl_load_stream_if(base[j], p + 32, wanted);
  }

  __device__ __forceinline__ void open(const uint8_t *panel, int k, ifl_part part) {
    const int lane = threadIdx.x & 31;
    w = panel + 16 * (lane & 3), total = ifl_blocks(k, F::BLOCK);
    at = (part.index * FOURS + (lane >> 2)) * TILES, stride = part.count * FOURS * TILES;
    steps = (total + stride - 1) / stride;
#pragma unroll
    for (int u = 0; u < RING; u++)
      load_unit(u, tile(within(at + u / F::UNITS)), u % F::UNITS, true);
#pragma unroll
    for (int j = 0; j < TILES; j++)
      load_scales(j, tile(within(at + j)), true);
  }

  /* Calls codes(b, u, place) for every unit u of the part's tile-blocks b, and then scales(b, inside, scales, bases). A
   * thread without a tile-block in the last step repeats the panel's last one, with inside = false. */
  template <class C, class S> __device__ __forceinline__ void run(C codes, S scales) {
#pragma unroll 1
    for (int i = 0; i < steps; i++, at += stride) {
      const bool more = i + 1 < steps;
#pragma unroll
      for (int j = 0; j < TILES; j++) {
        const int b = within(at + j);
#pragma unroll
        for (int u = 0; u < F::UNITS; u++) {
          const int slot = (j * F::UNITS + u) % RING, next = j * F::UNITS + u + RING; /* the unit that follows in this slot */
          codes(b, u, ifl_in_registers{&code[slot * F::VECTORS]});
          if (next < UNITS)
            load_unit(slot, tile(within(at + next / F::UNITS)), next % F::UNITS, true);
          else
            load_unit(slot, tile(within(at + stride + (next - UNITS) / F::UNITS)), (next - UNITS) % F::UNITS, more);
        }
        scales(b, at + j < total, scale[j], base[j]);
        load_scales(j, tile(within(at + stride + j)), more);
      }
    }
  }
};

/* The same without loads in flight: a unit is loaded where it is decoded. For callers whose registers are full, and which are
 * limited by arithmetic. */
template <class F> struct ifl_direct {
  static constexpr int ROWS = 4, GROUPS = 4, FOURS = 8;
  const uint8_t *w;
  int total, at, stride;
  __device__ __forceinline__ void open(const uint8_t *panel, int k, ifl_part part) {
    const int lane = threadIdx.x & 31;
    w = panel + 16 * (lane & 3), total = ifl_blocks(k, F::BLOCK);
    at = part.index * FOURS + (lane >> 2), stride = part.count * FOURS;
  }
  template <class C, class S> __device__ __forceinline__ void run(C codes, S scales) {
#pragma unroll 1
    for (; at < total; at += stride) {
      const uint8_t *tile = w + (uint32_t)at * F::STRIDE, *p = ifl_scales_of<F>(tile);
#pragma unroll 1
      for (int u = 0; u < F::UNITS; u++)
        codes(at, u, tile + 64 * F::VECTORS * u);
      scales(at, true, *reinterpret_cast<const typename F::scales *>(p), F::SIGNED ? uint2() : *reinterpret_cast<const uint2 *>(p + 32));
    }
  }
};

/* The products of a row's O outliers with row r of a panel; the blocks' sums include their bases. */
template <class F, int O> IFL_DEVICE float ifl_outlier_sum(const uint8_t *panel, int k, int r, const uint8_t *x) {
  constexpr int FOURS = F::BLOCK / 4;
  const ifl_outlier *e = ifl_a8<F::BLOCK, O>::outliers(x, k);
  float sum = 0;
  for (int o = 0; o < O; o++) {
    const int v = e[o].group % FOURS, i = v / F::QUADS;
    const uint8_t *tile = panel + (int64_t)(e[o].group / FOURS) * F::STRIDE;
    uint32_t four = 0;
    F::decode(tile + 64 * F::VECTORS * i + r / 4 * 16, [&](int j, ifl_codes c) {
      if (j == v % F::QUADS)
        four = r % 4 == 0 ? c.x[0] : r % 4 == 1 ? c.x[1] : r % 4 == 2 ? c.x[2] : c.x[3];
    });
    const int acc = F::SIGNED ? __dp4a((int)(four ^ 0x80808080u), (int)e[o].codes, 0) : ifl_dp4a_us(four, (int)e[o].codes, 0);
    sum = fmaf((float)acc * ifl_scale_at<F>(tile, r), e[o].scale, sum);
  }
  return sum;
}

/* What all kernels know of a panel of a block type: its bytes, and what ifl_add_more adds if rows have outliers (MORE). */
template <class F, int O = 0> struct ifl_block_panel {
  static constexpr bool MORE = O > 0;
  static __device__ __forceinline__ int64_t bytes(int k) { return (int64_t)ifl_blocks(k, F::BLOCK) * F::STRIDE; }
  static __device__ __forceinline__ float more(const uint8_t *panel, int k, int r, const uint8_t *x) {
    return ifl_outlier_sum<F, O>(panel, k, r, x);
  }
};

/* Block types and activations packed as ifl_a8<F::BLOCK, O>: exact integer sums per tile-block, scaled in float. */
template <class F, int NT, int O> struct ifl_panel_block : ifl_block_panel<F, O> {
  typedef ifl_stream<F> stream;
  static constexpr int ROWS = stream::ROWS, GROUPS = stream::GROUPS;
  static __device__ __forceinline__ void sum(stream &s, int k, const ifl_rows_in &x, float (&f)[NT][ROWS]) {
    const ifl_offsets<NT> row(x);
    const int scale_at = (int)ifl_a8_scale_at(k, F::BLOCK), sum_at = (int)ifl_a8_sum_at(k, F::BLOCK);
    int acc[NT][ROWS] = {};
    ifl_words words[NT];
    s.run(
        [&](int b, int u, ifl_in_registers place) {
          F::decode(place, [&](int j, ifl_codes c) {
#pragma unroll
            for (int t = 0; t < NT; t++) {
              const int four = words[t].at(row(t) + b * F::BLOCK, u * F::QUADS + j);
#pragma unroll
              for (int r = 0; r < ROWS; r++)
                acc[t][r] = F::SIGNED ? __dp4a((int)(c.x[r] ^ 0x80808080u), four, acc[t][r]) : ifl_dp4a_us(c.x[r], four, acc[t][r]);
            }
          });
        },
        [&](int b, bool inside, typename F::scales scales, uint2 bases) {
          float scale[4], base[4];
          ifl_unpack_scales<F>(scales, scale);
          if (!F::SIGNED)
            ifl_unpack_halves(bases, base);
#pragma unroll
          for (int t = 0; t < NT; t++) {
            const float xs = inside ? reinterpret_cast<const float *>(row(t) + scale_at)[b] : 0.0f;
            const float xm = inside && !F::SIGNED ? reinterpret_cast<const float *>(row(t) + sum_at)[b] : 0.0f;
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
              f[t][r] = fmaf((float)acc[t][r] * scale[r], xs, f[t][r]);
              if (!F::SIGNED)
                f[t][r] = fmaf(base[r], xm, f[t][r]);
              acc[t][r] = 0;
            }
          }
        });
  }
};

/* Block types and f32 activations: weights are dequantized to floats. */
template <class F, int NT> struct ifl_panel_exact : ifl_block_panel<F> {
  typedef std::conditional_t<NT == 1, ifl_stream<F>, ifl_direct<F>> stream;
  static constexpr int ROWS = stream::ROWS, GROUPS = stream::GROUPS;
  static __device__ __forceinline__ void sum(stream &s, int k, const ifl_rows_in &x, float (&f)[NT][ROWS]) {
    const ifl_offsets<NT> row(x);
    float acc[NT][ROWS] = {}, all[NT] = {};
    s.run(
        [&](int b, int u, auto place) {
          F::decode(place, [&](int j, ifl_codes c) {
            const int at = b * F::BLOCK + 4 * (u * F::QUADS + j);
#pragma unroll
            for (int t = 0; t < NT; t++)
#pragma unroll
              for (int e = 0; e < 4; e++) {
                const float a = at + e < k ? reinterpret_cast<const float *>(row(t))[at + e] : 0.0f;
                all[t] += a;
#pragma unroll
                for (int r = 0; r < ROWS; r++)
                  acc[t][r] = fmaf((float)((int)(c.x[r] >> (8 * e) & 255) - (F::SIGNED ? 128 : 0)), a, acc[t][r]);
              }
          });
        },
        [&](int, bool inside, typename F::scales scales, uint2 bases) {
          float scale[4], base[4] = {};
          ifl_unpack_scales<F>(scales, scale);
          if (!F::SIGNED)
            ifl_unpack_halves(bases, base);
#pragma unroll
          for (int t = 0; t < NT; t++) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
              f[t][r] = inside ? fmaf(base[r], all[t], fmaf(scale[r], acc[t][r], f[t][r])) : f[t][r];
              acc[t][r] = 0;
            }
            all[t] = 0;
          }
        });
  }
};

/* Unquantized types: 16 bytes are 8 rows at one k (f32: 4). */
struct ifl_element_f32 {
  typedef float element;
  static __device__ __forceinline__ float get(float x) { return x; }
};
struct ifl_element_f16 {
  typedef uint16_t element;
  static __device__ __forceinline__ float get(uint16_t x) { return ifl_half_bits(x); }
};
struct ifl_element_bf16 {
  typedef uint16_t element;
  static __device__ __forceinline__ float get(uint16_t x) { return ifl_bf16_bits(x); }
};

/* Their weights. A load of a warp is COLS columns, and a step is RING loads; the parts of a panel take turns by steps. */
template <class E, int NT> struct ifl_float_stream {
  static constexpr int ROWS = 16 / sizeof(typename E::element), GROUPS = 16 / ROWS, COLS = 32 / GROUPS, RING = NT == 1 ? 16 : 8;
  uint4 v[RING];
  const uint8_t *w;
  int k, at, stride;

  __device__ __forceinline__ bool whole() const { return k % (RING * COLS) == 0; } /* in steps */
  /* Load j of the step whose first column for this thread is i. Columns beyond the last repeat it. */
  __device__ __forceinline__ void load(int j, int i, bool wanted) {
    constexpr uint32_t BYTES = 16 * sizeof(typename E::element);
    const uint8_t *p = whole() ? w + (uint32_t)i * BYTES + j * COLS * BYTES : w + (uint32_t)ifl_min_int(i + j * COLS, k - 1) * BYTES;
    ifl_load_stream_if(v[j], p, wanted);
  }
  __device__ __forceinline__ void open(const uint8_t *panel, int columns, ifl_part part) {
    const int lane = threadIdx.x & 31;
    w = panel + lane % GROUPS * 16, k = columns;
    at = part.index * RING * COLS + lane / GROUPS, stride = part.count * RING * COLS;
#pragma unroll
    for (int j = 0; j < RING; j++)
      load(j, at, !whole() || at < k);
  }
};
template <class E, int NT> struct ifl_panel_float {
  typedef ifl_float_stream<E, NT> stream;
  static constexpr int ROWS = stream::ROWS, GROUPS = stream::GROUPS;
  static constexpr bool MORE = false;
  static __device__ __forceinline__ int64_t bytes(int k) { return (int64_t)k * 16 * sizeof(typename E::element); }
  static __device__ __forceinline__ void sum(stream &s, int k, const ifl_rows_in &x, float (&f)[NT][ROWS]) {
    const ifl_offsets<NT> row(x);
#pragma unroll 1
    for (; s.at - (threadIdx.x & 31) / GROUPS < k; s.at += s.stride) {
#pragma unroll
      for (int j = 0; j < stream::RING; j++) {
        const int i = s.at + j * stream::COLS;
        const typename E::element *e = reinterpret_cast<const typename E::element *>(&s.v[j]);
#pragma unroll
        for (int t = 0; t < NT; t++) {
          const float a = s.whole() || i < k ? reinterpret_cast<const float *>(row(t))[i] : 0.0f;
#pragma unroll
          for (int r = 0; r < ROWS; r++)
            f[t][r] = fmaf(E::get(e[r]), a, f[t][r]);
        }
        s.load(j, s.at + s.stride, s.at + s.stride < k);
      }
    }
  }
};
