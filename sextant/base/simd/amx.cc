#include "sextant/base/simd/amx.h"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>

namespace sextant::amx {
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

// The operand of LDTILECFG in the processor's layout.
struct Configuration {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(Configuration) == 64);

// Tiles 0 to 3 hold sums, [row block][block]; tiles 4 and 5 hold row blocks of a, 6 and 7 blocks of
// b. The intrinsics take tile numbers as literals.
template <int kRowBlocks, int kBlocks>
struct TileConfig {
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
    const float* const from = left + part * a.term_step;
    const auto stride = static_cast<size_t>(a.row_step) * sizeof(float);
    _tile_loadd(4, from, stride);
    if constexpr (kRowBlocks > 1) _tile_loadd(5, from + 16 * a.row_step, stride);
  }
  [[gnu::target("amx-tile,amx-bf16")]] void take_right(int64_t part) const {
    const float* const from = right + part * b.term_step;
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

// Number of products of terms per step. Each of the six but the first reuses one operand of the
// previous product.
constexpr int64_t phases_of(int64_t terms) { return terms == 1 ? 1 : 6; }

template <class SomeBlock>
[[gnu::target("amx-tile,amx-bf16")]] void add_phase(const SomeBlock& block, int64_t terms,
                                                    int64_t phase) {
  switch (phase) {
    case 0:
      block.take_left(0);
      block.take_right(terms - 1);
      break;
    case 1:
      block.take_right(1);
      break;
    case 2:
      block.take_left(1);
      break;
    case 3:
      block.take_right(0);
      break;
    case 4:
      block.take_left(2);
      break;
    default:
      block.take_left(0);
  }
  block.add_products();
}

template <int kRowBlocks, int kBlocks>
[[gnu::target("amx-tile,amx-bf16")]] void multiply_block(const Product& p, int64_t row_block,
                                                         int64_t block_of_b) {
  float* const c = p.c + row_block * 16 * p.c_row + block_of_b * 16;
  TileConfig<kRowBlocks, kBlocks> block{p.a, p.b, p.a.data + row_block * 16 * p.a.row_step,
                                        p.b.data + block_of_b * p.b.block_step};
  block.begin(c, p.c_row, p.adds);
  for (int64_t k = 0; k < p.steps; ++k, block.left += 16, block.right += 16 * p.b.depth_step) {
    add_phase(block, p.terms, 0);
    if (p.terms == 1) continue;
    add_phase(block, p.terms, 1);
    add_phase(block, p.terms, 2);
    add_phase(block, p.terms, 3);
    add_phase(block, p.terms, 4);
    add_phase(block, p.terms, 5);
  }
  block.end(c, p.c_row);
}

// One step of the row sums: the products with the non-zero term of 1, in the same order as in
// multiply_block().
template <int kRowBlocks>
[[gnu::target("amx-tile,amx-bf16")]] void multiply_by_ones(const Product& p, int64_t row_block,
                                                           int64_t step) {
  alignas(64) static constexpr std::array<uint32_t, 256> kOnes = [] {
    std::array<uint32_t, 256> ones{};
    ones.fill(0x3f803f80);  // two bfloat16 ones
    return ones;
  }();
  float* const c = p.c + row_block * 16 * p.c_row;
  const Left& a = p.a;
  const TileConfig<kRowBlocks, 1> block{a, p.b, a.data + row_block * 16 * a.row_step + step * 16,
                                        nullptr};
  if (step == 0) block.begin(c, p.c_row, false);
  _tile_loadd(6, kOnes.data(), 64);
  for (int64_t part = 1; part < p.terms; ++part) {
    block.take_left(part);
    block.add_products();
  }
  block.take_left(0);
  block.add_products();
  if (step + 1 == p.steps) block.end(c, p.c_row);
}
void multiply_by_ones(const Product& p, int64_t row_block, int64_t step) {
  (row_block + 1 < p.row_blocks ? multiply_by_ones<2> : multiply_by_ones<1>)(p, row_block, step);
}

// Multiplies two blocks of b, or one if it is the last.
template <int kRowBlocks>
void multiply_blocks(const Product& p, int64_t row_block, int64_t block) {
  if (block + 1 < p.blocks)
    multiply_block<kRowBlocks, 2>(p, row_block, block);
  else
    multiply_block<kRowBlocks, 1>(p, row_block, block);
}

void multiply_at(const Product& p, int64_t row_block, int64_t block) {
  if (row_block + 1 < p.row_blocks)
    multiply_blocks<2>(p, row_block, block);
  else
    multiply_blocks<1>(p, row_block, block);
}

// A compiler barrier: g++'s intrinsics do not tell the compiler that they read memory.
void finish_writing() { __asm__ volatile("" ::: "memory"); }

[[gnu::target("amx-tile,amx-bf16")]] void take_tiles(std::byte* before) {
  const Configuration configuration;
  _tile_storeconfig(before);
  finish_writing();
  _tile_loadconfig(&configuration);
}
[[gnu::target("amx-tile,amx-bf16")]] void give_tiles_back(const std::byte* before) {
  finish_writing();
  _tile_loadconfig(before);
}

}  // namespace

bool available() {
  static const bool is = asked_for();
  return is;
}

// g++ does not accept a target attribute on constructors.
Tiles::Tiles() { take_tiles(before_); }
Tiles::~Tiles() { give_tiles_back(before_); }

// The outer loop takes two blocks of b, which stay in the L1 cache for all rows of a.
void multiply(const Product& p) {
  finish_writing();
  for (int64_t block = 0; block < p.blocks; block += 2)
    for (int64_t row_block = 0; row_block < p.row_blocks; row_block += 2)
      multiply_at(p, row_block, block);
  finish_writing();
}

void TileQueue::add(const Request& request, int64_t pieces) {
  if (pieces == 0) return;
  if (left_ == 0) {
    list_.clear();
    first_ = 0;
  }
  list_.push_back(request);
  left_ += pieces;
}

// For sums of 2 x 2 blocks, a piece is one product of terms; at the edges, where there are fewer
// blocks, a piece is all products of these blocks.
void TileQueue::add(const Product& p) {
  const int64_t wide = p.blocks / 2, high = p.row_blocks / 2;
  add({p, false}, wide * high * p.steps * phases_of(p.terms) +
                      (p.blocks % 2) * (high + p.row_blocks % 2) + wide * (p.row_blocks % 2));
}

// A piece is one step.
void TileQueue::add_totals(Product p, float* c) {
  p.blocks = 1;
  p.c = c;
  p.c_row = kTotals;
  add({p, true}, (p.row_blocks + 1) / 2 * p.steps);
}

void TileQueue::next_block(const Product& p) {
  step_ = 0;
  if ((row_block_ += 2) < p.row_blocks) return;
  row_block_ = 0;
  if ((block_ += 2) < p.blocks) return;
  block_ = 0;
  ++first_;
}

[[gnu::target("amx-tile,amx-bf16")]] void TileQueue::multiply_one(const Request& request) {
  const Product& p = request.product;
  if (request.totals) {
    multiply_by_ones(p, row_block_, step_);
    if (++step_ == p.steps) next_block(p);
    return;
  }
  if (row_block_ + 1 >= p.row_blocks || block_ + 1 >= p.blocks) {
    multiply_at(p, row_block_, block_);
    return next_block(p);
  }
  float* const c = p.c + row_block_ * 16 * p.c_row + block_ * 16;
  const TileConfig<2, 2> block{p.a, p.b, p.a.data + row_block_ * 16 * p.a.row_step + step_ * 16,
                               p.b.data + block_ * p.b.block_step + step_ * 16 * p.b.depth_step};
  if (step_ == 0 && phase_ == 0) block.begin(c, p.c_row, p.adds);
  add_phase(block, p.terms, phase_);
  if (++phase_ < phases_of(p.terms)) return;
  phase_ = 0;
  if (++step_ < p.steps) return;
  block.end(c, p.c_row);
  next_block(p);
}

void TileQueue::share(int64_t calls) {
  share_ = (left_ * kWhole + calls - 1) / calls;
  due_ = 0;
}

void TileQueue::multiply_some(int64_t pieces) {
  finish_writing();
  for (; pieces > 0 && left_ > 0; --pieces, --left_) multiply_one(list_[first_]);
  finish_writing();
}

}  // namespace sextant::amx

#else

namespace sextant::amx {

bool available() { return false; }
Tiles::Tiles() {}
Tiles::~Tiles() {}
void multiply(const Product&) {}
void TileQueue::add(const Product&) {}
void TileQueue::add_totals(Product, float*) {}
void TileQueue::share(int64_t) {}
void TileQueue::multiply_some(int64_t) {}

}  // namespace sextant::amx

#endif
