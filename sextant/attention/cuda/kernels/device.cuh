// The parts of the machine that kernels use: thread numbers, barriers, products of 16 x 8 tiles,
// and numbers of 16 bits. nvcc takes them from CUDA; tests compile the same kernels for the CPU,
// where each thread is a fiber.
#pragma once

#include <cstdint>

#include "sextant/attention/cuda/arguments.h"

#ifdef __CUDACC__

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define SEXTANT_KERNEL __global__
#define SEXTANT_DEVICE __device__ __forceinline__
#define SEXTANT_UNROLL _Pragma("unroll")
#define SEXTANT_ROLL _Pragma("unroll 1")

namespace sextant::cuda {

using Bf16 = __nv_bfloat16;
using Fp16 = __half;

struct BlockIndex {
  int64_t x;
  int32_t y, z;
};

SEXTANT_DEVICE int thread() { return static_cast<int>(threadIdx.x); }
SEXTANT_DEVICE int threads() { return static_cast<int>(blockDim.x); }
SEXTANT_DEVICE BlockIndex block() {
  return {static_cast<int64_t>(blockIdx.x), static_cast<int32_t>(blockIdx.y),
          static_cast<int32_t>(blockIdx.z)};
}
SEXTANT_DEVICE int64_t blocks() { return static_cast<int64_t>(gridDim.x); }
SEXTANT_DEVICE char* shared_memory() {
  extern __shared__ __align__(16) char memory[];
  return memory;
}

SEXTANT_DEVICE void sync_warp() { __syncwarp(); }
SEXTANT_DEVICE void sync_block() { __syncthreads(); }
// A barrier that returns whether any thread of the block gave true.
SEXTANT_DEVICE bool sync_block_any(bool mine) { return __syncthreads_or(mine) != 0; }
SEXTANT_DEVICE float shuffle_xor(float x, int lanes) { return __shfl_xor_sync(~0U, x, lanes); }

SEXTANT_DEVICE float to_float(float x) { return x; }
SEXTANT_DEVICE float to_float(Bf16 x) { return __bfloat162float(x); }
SEXTANT_DEVICE float to_float(Fp16 x) { return __half2float(x); }
template <class T>
SEXTANT_DEVICE T narrow(float x);
template <>
SEXTANT_DEVICE float narrow<float>(float x) {
  return x;
}
template <>
SEXTANT_DEVICE Bf16 narrow<Bf16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
SEXTANT_DEVICE Fp16 narrow<Fp16>(float x) {
  return __float2half_rn(x);
}

SEXTANT_DEVICE uint32_t shared_address(const void* x) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(x));
}
// The operands of mma() from tiles in shared memory whose rows begin on 16 bytes. a: 16 rows of 16
// elements, or kTransposed: 16 elements of 16 rows; b: 8 rows (columns of the product) of 16, or
// kTransposed: 16 rows of 8.
template <bool kTransposed, class T>
SEXTANT_DEVICE void load_a(uint32_t (&a)[4], const T* tile, int row) {
  const int lane = thread() % 32;
  if constexpr (kTransposed) {
    const T* const from = tile + (lane % 8 + 8 * (lane / 16)) * row + 8 * (lane / 8 % 2);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(shared_address(from)));
  } else {
    const T* const from = tile + lane % 16 * row + 8 * (lane / 16);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3])
                 : "r"(shared_address(from)));
  }
}
template <bool kTransposed, class T>
SEXTANT_DEVICE void load_b(uint32_t (&b)[2], const T* tile, int row) {
  const int lane = thread() % 16;
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                 : "=r"(b[0]), "=r"(b[1])
                 : "r"(shared_address(tile + lane * row)));
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                 : "=r"(b[0]), "=r"(b[1])
                 : "r"(shared_address(tile + lane % 8 * row + 8 * (lane / 8))));
  }
}

// c += a b. Lane l has rows l / 4 and l / 4 + 8 and columns 2 (l mod 4) and the next of c.
SEXTANT_DEVICE void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Bf16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
SEXTANT_DEVICE void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Fp16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

struct Copy16 {
  uint4 bits;
};

// cos and sin of x half turns.
SEXTANT_DEVICE void cos_sin_of_half_turns(double x, double& cos, double& sin) {
  sincospi(x, &sin, &cos);
}

}  // namespace sextant::cuda

#else

#include "tests/attention/cuda/fibers.h"

#endif
