#include "sextant/attention/cpu/amx.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sextant::cpu::amx {
namespace {

bool asked_for() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTiles = 1U << 24, kBfloat16 = 1U << 22, kSavesMore = 1U << 27;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kTiles) == 0 || (d & kBfloat16) == 0)
    return false;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & kSavesMore) == 0) return false;
  uint32_t saved = 0, upper = 0;
  __asm__("xgetbv" : "=a"(saved), "=d"(upper) : "c"(0));
  constexpr uint32_t kTileState = 3U << 17;
  if ((saved & kTileState) != kTileState) return false;
  constexpr long kAskForState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
}

// As the processor reads it.
struct Configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Configuration) == 64);

// Tiles 0 to 3 are sums, [row block][block]; 4 and 5 a's row blocks, 6 and 7 b's blocks. Intrinsics take their numbers
// as literals.
template <int kRowBlocks, int kBlocks>
struct Block {
  const Left& a;
  const Right& b;
  const float *left, *right;

  [[gnu::target("amx-tile,amx-bf16")]] void begin(const float* c, int64_t c_row, bool adds) const {
    const auto stride = static_cast<size_t>(c_row) * sizeof(float);
    const float* const below = c + 16 * c_row;
    if (!adds) {
      _tile_zero(0);
      _tile_zero(1);
      _tile_zero(2);
      _tile_zero(3);
      return;
    }
    _tile_loadd(0, c, stride);
    if constexpr (kBlocks > 1) _tile_loadd(1, c + 16, stride);
    if constexpr (kRowBlocks > 1) _tile_loadd(2, below, stride);
    if constexpr (kRowBlocks > 1 && kBlocks > 1) _tile_loadd(3, below + 16, stride);
  }
  [[gnu::target("amx-tile,amx-bf16")]] void end(float* c, int64_t c_row) const {
    const auto stride = static_cast<size_t>(c_row) * sizeof(float);
    float* const below = c + 16 * c_row;
    _tile_stored(0, c, stride);
    if constexpr (kBlocks > 1) _tile_stored(1, c + 16, stride);
    if constexpr (kRowBlocks > 1) _tile_stored(2, below, stride);
    if constexpr (kRowBlocks > 1 && kBlocks > 1) _tile_stored(3, below + 16, stride);
  }
  [[gnu::target("amx-tile,amx-bf16")]] void take_left(int64_t part) const {
    const float* const from = left + part * a.part_step;
    const auto stride = static_cast<size_t>(a.row_step) * sizeof(float);
    _tile_loadd(4, from, stride);
    if constexpr (kRowBlocks > 1) _tile_loadd(5, from + 16 * a.row_step, stride);
  }
  [[gnu::target("amx-tile,amx-bf16")]] void take_right(int64_t part) const {
    const float* const from = right + part * b.part_step;
    const auto stride = static_cast<size_t>(b.depth_step) * sizeof(float);
    _tile_loadd(6, from, stride);
    if constexpr (kBlocks > 1) _tile_loadd(7, from + b.block_step, stride);
  }
  [[gnu::target("amx-tile,amx-bf16")]] void add_products() const {
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kBlocks > 1) _tile_dpbf16ps(1, 4, 7);
    if constexpr (kRowBlocks > 1) _tile_dpbf16ps(2, 5, 6);
    if constexpr (kRowBlocks > 1 && kBlocks > 1) _tile_dpbf16ps(3, 5, 7);
  }
};

template <int kRowBlocks, int kBlocks>
[[gnu::target("amx-tile,amx-bf16")]] void multiply_block(int64_t parts, int64_t steps,
                                                         const Left& a, const Right& b, float* c,
                                                         int64_t c_row, bool adds) {
  Block<kRowBlocks, kBlocks> block{a, b, a.data, b.data};
  block.begin(c, c_row, adds);
  for (int64_t k = 0; k < steps; ++k, block.left += 16, block.right += 16 * b.depth_step) {
    block.take_left(0);
    if (parts == 1) {
      block.take_right(0);
      block.add_products();
      continue;
    }
    // Each of the six takes over one side from the one before.
    block.take_right(2);
    block.add_products();
    block.take_right(1);
    block.add_products();
    block.take_left(1);
    block.add_products();
    block.take_right(0);
    block.add_products();
    block.take_left(2);
    block.add_products();
    block.take_left(0);
    block.add_products();
  }
  block.end(c, c_row);
}

// Two blocks of b with all rows of a, which find them in the L1 cache then.
template <int kBlocks>
void multiply_blocks(int64_t parts, int64_t row_blocks, int64_t steps, Left a, const Right& b,
                     float* c, int64_t c_row, bool adds) {
  for (; row_blocks >= 2; row_blocks -= 2, a.data += 32 * a.row_step, c += 32 * c_row)
    multiply_block<2, kBlocks>(parts, steps, a, b, c, c_row, adds);
  if (row_blocks > 0) multiply_block<1, kBlocks>(parts, steps, a, b, c, c_row, adds);
}

// g++'s intrinsics do not say that they read memory.
void finish_writing() { __asm__ volatile("" ::: "memory"); }

[[gnu::target("amx-tile,amx-bf16")]] void take_tiles() {
  const Configuration configuration;
  finish_writing();
  _tile_loadconfig(&configuration);
}
[[gnu::target("amx-tile,amx-bf16")]] void give_tiles_back() { _tile_release(); }

}  // namespace

bool available() {
  static const bool is = asked_for();
  return is;
}

// g++ does not compile constructors for a target of their own.
Tiles::Tiles() { take_tiles(); }
Tiles::~Tiles() { give_tiles_back(); }

void multiply(int64_t parts, int64_t row_blocks, int64_t blocks, int64_t steps, const Left& a,
              Right b, float* c, int64_t c_row, bool adds) {
  finish_writing();
  for (; blocks >= 2; blocks -= 2, b.data += 2 * b.block_step, c += 32)
    multiply_blocks<2>(parts, row_blocks, steps, a, b, c, c_row, adds);
  if (blocks > 0) multiply_blocks<1>(parts, row_blocks, steps, a, b, c, c_row, adds);
  finish_writing();
}

}  // namespace sextant::cpu::amx

#else

namespace sextant::cpu::amx {

bool available() { return false; }
Tiles::Tiles() {}
Tiles::~Tiles() {}
void multiply(int64_t, int64_t, int64_t, int64_t, const Left&, Right, float*, int64_t, bool) {}

}  // namespace sextant::cpu::amx

#endif
