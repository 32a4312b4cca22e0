/* Matmuls of many rows (FlashDecoding++ §5, ImplC) with mma.sync. Weights are dequantized on their way from shared memory to
 * registers; activations are f16 in tiles (ifl_tiled_rows_of). */
#pragma once
#include "ifl_fragments.cuh"

#define IFL_TILE 128         /* rows of either operand per block: manifest.GemmTile */
#define IFL_GEMM_THREADS 128 /* four warps of 64 × 64: half the shared memory traffic of eight warps of 32 × 64 */

/* The shared memory of a block: a ring of STAGES chunks of 64 columns of activations, and one of pieces of weights. The slot
 * of a piece is used again SLOTS pieces later, when its last chunk has left the ring. */
template <class P, int STAGES> struct ifl_gemm_ring {
  static constexpr int SLOTS = (STAGES + 2 * P::SUB - 2) / P::SUB;
  static constexpr int CHUNK = IFL_TILE * 128, PANELS = IFL_TILE / 16, PIECE = PANELS * P::BYTES;
  static constexpr int BYTES = STAGES * CHUNK + SLOTS * PIECE;
};

/* Loads a piece of N panels, which begins at byte `at` of each. Panels beyond the last repeat it; their results are unused. */
template <class P, int N> IFL_DEVICE void ifl_fetch_panels(uint8_t *to, const uint8_t *w, int at, int k, int panels) {
  constexpr int ALL = N * P::BYTES, LOAD = IFL_GEMM_THREADS * 16;
  const int64_t stride = P::bytes(k);
  const int have = (int)(stride - at < P::BYTES ? stride - at : P::BYTES);
  w += at;
#pragma unroll
  for (int i = 0; i < (ALL + LOAD - 1) / LOAD; i++) {
    const int j = i * LOAD + threadIdx.x * 16, p = j / P::BYTES, b = j % P::BYTES;
    if (ALL % LOAD == 0 || j < ALL) {
      if (k % P::PIECE == 0 || b < have)
        ifl_cp_async16(to + j, w + (uint32_t)(ifl_min_int(p, panels - 1) * (int)stride + b));
      else
        *reinterpret_cast<uint4 *>(to + j) = make_uint4(0, 0, 0, 0);
    }
  }
}

/* y[t · 16 · panels + m] = Σ w[m][k] · x[t][k] over k columns for a tile of 128 × 128 per block of IFL_GEMM_THREADS. wide has
 * the rows of x, sm the ring, aligned to 16. */
template <class P, int STAGES>
IFL_DEVICE void ifl_gemm(const uint8_t *w, int k, int panels, const uint16_t *wide, int rows, float *y, uint8_t *sm) {
  typedef ifl_gemm_ring<P, STAGES> ring;
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, g = lane >> 2, t = lane & 3;
  const int p0 = blockIdx.y * ring::PANELS, t0 = blockIdx.x * IFL_TILE, wp = warp % 2 * 4, wt = warp / 2 * 64;
  const int pieces = ifl_blocks(k, P::PIECE), chunks = pieces * P::SUB;
  const int64_t chunk = ifl_tiled_rows(rows) * 64;
  constexpr int LOAD = IFL_GEMM_THREADS * 16;
  w += p0 * P::bytes(k);
  uint8_t *weights = sm + STAGES * ring::CHUNK;
  float f[4][8][4] = {};
  auto fetch = [&](int i, bool piece) { /* always commits a group, so that the group count equals the chunk count */
    if (i < chunks) {
      const uint16_t *from = wide + i * chunk + t0 * 64 + threadIdx.x * 8;
      uint8_t *to = sm + i % STAGES * ring::CHUNK + threadIdx.x * 16;
#pragma unroll
      for (int j = 0; j < ring::CHUNK; j += LOAD)
        ifl_cp_async16(to + j, from + j / 2);
      if (piece)
        ifl_fetch_panels<P, ring::PANELS>(weights + i / P::SUB % ring::SLOTS * ring::PIECE, w, i / P::SUB * P::BYTES, k, panels - p0);
    }
    ifl_cp_async_commit();
  };
#pragma unroll
  for (int i = 0; i < STAGES - 1; i++)
    fetch(i, i % P::SUB == 0);
  for (int p = 0; p < pieces; p++) {
    const uint8_t *a = weights + p % ring::SLOTS * ring::PIECE + wp * P::BYTES;
    ifl_for_each<P::SUB>([&](auto sub) {
      const int i = p * P::SUB + sub;
      ifl_cp_async_wait<STAGES - 2>();
      __syncthreads(); /* the chunk is complete, and all threads have finished the previous one */
      fetch(i + STAGES - 1, (sub + STAGES - 1) % P::SUB == 0);
      const uint8_t *b = sm + i % STAGES * ring::CHUNK;
      P panel[4];
#pragma unroll
      for (int n = 0; n < 4; n++) {
        uint32_t af[4][4], bf[4][4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
          const int row = wt + 16 * j + (lane & 7) + (lane >> 4) * 8, at = 2 * n + (lane >> 3 & 1);
          ifl_ldmatrix_x4(bf[j], b + row * 128 + ((at ^ (row & 7)) << 4));
        }
#pragma unroll
        for (int j = 0; j < 4; j++)
          panel[j].load(a + j * P::BYTES, 4 * sub + n, af[j]);
#pragma unroll
        for (int j = 0; j < 4; j++)
#pragma unroll
          for (int v = 0; v < 8; v++) {
            const uint32_t two[2] = {bf[v / 2][v % 2 * 2], bf[v / 2][v % 2 * 2 + 1]};
            ifl_mma_m16n8k16_f16(f[j][v], af[j], two);
          }
      }
    });
  }
#pragma unroll
  for (int j = 0; j < 4; j++)
#pragma unroll
    for (int v = 0; v < 8; v++)
#pragma unroll
      for (int i = 0; i < 4; i++) {
        const int at = t0 + wt + 8 * v + 2 * t + (i & 1), panel = p0 + wp + j;
        if (panel < panels && at < rows)
          y[(int64_t)at * (16 * panels) + 16 * panel + P::row(g, i >> 1)] = f[j][v][i];
      }
}
