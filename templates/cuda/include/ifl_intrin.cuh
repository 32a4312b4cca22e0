// Intrinsics: inline PTX with nvcc, C++ with the same fragment layouts in the emulation. Only ifl_intrin90.cuh also
// contains PTX.
#pragma once
#ifdef IFL_EMU
#include <stdint.h>
inline uint4 ifl_load_stream(const void *p) { return *(const uint4 *)p; }
template <class V> inline void ifl_load_stream_if(V &v, const void *p, bool wanted) {
  if (wanted)
    v = *(const V *)p;
}
inline void ifl_await_inputs() {}
inline uint32_t ifl_signs(uint32_t v) { return __byte_perm(v, 0, 0xba98); }
inline int ifl_dp4a_us(uint32_t a, int b, int c) {
  for (int i = 0; i < 4; i++)
    c += (int)(uint8_t)(a >> 8 * i) * (int)(int8_t)(b >> 8 * i);
  return c;
}
namespace emu {
// A,B fragments -> dense, multiply, -> D.  K=16, 16-bit inputs.
template <float (*CV)(uint16_t)>
EMU_NOTSAN inline void mma16816(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], const char *op) {
  struct P {
    const uint32_t *a, *b;
    float *d;
  } me{a, b, d};
  Slot s;
  s.p = &me;
  int p;
  warp_coll(~0u, op, &s, p, false, [](uint32_t, Slot *in, Slot *) EMU_NOTSAN {
    float A[16][16], Bt[16][8], D[16][8];
    for (int l = 0; l < 32; l++) {
      const P *q = (const P *)in[l].p;
      int g = l >> 2, t = (l & 3) * 2;
      for (int i = 0; i < 2; i++) {
        int sh = 16 * i;
        A[g][t + i] = CV(q->a[0] >> sh);
        A[g + 8][t + i] = CV(q->a[1] >> sh);
        A[g][t + 8 + i] = CV(q->a[2] >> sh);
        A[g + 8][t + 8 + i] = CV(q->a[3] >> sh);
        Bt[t + i][g] = CV(q->b[0] >> sh);
        Bt[t + 8 + i][g] = CV(q->b[1] >> sh);
        D[g][t + i] = q->d[i];
        D[g + 8][t + i] = q->d[2 + i];
      }
    }
    for (int m = 0; m < 16; m++)
      for (int k = 0; k < 16; k++) {
        float x = A[m][k];
        for (int n = 0; n < 8; n++)
          D[m][n] += x * Bt[k][n];
      }
    for (int l = 0; l < 32; l++) {
      const P *q = (const P *)in[l].p;
      int g = l >> 2, t = (l & 3) * 2;
      for (int i = 0; i < 2; i++) {
        q->d[i] = D[g][t + i];
        q->d[2 + i] = D[g + 8][t + i];
      }
    }
  });
}
} // namespace emu
inline void ifl_mma_m16n8k16_f16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  emu::mma16816<emu::h2f>(d, a, b, "mma.m16n8k16.f16");
}
inline void ifl_mma_m16n8k16_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  emu::mma16816<emu::b2f>(d, a, b, "mma.m16n8k16.bf16");
}
// int8: A 16x32 row, B 32x8 col, s32 accumulate
namespace emu {
template <bool U> EMU_NOTSAN inline void mma16832(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  struct P {
    const uint32_t *a, *b;
    int *d;
  } me{a, b, d};
  Slot s;
  s.p = &me;
  int p;
  warp_coll(~0u, U ? "mma.m16n8k32.u8.s8" : "mma.m16n8k32.s8", &s, p, false, [](uint32_t, Slot *in, Slot *) EMU_NOTSAN {
    int A[16][32], Bt[32][8], D[16][8];
    for (int l = 0; l < 32; l++) {
      const P *q = (const P *)in[l].p;
      int g = l >> 2, t = l & 3;
      for (int i = 0; i < 4; i++) {
        auto by = [i](uint32_t v) { return (int)(int8_t)(v >> 8 * i); };
        auto ay = [i](uint32_t v) { return U ? (int)(uint8_t)(v >> 8 * i) : (int)(int8_t)(v >> 8 * i); };
        A[g][t * 4 + i] = ay(q->a[0]);
        A[g + 8][t * 4 + i] = ay(q->a[1]);
        A[g][16 + t * 4 + i] = ay(q->a[2]);
        A[g + 8][16 + t * 4 + i] = ay(q->a[3]);
        Bt[t * 4 + i][g] = by(q->b[0]);
        Bt[16 + t * 4 + i][g] = by(q->b[1]);
      }
      for (int i = 0; i < 2; i++) {
        D[g][t * 2 + i] = q->d[i];
        D[g + 8][t * 2 + i] = q->d[2 + i];
      }
    }
    for (int m = 0; m < 16; m++)
      for (int k = 0; k < 32; k++)
        for (int n = 0; n < 8; n++)
          D[m][n] += A[m][k] * Bt[k][n];
    for (int l = 0; l < 32; l++) {
      const P *q = (const P *)in[l].p;
      int g = l >> 2, t = l & 3;
      for (int i = 0; i < 2; i++) {
        q->d[i] = D[g][t * 2 + i];
        q->d[2 + i] = D[g + 8][t * 2 + i];
      }
    }
  });
}
} // namespace emu
inline void ifl_mma_m16n8k32_s8(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { emu::mma16832<false>(d, a, b); }
inline void ifl_mma_m16n8k32_u8s8(int (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) { emu::mma16832<true>(d, a, b); }
template <bool TR> inline void emu_ldmatrix_x4(uint32_t (&r)[4], const void *row) {
  if ((uintptr_t)row & 15)
    emu::die("ldmatrix: row address of lane %d is not 16-byte aligned", emu::T->lane);
  emu::Slot s;
  s.p = row;
  int p;
  const void *rp[4][2];
  int l = emu::T->lane;
  [&]() EMU_NOTSAN {
    auto *c = emu::warp_coll(~0u, "ldmatrix.x4", &s, p, false, emu::nolast);
    for (int j = 0; j < 4; j++) {
      rp[j][0] = c->in[p][j * 8 + (TR ? (l & 3) * 2 : l >> 2)].p;
      rp[j][1] = c->in[p][j * 8 + (l & 3) * 2 + 1].p;
    }
  }();
  for (int j = 0; j < 4; j++)
    if (TR)
      r[j] = ((const uint16_t *)rp[j][0])[l >> 2] | (uint32_t)((const uint16_t *)rp[j][1])[l >> 2] << 16;
    else
      r[j] = ((const uint32_t *)rp[j][0])[l & 3];
}
inline void ifl_ldmatrix_x4(uint32_t (&r)[4], const void *row) { emu_ldmatrix_x4<false>(r, row); }
inline void ifl_ldmatrix_x4_trans(uint32_t (&r)[4], const void *row) { emu_ldmatrix_x4<true>(r, row); }
inline void ifl_cp_async16(void *d, const void *s) { emu::copy_async(d, s); }
inline void ifl_cp_async_commit() { emu::copy_commit(); }
template <int N> inline void ifl_cp_async_wait() { emu::copy_wait(N); }
#else
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <stdint.h>
#define IFL_EXPORT(name)
#define IFL_SHARED(TY, name, ...) __shared__ __align__(16) TY name __VA_ARGS__
#define IFL_DYN_SMEM(T, name)                                                                                                    \
  extern __shared__ __align__(16) unsigned char name##_raw[];                                                                    \
  T *name = reinterpret_cast<T *>(name##_raw)
/* Loads 16 bytes of global memory that are read once, without allocating them in L1. */
__device__ __forceinline__ uint4 ifl_load_stream(const void *p) {
  uint4 v;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p));
  return v;
}
/* The same for 16, 8 or 4 bytes, or no load. These loads are issued in the order of the source, also across barriers. */
__device__ __forceinline__ void ifl_load_stream_if(uint4 &v, const void *p, bool wanted) {
  asm volatile("{.reg .pred %%w; setp.ne.u32 %%w,%5,0; @%%w ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];}"
               : "+r"(v.x), "+r"(v.y), "+r"(v.z), "+r"(v.w)
               : "l"(p), "r"((uint32_t)wanted));
}
__device__ __forceinline__ void ifl_load_stream_if(uint2 &v, const void *p, bool wanted) {
  asm volatile("{.reg .pred %%w; setp.ne.u32 %%w,%3,0; @%%w ld.global.nc.L1::no_allocate.v2.u32 {%0,%1}, [%2];}"
               : "+r"(v.x), "+r"(v.y)
               : "l"(p), "r"((uint32_t)wanted));
}
__device__ __forceinline__ void ifl_load_stream_if(uint32_t &v, const void *p, bool wanted) {
  asm volatile("{.reg .pred %%w; setp.ne.u32 %%w,%2,0; @%%w ld.global.nc.L1::no_allocate.u32 %0, [%1];}"
               : "+r"(v)
               : "l"(p), "r"((uint32_t)wanted));
}
/* Waits for the kernels before this one. A kernel that is launched before they end (programmatic dependent launch) reads
 * nothing that they write before this call; other kernels and older GPUs do not wait. It also lets the next kernel start. */
__device__ __forceinline__ void ifl_await_inputs() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents; griddepcontrol.wait;" ::: "memory");
#endif
}
/* 255 for every byte with bit 7, 0 for the others. */
__device__ __forceinline__ uint32_t ifl_signs(uint32_t v) {
  uint32_t d;
  asm("prmt.b32 %0, %1, 0, 0xba98;" : "=r"(d) : "r"(v));
  return d;
}
/* c + the sum over four bytes of a (unsigned) times b (signed). */
__device__ __forceinline__ int ifl_dp4a_us(uint32_t a, int b, int c) {
  int d;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
#define IFL_MMA(NAME, TY)                                                                                                        \
  __device__ __forceinline__ void NAME(float(&d)[4], const uint32_t(&a)[4], const uint32_t(&b)[2]) {                             \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TY "." TY ".f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"    \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                                \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                                            \
  }
IFL_MMA(ifl_mma_m16n8k16_f16, "f16")
IFL_MMA(ifl_mma_m16n8k16_bf16, "bf16")
#define IFL_MMA8(NAME, TY)                                                                                                       \
  __device__ __forceinline__ void NAME(int(&d)[4], const uint32_t(&a)[4], const uint32_t(&b)[2]) {                               \
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." TY ".s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"        \
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                                                \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));                                            \
  }
IFL_MMA8(ifl_mma_m16n8k32_s8, "s8")
IFL_MMA8(ifl_mma_m16n8k32_u8s8, "u8")
__device__ __forceinline__ void ifl_ldmatrix_x4(uint32_t (&r)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"((uint32_t)__cvta_generic_to_shared(row))
               : "memory");
}
__device__ __forceinline__ void ifl_ldmatrix_x4_trans(uint32_t (&r)[4], const void *row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3},[%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"((uint32_t)__cvta_generic_to_shared(row))
               : "memory");
}
__device__ __forceinline__ void ifl_cp_async16(void *d, const void *s) {
  asm volatile("cp.async.cg.shared.global [%0],[%1],16;" ::"r"((uint32_t)__cvta_generic_to_shared(d)), "l"(s) : "memory");
}
__device__ __forceinline__ void ifl_cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ __forceinline__ void ifl_cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
#endif
