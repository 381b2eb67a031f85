#include "sextant/attention/cpu/forward/rotated_columns.h"

namespace sextant::cpu {
namespace {

constexpr int64_t kCount = RotatedColumns::kCount;

struct Pairs {
  const Rotation& rotation;

  // Whether pair f exists and has these columns.
  bool has(int64_t f, int64_t first, int64_t second) const {
    if (f >= static_cast<int64_t>(rotation.pairs.size())) return false;
    const Rotation::Pair& pair = rotation.pairs[static_cast<size_t>(f)];
    return pair.first == first && pair.second == second;
  }
};

// The number of pairs from f on that make up the block, which is set; 0: they do not.
int64_t set_block(const Rotation& rotation, int64_t f, std::span<RotatedColumns> blocks) {
  const Pairs pairs = {rotation};
  const Rotation::Pair& pair = rotation.pairs[static_cast<size_t>(f)];
  const int64_t x = pair.first, y = pair.second;
  if (x % kCount != 0) return 0;
  RotatedColumns& block = blocks[static_cast<size_t>(x / kCount)];
  if (block.kind != RotatedColumns::kPlain) return 0;
  if (y == x + 1) {
    for (int64_t n = 0; n < kCount / 2; ++n)
      if (!pairs.has(f + n, x + 2 * n, y + 2 * n)) return 0;
    block = {.kind = RotatedColumns::kNeighbours, .pair = f};
    return kCount / 2;
  }
  if (y % kCount != 0 || y < x) return 0;
  RotatedColumns& partner = blocks[static_cast<size_t>(y / kCount)];
  if (partner.kind != RotatedColumns::kPlain) return 0;
  for (int64_t n = 0; n < kCount; ++n)
    if (!pairs.has(f + n, x + n, y + n)) return 0;
  block = {.kind = RotatedColumns::kFirst, .partner = y, .pair = f};
  partner = {.kind = RotatedColumns::kSecond};
  return kCount;
}

}  // namespace

bool rotated_columns(const Rotation& rotation, int64_t depth, std::span<RotatedColumns> blocks) {
  if (depth % kCount != 0 || depth / kCount > static_cast<int64_t>(blocks.size())) return false;
  for (RotatedColumns& block : blocks) block = {};
  for (int64_t f = 0, count; f < static_cast<int64_t>(rotation.pairs.size()); f += count) {
    count = set_block(rotation, f, blocks);
    if (count == 0) return false;
  }
  return true;
}

}  // namespace sextant::cpu
