/* Codes of packed weights. A panel is 16 rows. A tile-block stores codes in 64-byte vectors: bytes 4r … 4r+3 belong to row r,
 * for four consecutive k. A thread reads 16 bytes of a vector: four rows. */
#pragma once
#include "ifl_device.cuh"

struct ifl_codes {
  uint32_t x[4];
};

IFL_DEVICE ifl_codes operator|(ifl_codes a, ifl_codes b) {
  ifl_codes c;
#pragma unroll
  for (int i = 0; i < 4; i++)
    c.x[i] = a.x[i] | b.x[i];
  return c;
}

/* The places that F::decode reads a unit from: `const uint8_t *` in global memory, or one of these. */
struct ifl_in_registers {
  const uint4 *at; /* the unit's vectors; after unrolling, every index is a constant */
  __device__ __forceinline__ ifl_in_registers operator+(int bytes) const { return {at + bytes / 64}; }
};
/* The same of two rows, which become x[0] and x[1]. */
struct ifl_pair_in_registers {
  const uint2 *at;
  __device__ __forceinline__ ifl_pair_in_registers operator+(int bytes) const { return {at + bytes / 64}; }
};
struct ifl_pair_in_shared {
  const uint8_t *at;
  __device__ __forceinline__ ifl_pair_in_shared operator+(int bytes) const { return {at + bytes}; }
};

IFL_DEVICE ifl_codes ifl_codes_in(uint4 v) { return {{v.x, v.y, v.z, v.w}}; }
IFL_DEVICE ifl_codes ifl_codes_in(uint2 v) { return {{v.x, v.y, 0, 0}}; }
IFL_DEVICE ifl_codes ifl_load_codes(const uint8_t *p) { return ifl_codes_in(ifl_load_stream(p)); }
IFL_DEVICE ifl_codes ifl_load_codes(ifl_in_registers p) { return ifl_codes_in(*p.at); }
IFL_DEVICE ifl_codes ifl_load_codes(ifl_pair_in_registers p) { return ifl_codes_in(*p.at); }
IFL_DEVICE ifl_codes ifl_load_codes(ifl_pair_in_shared p) { return ifl_codes_in(*reinterpret_cast<const uint2 *>(p.at)); }

/* `width` ≤ 5 bits of every byte, from bit `from`, moved to bit `to`; the other bits are 0. */
IFL_DEVICE ifl_codes ifl_field(ifl_codes p, const int from, const int width, const int to) {
  const uint32_t mask = (((1u << width) - 1) << to) * 0x01010101u;
#pragma unroll
  for (int i = 0; i < 4; i++)
    p.x[i] = (from > to ? p.x[i] >> (from - to) : p.x[i] << (to - from)) & mask;
  return p;
}

/* The two codes of a pair v = 11·q + r < 121 in the low 7 bits of every byte; bit 7 is ignored. v·187/2048
 * rounds down to v/11 for every v < 128, and one multiplication handles two bytes. */
IFL_DEVICE uint32_t ifl_eleventh(uint32_t v) {
  const uint32_t lo = v & 0x007f007fu, hi = (v >> 8) & 0x007f007fu;
  const uint32_t a = (lo & 0xffff) * 187 >> 11 | (lo >> 16) * 187 >> 11 << 16,
                 b = (hi & 0xffff) * 187 >> 11 | (hi >> 16) * 187 >> 11 << 16;
  return a | b << 8;
}
IFL_DEVICE ifl_codes ifl_pair_first(ifl_codes v) {
#pragma unroll
  for (int i = 0; i < 4; i++)
    v.x[i] = ifl_eleventh(v.x[i]);
  return v;
}
IFL_DEVICE ifl_codes ifl_pair_second(ifl_codes v) {
#pragma unroll
  for (int i = 0; i < 4; i++)
    v.x[i] = (v.x[i] & 0x7f7f7f7fu) - 11 * ifl_eleventh(v.x[i]); /* no borrow between bytes: v ≥ 11·q */
  return v;
}

