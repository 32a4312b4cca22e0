// The matmuls of many rows alone, for TestGemmFaults and TestGemmPTX. case.cuh describes one: the types fragment and unpack,
// the numbers k_columns, panel_count and row_count, and of the weights' type block, codes, stride and to16. Under emulation this is a program that compares gemm and wgmma with a plain loop, and
// writes what it computed to the file that its argument names.
#include "ifl_gemm.cuh"
#include "ifl_wgmma.cuh"
#include "case.cuh"

constexpr int ld_columns = (k_columns + fragment::PIECE - 1) / fragment::PIECE * fragment::PIECE;

extern "C" __global__ void k_tile(const uint8_t *act, uint16_t *wide, float *factor) {
  IFL_SHARED(float, red, [32]);
  const ifl_block g(red);
  const int t = blockIdx.x;
  ifl_widen<ifl_f32>(g, act + t * ifl_f32::bytes(k_columns), k_columns, ifl_tiled_rows_of<fragment::QUADS>(wide, t, row_count, ld_columns), ld_columns, factor + t);
}
IFL_EXPORT(k_tile)
extern "C" __global__ void __launch_bounds__(IFL_GEMM_THREADS, 2) k_gemm(const uint8_t *w, const uint16_t *wide, float *y) {
  IFL_DYN_SMEM(uint8_t, sm);
  ifl_gemm<fragment, 3>(w, k_columns, panel_count, wide, row_count, y, sm);
}
IFL_EXPORT(k_gemm)
extern "C" __global__ void __launch_bounds__(IFL_WGMMA_THREADS, 1) k_wgmma128(const uint8_t *w, const uint16_t *wide, float *y) {
  IFL_SWIZZLED_SMEM(uint8_t, sm);
  ifl_wgmma_gemm<fragment, 128>(w, k_columns, panel_count, wide, row_count, y, sm);
}
IFL_EXPORT(k_wgmma128)
extern "C" __global__ void __launch_bounds__(IFL_WGMMA_THREADS, 1) k_wgmma256(const uint8_t *w, const uint16_t *wide, float *y) {
  IFL_SWIZZLED_SMEM(uint8_t, sm);
  ifl_wgmma_gemm<fragment, 256>(w, k_columns, panel_count, wide, row_count, y, sm);
}
IFL_EXPORT(k_wgmma256)

#ifdef IFL_EMU
#include <stdio.h>
#include <stdlib.h>
#include <vector>
extern "C" __global__ void k_unpack(const uint8_t *w, uint16_t *to) {
  unpack::panel(w + blockIdx.x * unpack::bytes(k_columns), k_columns, to + (int64_t)blockIdx.x * 16 * ((k_columns + 63) / 64 * 64), (k_columns + 63) / 64 * 64);
}
IFL_EXPORT(k_unpack)

static uint32_t seed = 7;
static float uniform() { // in −1 … 1
  seed = seed * 1664525 + 1013904223;
  return (float)(int32_t)seed * 0x1p-31f;
}

int main(int argc, char **argv) {
  const int64_t bytes = unpack::bytes(k_columns), act = ifl_f32::bytes(k_columns), ld = (k_columns + 63) / 64 * 64, tiled = (row_count + 255) / 256 * 256;
  std::vector<uint8_t> w(panel_count * bytes), x(row_count * act);
  for (size_t i = 0; i < w.size(); i++)
    w[i] = block > 0 ? (uint8_t)(uniform() * 128 + 128) : 0;
  for (int64_t i = 0; i < panel_count * bytes / 2; i++) { // scales and bases of blocks, or all numbers
    const int64_t in = 2 * i % bytes;
    if (block > 0 && in % stride < codes)
      continue;
    uint8_t *at = w.data() + 2 * i;
    if (scale == 1)
      for (int byte = 0; byte < 2; byte++)
        at[byte] = (uint8_t)(to16(fabsf(uniform()) * 256) >> 7);
    else
      *(uint16_t *)at = to16(uniform());
  }
  for (int64_t t = 0; t < row_count; t++)
    for (int64_t k = 0; k < k_columns; k++)
      ((float *)(x.data() + t * act))[k] = uniform() * (1 + t);
  std::vector<uint16_t> plain(panel_count * 16 * ld), wide(tiled * ld_columns, 0x7fff);
  std::vector<float> factor(row_count), want(row_count * panel_count * 16);
  const uint8_t *wp = w.data(), *xp = x.data();
  uint16_t *pp = plain.data(), *widep = wide.data();
  float *fp = factor.data();
  void *u[] = {&wp, &pp}, *t[] = {&xp, &widep, &fp};
  k_unpack__emu(panel_count, 128, 0, u);
  k_tile__emu(row_count, 256, 0, t);
  for (int64_t r = 0; r < row_count; r++)
    for (int64_t n = 0; n < panel_count * 16; n++) {
      double sum = 0;
      for (int64_t k = 0; k < k_columns; k++)
        sum += (double)emu::h2f(plain[n * ld + k]) * emu::h2f(emu::f2h(((float *)(x.data() + r * act))[k] / factor[r])) * factor[r];
      want[r * panel_count * 16 + n] = (float)sum;
    }
  struct {
    const char *name;
    void (*run)(dim3, dim3, size_t, void **);
    dim3 grid;
    int threads;
    size_t shared;
  } kernels[] = {{"gemm", k_gemm__emu, dim3((row_count + 127) / 128, (panel_count + 7) / 8), IFL_GEMM_THREADS, ifl_gemm_ring<fragment, 3>::BYTES},
                 {"wgmma128", k_wgmma128__emu, dim3((row_count + 127) / 128, (panel_count + 7) / 8), IFL_WGMMA_THREADS, ifl_wgmma_ring<fragment, 128>::BYTES},
                 {"wgmma256", k_wgmma256__emu, dim3((row_count + 255) / 256, (panel_count + 7) / 8), IFL_WGMMA_THREADS, ifl_wgmma_ring<fragment, 256>::BYTES}};
  FILE *out = argc > 1 ? fopen(argv[1], "wb") : nullptr;
  if (out)
    fwrite(w.data(), 1, w.size(), out), fwrite(wide.data(), 2, wide.size(), out);
  for (auto &k : kernels) {
    std::vector<float> y(want.size(), NAN);
    float *yp = y.data();
    void *args[] = {&wp, &widep, &yp};
    k.run(k.grid, k.threads, k.shared, args);
    double worst = 0, most = 0;
    for (size_t i = 0; i < y.size(); i++) {
      const double d = fabs(y[i] * factor[i / (panel_count * 16)] - want[i]) / factor[i / (panel_count * 16)];
      worst = d == d ? fmax(worst, d) : INFINITY;
      most = fmax(most, fabs(want[i]) / factor[i / (panel_count * 16)]);
    }
    printf("%s: %.2e of %.2e\n", k.name, worst, most);
    if (!(worst <= 1e-3 * most))
      return fprintf(stderr, "%s: wrong results\n", k.name), 1;
    if (out)
      fwrite(y.data(), 4, y.size(), out);
  }
  return out ? fclose(out) : 0;
}
#endif
