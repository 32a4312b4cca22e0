/* Matmuls of many rows with wgmma, for sm_90a. Not verified on hardware: it agrees under emulation and in the PTX interpreter
 * only. The scheme is that of ifl_gemm.cuh; bulk copies fill the ring, and activations go from there to the tensor cores. */
#pragma once
#include "ifl_fragments.cuh"
#include "ifl_intrin90.cuh"

/* Two warpgroups multiply; one warp of the third loads, because registers can move between whole warpgroups only. A thread
 * starts with 65536 / 384 rounded down to 168 registers; 128 threads of 24 and 256 of 240 fit. */
#define IFL_WGMMA_THREADS 384
#define IFL_WGMMA_STAGES 4

/* The shared memory of a block whose tiles are 128 rows of weights and N of activations. */
template <class P, int N> struct ifl_wgmma_ring {
  static constexpr int SLOTS = (IFL_WGMMA_STAGES + 2 * P::SUB - 2) / P::SUB, CHUNK = N * 128, PANELS = 8, PIECE = PANELS * P::BYTES;
  static constexpr int BARRIERS = IFL_WGMMA_STAGES * CHUNK + SLOTS * PIECE, BYTES = BARRIERS + 2 * 8 * IFL_WGMMA_STAGES;
  uint8_t *at;
  __device__ __forceinline__ uint8_t *chunk(int i) const { return at + i % IFL_WGMMA_STAGES * CHUNK; }
  __device__ __forceinline__ uint8_t *piece(int i) const { return at + IFL_WGMMA_STAGES * CHUNK + i / P::SUB % SLOTS * PIECE; }
  /* Barriers of chunk i: all its bytes have arrived; all warps have read it. */
  __device__ __forceinline__ uint64_t *full(int i) const { return reinterpret_cast<uint64_t *>(at + BARRIERS) + i % IFL_WGMMA_STAGES; }
  __device__ __forceinline__ uint64_t *empty(int i) const { return full(i) + IFL_WGMMA_STAGES; }
  static __device__ __forceinline__ uint32_t parity(int i) { return i / IFL_WGMMA_STAGES & 1; }
  __device__ inline void init() const {
    if (threadIdx.x == 0) {
      for (int i = 0; i < IFL_WGMMA_STAGES; i++)
        ifl_mbarrier_init(full(i), 1), ifl_mbarrier_init(empty(i), 8);
      ifl_proxy_fence();
    }
    __syncthreads();
  }
};

/* The warp that loads: one lane starts the copies of each chunk as soon as its slot is free. */
template <class P, int N>
IFL_DEVICE void ifl_wgmma_load(const ifl_wgmma_ring<P, N> &ring, const uint8_t *w, int k, int panels, const uint16_t *wide, int64_t chunk,
                               int chunks) {
  const int lane = threadIdx.x & 31;
  const int64_t stride = P::bytes(k);
  for (int i = 0; i < chunks; i++) {
    if (i >= IFL_WGMMA_STAGES)
      ifl_mbarrier_wait(ring.empty(i), ring.parity(i - IFL_WGMMA_STAGES));
    const int at = i / P::SUB * P::BYTES, have = (int)(stride - at < P::BYTES ? stride - at : P::BYTES);
    const bool piece = P::SUB == 1 || i % P::SUB == 0;
    if (k % P::PIECE != 0 && piece && have < P::BYTES) { /* columns beyond the last are 0 */
      for (int p = 0; p < ring.PANELS; p++)
        for (int b = have + lane * 16; b < P::BYTES; b += 512)
          *reinterpret_cast<uint4 *>(ring.piece(i) + p * P::BYTES + b) = make_uint4(0, 0, 0, 0);
      __syncwarp();
    }
    if (lane == 0) {
      ifl_mbarrier_arrive_expect(ring.full(i), ring.CHUNK + (piece ? ring.PANELS * have : 0));
      ifl_bulk_copy(ring.chunk(i), wide + i * chunk, ring.CHUNK, ring.full(i));
      if (piece)
        for (int p = 0; p < ring.PANELS; p++) /* panels beyond the last repeat it */
          ifl_bulk_copy(ring.piece(i) + p * P::BYTES, w + ifl_min_int(p, panels - 1) * stride + at, have, ring.full(i));
    }
    __syncwarp();
  }
}

/* As ifl_gemm, for a tile of 128 × N per block of IFL_WGMMA_THREADS. A warp multiplies a panel. It dequantizes a chunk while the
 * tensor cores multiply the one before. */
template <class P, int N>
IFL_DEVICE void ifl_wgmma_gemm(const uint8_t *w, int k, int panels, const uint16_t *wide, int rows, float *y, uint8_t *sm) {
  const ifl_wgmma_ring<P, N> ring = {sm};
  constexpr int TURN = P::SUB == 1 ? 2 : P::SUB; /* chunks per turn of the loop, an even number */
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, p0 = blockIdx.y * ring.PANELS, t0 = blockIdx.x * N;
  const int chunks = ifl_blocks(k, P::PIECE) * P::SUB;
  ring.init();
  if (warp >= 8) {
    ifl_fewer_registers<24>();
    if (warp == 8)
      ifl_wgmma_load<P, N>(ring, w + p0 * P::bytes(k), k, panels - p0, wide + t0 * 64, ifl_tiled_rows(rows) * 64, chunks);
    return;
  }
  ifl_more_registers<240>();
  float f[N / 8][4] = {};
  uint32_t a[2][4][4]; /* two chunks, because wgmma reads its registers until it is waited for */
  P panel;
  auto release = [&](int i) {
    __syncwarp();
    if (lane == 0)
      ifl_mbarrier_arrive(ring.empty(i));
  };
  for (int first = 0; first < chunks; first += TURN) {
    ifl_for_each<TURN>([&](auto turn) {
      const int i = first + turn;
      if (P::SUB == 1 && turn == 1 && i == chunks)
        return;
      ifl_mbarrier_wait(ring.full(i), ring.parity(i));
      const uint8_t *piece = ring.piece(i) + warp * P::BYTES;
      const uint64_t b = ifl_wgmma_rows(ring.chunk(i));
#pragma unroll
      for (int n = 0; n < 4; n++)
        panel.load(piece, 4 * (turn % P::SUB) + n, a[turn & 1][n]);
      ifl_settle(a[turn & 1]);
      ifl_wgmma_fence();
#pragma unroll
      for (int n = 0; n < 4; n++)
        ifl_wgmma<N>(f, a[turn & 1][n], b + 2 * n);
      ifl_wgmma_commit();
      if (i > 0) {
        ifl_wgmma_wait<1>();
        release(i - 1);
      }
    });
  }
  ifl_wgmma_wait<0>();
  ifl_settle(f);
  const int panel_at = p0 + warp, g = lane >> 2, t = lane & 3;
#pragma unroll
  for (int v = 0; v < N / 8; v++)
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const int at = t0 + 8 * v + 2 * t + (i & 1);
      if (panel_at < panels && at < rows)
        y[(int64_t)at * (16 * panels) + 16 * panel_at + P::row(g, i >> 1)] = f[v][i];
    }
}