/* Adds `by` to every byte; no byte carries. */
IFL_DEVICE ifl_codes ifl_raise(ifl_codes v, const int by) {
#pragma unroll
  for (int i = 0; i < 4; i++)
    v.x[i] += by * 0x01010101u;
  return v;
}

/* Every byte rotated to the next one of its four. */
IFL_DEVICE ifl_codes ifl_turn(ifl_codes v) {
#pragma unroll
  for (int i = 0; i < 4; i++)
    v.x[i] = v.x[i] << 8 | v.x[i] >> 24;
  return v;
}
/* Of four bytes, those of a where the byte of signs has bit 7, and those of b elsewhere. */
IFL_DEVICE uint32_t ifl_choose(uint32_t signs, uint32_t a, uint32_t b) {
  const uint32_t mask = ifl_signs(signs);
  return (a & mask) | (b & ~mask);
}
/* Of four bytes, the low 7 bits of those with bit 7, and 0 for the others. */
IFL_DEVICE uint32_t ifl_beyond(uint32_t v) { return v & 0x7f7f7f7fu & ifl_signs(v); }

/* A scale as stored: an f16 number, or for F::SCALE = 1 bits 7 to 14 of one, times 2⁻⁸. */
template <class F> IFL_DEVICE float ifl_scale_of(uint32_t bits) {
  return F::SCALE == 1 ? ifl_half_bits((uint16_t)((bits & 0xff) << 7)) * 0x1p-8f : ifl_half_bits((uint16_t)(bits & 0xffff));
}
/* Of row r of a tile-block. */
template <class F> IFL_DEVICE float ifl_scale_at(const uint8_t *tile, int r) {
  const uint8_t *scales = tile + F::CODES;
  return ifl_scale_of<F>(F::SCALE == 1 ? scales[r] : reinterpret_cast<const uint16_t *>(scales)[r]);
}
/* Of four rows. */
template <class F> IFL_DEVICE void ifl_unpack_scales(typename F::scales v, float (&f)[4]) {
#pragma unroll
  for (int i = 0; i < 4; i++)
    if constexpr (F::SCALE == 1)
      f[i] = ifl_scale_of<F>(v >> (8 * i));
    else
      f[i] = ifl_scale_of<F>((i < 2 ? v.x : v.y) >> (16 * (i & 1)));
}

/* Dequantizes one row of a quantized matrix; thread k writes element k. F is a format (ifl_format_*). */
template <class F, class G> IFL_DEVICE void ifl_embed_block(const G &g, const uint8_t *w, int k, int row, float *out) {
  const int blocks = (k + F::BLOCK - 1) / F::BLOCK, r = row % 16;
  w += (int64_t)(row / 16) * blocks * F::STRIDE;
  for (int u = g.lane; u < blocks * F::UNITS; u += g.lanes) {
    const int b = u / F::UNITS, i = u % F::UNITS;
    const uint8_t *tile = w + (int64_t)b * F::STRIDE;
    const float scale = ifl_scale_at<F>(tile, r), base = F::SIGNED ? 0.0f : ifl_scale_at<F>(tile, 16 + r);
    F::decode(tile + 64 * F::VECTORS * i + r / 4 * 16, [&](int j, ifl_codes c) {
      const uint32_t four = r % 4 == 0 ? c.x[0] : r % 4 == 1 ? c.x[1] : r % 4 == 2 ? c.x[2] : c.x[3];
      for (int e = 0; e < 4; e++) {
        const int at = b * F::BLOCK + 4 * (i * F::QUADS + j) + e, code = (int)(four >> (8 * e) & 255);
        if (at < k)
          out[at] = F::SIGNED ? scale * (float)(code - 128) : base + scale * (float)code;
      }
    });
  }
  g.sync();
}

/* Converts one row of an unquantized matrix to floats. */
template <class E, class G> IFL_DEVICE void ifl_embed_float(const G &g, const uint8_t *w, int k, int row, float *out) {
  const typename E::element *p = reinterpret_cast<const typename E::element *>(w) + (int64_t)(row / 16) * k * 16 + row % 16;
  for (int i = g.lane; i < k; i += g.lanes)
    out[i] = E::get(p[(int64_t)16 * i]);
  g.sync();
}
