// Intrinsics of sm_90a: mbarriers, bulk copies and wgmma. As in ifl_intrin.cuh, each has a C++ counterpart for the emulation
// (emu/async.hpp). Not verified on hardware.
#pragma once
#include "ifl_intrin.cuh"
#ifdef IFL_EMU
namespace emu {
void mbarrier_init(void *bar, uint32_t count);
void mbarrier_arrive(void *bar, uint32_t bytes);
void mbarrier_wait(void *bar, uint32_t parity);
void bulk_copy(void *to, const void *from, uint32_t bytes, void *bar);
void proxy_fence();
uint32_t shared_address(const void *p);
void wgmma_fence();
void wgmma(float *d, const uint32_t *a, uint64_t b, int n);
void wgmma_commit();
void wgmma_wait(size_t left);
} // namespace emu
inline void ifl_mbarrier_init(uint64_t *bar, uint32_t count) { emu::mbarrier_init(bar, count); }
inline void ifl_mbarrier_arrive(uint64_t *bar) { emu::mbarrier_arrive(bar, 0); }
inline void ifl_mbarrier_arrive_expect(uint64_t *bar, uint32_t bytes) { emu::mbarrier_arrive(bar, bytes); }
inline void ifl_mbarrier_wait(uint64_t *bar, uint32_t parity) { emu::mbarrier_wait(bar, parity); }
inline void ifl_bulk_copy(void *to, const void *from, uint32_t bytes, uint64_t *bar) { emu::bulk_copy(to, from, bytes, bar); }
inline void ifl_proxy_fence() { emu::proxy_fence(); }
inline uint32_t ifl_shared_address(const void *p) { return emu::shared_address(p); }
inline void ifl_wgmma_fence() { emu::wgmma_fence(); }
template <int N> inline void ifl_wgmma(float (&d)[N / 8][4], const uint32_t (&a)[4], uint64_t b) { emu::wgmma(d[0], a, b, N); }
inline void ifl_wgmma_commit() { emu::wgmma_commit(); }
template <int LEFT> inline void ifl_wgmma_wait() { emu::wgmma_wait(LEFT); }
template <int REG> inline void ifl_fewer_registers() {}
template <int REG> inline void ifl_more_registers() {}
template <int M, int N, class T> inline void ifl_settle(T (&)[M][N]) {}
#define IFL_SWIZZLED_SMEM(T, name) IFL_DYN_SMEM(T, name)
#else
/* Dynamic shared memory, aligned to the pattern of wgmma's 128-byte swizzle. */
#define IFL_SWIZZLED_SMEM(T, name)                                                                                               \
  extern __shared__ __align__(1024) unsigned char name##_swizzled[];                                                             \
  T *name = reinterpret_cast<T *>(name##_swizzled)
__device__ __forceinline__ uint32_t ifl_shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
/* A barrier whose phase completes after `count` arrivals and all expected bytes. */
__device__ __forceinline__ void ifl_mbarrier_init(uint64_t *bar, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(ifl_shared_address(bar)), "r"(count) : "memory");
}
__device__ __forceinline__ void ifl_mbarrier_arrive(uint64_t *bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(ifl_shared_address(bar)) : "memory");
}
/* Arrives, and makes the phase wait for so many more bytes of bulk copies. */
__device__ __forceinline__ void ifl_mbarrier_arrive_expect(uint64_t *bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(ifl_shared_address(bar)), "r"(bytes) : "memory");
}
/* Waits until the phase with a parity has completed; the first phase has parity 0. */
__device__ __forceinline__ void ifl_mbarrier_wait(uint64_t *bar, uint32_t parity) {
  uint32_t done;
  do
    asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                 : "=r"(done)
                 : "r"(ifl_shared_address(bar)), "r"(parity)
                 : "memory");
  while (!done);
}
/* Copies global memory to shared memory, asynchronously. Addresses and bytes are multiples of 16. */
__device__ __forceinline__ void ifl_bulk_copy(void *to, const void *from, uint32_t bytes, uint64_t *bar) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(ifl_shared_address(to)),
               "l"(from), "r"(bytes), "r"(ifl_shared_address(bar))
               : "memory");
}
/* Makes this thread's writes to shared memory, barriers included, visible to bulk copies and wgmma. */
__device__ __forceinline__ void ifl_proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/* Orders this warp's writes to registers before the wgmma that follow. */
__device__ __forceinline__ void ifl_wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void ifl_wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void ifl_wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
}
/* Changes the number of registers of a warpgroup's threads. */
template <int REG> __device__ __forceinline__ void ifl_fewer_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REG));
}
template <int REG> __device__ __forceinline__ void ifl_more_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REG));
}
/* Keeps the compiler from moving accesses to registers across this point. */
__device__ __forceinline__ void ifl_settle_one(float &v) { asm volatile("" : "+f"(v)::"memory"); }
__device__ __forceinline__ void ifl_settle_one(uint32_t &v) { asm volatile("" : "+r"(v)::"memory"); }
template <int M, int N, class T> __device__ __forceinline__ void ifl_settle(T (&v)[M][N]) {
#pragma unroll
  for (int i = 0; i < M; i++)
#pragma unroll
    for (int j = 0; j < N; j++)
      ifl_settle_one(v[i][j]);
}
/* d += a · b, asynchronously, by a warpgroup: d is 64 × N, a 64 × 16 of f16 in registers as for mma.m16n8k16, b a descriptor of
 * N × 16 of f16 in shared memory. */
