// The kernels' machine on the CPU: each thread of a block is a fiber, and barriers, shuffles and
// products of tiles are points where fibers wait for each other.
//
// Warps run one after the other, each until all its lanes wait for the block, in ascending or in
// descending order; results that differ between the two orders show a barrier that is missing.
// Shared memory begins as NaN. A missing barrier between lanes of one warp is not found, nor
// anything about speed.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>

#include "sextant/base/half.h"

#define SEXTANT_KERNEL inline
#define SEXTANT_DEVICE inline
#define SEXTANT_UNROLL
#define SEXTANT_ROLL

namespace sextant::cuda {

using Bf16 = Bfloat16;
using Fp16 = Float16;

struct BlockIndex {
  int64_t x;
  int32_t y, z;
};

namespace fibers {

// The block that runs in this thread of the host.
struct Running {
  int thread = 0, threads = 0;
  BlockIndex block = {0, 0, 0};
  int64_t blocks = 1;
  char* shared = nullptr;
};
extern thread_local Running running;

enum class Order { kAscending, kDescending };
// Runs body() in every thread of every block of the grid.
void run_grid(int64_t x, int y, int z, int threads, int shared_bytes, Order order,
              const std::function<void()>& body);

enum class Scope { kWarp, kThreadBlock };
void wait(Scope scope);
// Stores the operands of this lane, waits for the warp, and adds the product to c.
void multiply(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
              float (*widen)(uint16_t));
float exchange(float x, int lanes);
bool any_in_block(bool mine);

}  // namespace fibers

inline int thread() { return fibers::running.thread; }
inline int threads() { return fibers::running.threads; }
inline BlockIndex block() { return fibers::running.block; }
inline int64_t blocks() { return fibers::running.blocks; }
inline char* shared_memory() { return fibers::running.shared; }

inline void sync_warp() { fibers::wait(fibers::Scope::kWarp); }
inline void sync_block() { fibers::wait(fibers::Scope::kThreadBlock); }
inline bool sync_block_any(bool mine) { return fibers::any_in_block(mine); }
inline float shuffle_xor(float x, int lanes) { return fibers::exchange(x, lanes); }

using sextant::to_float;
template <class T>
T narrow(float x) {
  return narrowed<T>(x);
}

inline uint32_t two(const uint16_t low, const uint16_t high) {
  return low | static_cast<uint32_t>(high) << 16;
}
template <bool kTransposed, class T>
void load_a(uint32_t (&a)[4], const T* tile, int row) {
  const int g = thread() % 32 / 4, t = thread() % 4;
  const auto bits = [&](int m, int k) {
    return (kTransposed ? tile[k * row + m] : tile[m * row + k]).bits;
  };
  for (int e = 0; e < 4; ++e) {
    const int m = g + 8 * (e % 2), k = 2 * t + 8 * (e / 2);
    a[e] = two(bits(m, k), bits(m, k + 1));
  }
}
template <bool kTransposed, class T>
void load_b(uint32_t (&b)[2], const T* tile, int row) {
  const int g = thread() % 32 / 4, t = thread() % 4;
  const auto bits = [&](int n, int k) {
    return (kTransposed ? tile[k * row + n] : tile[n * row + k]).bits;
  };
  for (int e = 0; e < 2; ++e) {
    const int k = 2 * t + 8 * e;
    b[e] = two(bits(g, k), bits(g, k + 1));
  }
}
inline void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Bf16) {
  fibers::multiply(c, a, b, [](uint16_t x) { return to_float(Bf16{x}); });
}
inline void mma(float (&c)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], Fp16) {
  fibers::multiply(c, a, b, [](uint16_t x) { return to_float(Fp16{x}); });
}

struct Copy16 {
  uint64_t low, high;
};

inline void cos_sin_of_half_turns(double x, double& cos, double& sin) {
  constexpr double kPi = 3.14159265358979323846;
  cos = std::cos(kPi * x);
  sin = std::sin(kPi * x);
}

}  // namespace sextant::cuda
