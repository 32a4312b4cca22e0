/* A-operand fragments (m16k16, f16) of a panel of 16 weight rows in shared memory, for gemm and wgmma: block types are
 * dequantized in registers, 16-bit floats loaded by ldmatrix. A panel is read in pieces of PIECE columns, BYTES each; a
 * piece is SUB chunks of the 64 columns that a tile of activations has. */
#pragma once
#include "ifl_wide.cuh"

/* Calls use(i) for i = 0 … N−1, numbers that are constants of the compiler. It does not always unroll large loops, and a
 * fragment number that is not constant makes every thread decode all of them. */
template <int I> struct ifl_constant {
  __device__ constexpr operator int() const { return I; }
};
template <int N, int I = 0, class U> IFL_DEVICE void ifl_for_each(const U &use) {
  if constexpr (I < N) {
    use(ifl_constant<I>());
    ifl_for_each<N, I + 1>(use);
  }
}

/* Four codes as f16 numbers 1024 + code: f16 1024 is 0x6400, and its last bit is worth 1. */
IFL_DEVICE __half2 ifl_magic(uint32_t four, uint32_t pick) {
  const uint32_t v = __byte_perm(four, 0x64646464u, pick);
  return *reinterpret_cast<const __half2 *>(&v);
}
IFL_DEVICE __half2 ifl_twice(uint32_t h) { /* the low 16 bits in both halves */
  const uint32_t v = __byte_perm(h, 0, 0x1010);
  return *reinterpret_cast<const __half2 *>(&v);
}
IFL_DEVICE uint32_t ifl_bits32(__half2 h) { return *reinterpret_cast<const uint32_t *>(&h); }
IFL_DEVICE __half2 ifl_half2(uint32_t bits) {
  const __half2 h = {*reinterpret_cast<const __half2 *>(&bits)};
  return h;
}

/* Block types. Row g of a fragment is row 2·g of the panel, and row g + 8 is row 2·g + 1: they are adjacent in memory. */
template <class F> struct ifl_fragment_block : ifl_block_panel<F> {
  static constexpr int QUADS = F::QUADS, PIECE = QUADS > 4 ? 16 * QUADS : 64, SUB = PIECE / 64;
  static constexpr int BYTES = PIECE / F::BLOCK * F::STRIDE;
  static constexpr int SAME = F::UNITS >= 4 ? F::BLOCK / 16 : QUADS; /* fragments with the same scales */
  static __device__ __forceinline__ int row(int g, int i) { return 2 * g + i; }

  __half2 scale[2], base[2];

  /* Loads fragment n of a piece. Calls must be in order from a multiple of four on. */
  __device__ __forceinline__ void load(const uint8_t *piece, const int n, uint32_t (&a)[4]) {
    const int lane = threadIdx.x & 31, g = lane >> 2, unit = n / QUADS * 4 + (lane & 3);
    const uint8_t *tile = piece + unit / F::UNITS * F::STRIDE;
    if (n % 4 == 0 || n % SAME == 0) {
      if constexpr (F::SCALE == 1) {
        const uint32_t s = *reinterpret_cast<const uint16_t *>(tile + F::CODES + 2 * g);
        const __half2 weight = ifl_half2(0x1c001c00u); /* 2⁻⁸ */
        scale[0] = __hmul2(ifl_twice((s & 0xff) << 7), weight), scale[1] = __hmul2(ifl_twice((s >> 8) << 7), weight);
      } else {
        const uint32_t s = *reinterpret_cast<const uint32_t *>(tile + F::CODES + 4 * g);
        scale[0] = ifl_twice(s), scale[1] = ifl_twice(s >> 16);
      }
      if (!F::SIGNED) {
        const uint32_t o = *reinterpret_cast<const uint32_t *>(tile + F::CODES + 32 + 4 * g);
        base[0] = ifl_twice(o), base[1] = ifl_twice(o >> 16);
      }
    }
    const __half2 zero = ifl_half2(F::SIGNED ? 0x64806480u : 0x64006400u);
    F::decode(ifl_pair_in_shared{tile + unit % F::UNITS * (64 * F::VECTORS) + 8 * g}, [&](int j, ifl_codes c) {
      if (j == n % QUADS)
#pragma unroll
        for (int i = 0; i < 4; i++) { /* exact up to the product, which is rounded once, with the base */
          const __half2 code = __hsub2(ifl_magic(c.x[i & 1], i < 2 ? 0x4140 : 0x4342), zero);
          a[i] = ifl_bits32(F::SIGNED ? __hmul2(code, scale[i & 1]) : __hfma2(code, scale[i & 1], base[i & 1]));
        }
    });
  }
};

/* 16-bit floats: a piece is 64 columns of 32 bytes. A matrix of ldmatrix has the first half of the panel's rows at four
 * columns and the second half at the other four, because the same half at eight columns has bank conflicts. */
template <class E> struct ifl_fragment_float {
  static constexpr int QUADS = 0, PIECE = 64, SUB = 1, BYTES = PIECE * 32;
  static __device__ __forceinline__ int64_t bytes(int k) { return (int64_t)k * 32; }
  static __device__ __forceinline__ int row(int g, int i) { return g + 8 * i; }
  __device__ __forceinline__ void load(const uint8_t *piece, const int n, uint32_t (&a)[4]) {
    const int lane = threadIdx.x & 31, half = (lane >> 3 & 1) ^ (lane >> 2 & 1), column = (lane & 7) + (lane >> 4) * 8;
    uint32_t m[4];
    ifl_ldmatrix_x4_trans(m, piece + (16 * n + column) * 32 + half * 16);
    const bool swap = lane & 2;
#pragma unroll
    for (int i = 0; i < 4; i += 2)
      a[i] = E::f16(swap ? m[i + 1] : m[i]), a[i + 1] = E::f16(swap ? m[i] : m[i + 1]);
  }
};
struct ifl_pair_f16 {
  static __device__ __forceinline__ uint32_t f16(uint32_t pair) { return pair; }
};
struct ifl_pair_bf16 {
  static __device__ __forceinline__ uint32_t f16(uint32_t pair) {
    return ifl_half_pair(ifl_bf16_bits(pair & 0xffff), ifl_bf16_bits(pair >> 16));
  }
};