template <int N> __device__ __forceinline__ void ifl_wgmma(float (&d)[N / 8][4], const uint32_t (&a)[4], uint64_t b);
#define IFL_D(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
template <> __device__ __forceinline__ void ifl_wgmma<128>(float (&d)[16][4], const uint32_t (&a)[4], uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 "
               "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,"
               "%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,"
               "%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63},"
               "{%64,%65,%66,%67},%68,1,1,1,0;"
               : IFL_D(0), IFL_D(1), IFL_D(2), IFL_D(3),
                 IFL_D(4), IFL_D(5), IFL_D(6), IFL_D(7),
                 IFL_D(8), IFL_D(9), IFL_D(10), IFL_D(11),
                 IFL_D(12), IFL_D(13), IFL_D(14), IFL_D(15)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
template <> __device__ __forceinline__ void ifl_wgmma<256>(float (&d)[32][4], const uint32_t (&a)[4], uint64_t b) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 "
               "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,"
               "%26,%27,%28,%29,%30,%31,%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,"
               "%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63,%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,"
               "%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95,%96,%97,"
               "%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,"
               "%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127},"
               "{%128,%129,%130,%131},%132,1,1,1,0;"
               : IFL_D(0), IFL_D(1), IFL_D(2), IFL_D(3),
                 IFL_D(4), IFL_D(5), IFL_D(6), IFL_D(7),
                 IFL_D(8), IFL_D(9), IFL_D(10), IFL_D(11),
                 IFL_D(12), IFL_D(13), IFL_D(14), IFL_D(15),
                 IFL_D(16), IFL_D(17), IFL_D(18), IFL_D(19),
                 IFL_D(20), IFL_D(21), IFL_D(22), IFL_D(23),
                 IFL_D(24), IFL_D(25), IFL_D(26), IFL_D(27),
                 IFL_D(28), IFL_D(29), IFL_D(30), IFL_D(31)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
#undef IFL_D
#endif

/* The descriptor of a matrix whose rows are 128 bytes of f16 along K, with the 128-byte swizzle; p is a multiple of 1024, plus
 * 32 for every 16 columns. Eight rows are 1024 bytes. */
__device__ __forceinline__ uint64_t ifl_wgmma_rows(const void *p) {
  return (uint64_t)((ifl_shared_address(p) & 0x3ffff) >> 4) | (uint64_t)1 << 16 | (uint64_t)(1024 >> 4) << 32 | (uint64_t)1 << 62;
}
