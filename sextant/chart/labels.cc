#include "sextant/chart/labels.h"

#include <algorithm>
#include <numeric>

namespace sextant::chart {
namespace {

// A block of touching labels. The mean of their preferred places gives the place of its first
// label.
struct LabelBlock {
  double sum = 0;  // of preferred places, each moved up by the labels before it in the block
  size_t count = 0;
  double place(double low, double high, double spacing) const {
    const double last = high - spacing * static_cast<double>(count - 1);
    return std::clamp(sum / static_cast<double>(count), low, std::max(low, last));
  }
};

}  // namespace

// Pooling adjacent violators (Ayer et al. 1955): isotonic regression of wanted[i] - i * spacing.
std::vector<double> spread_out(std::span<const double> wanted, double spacing, double low,
                               double high) {
  const size_t n = wanted.size();
  if (n > 1) spacing = std::min(spacing, (high - low) / static_cast<double>(n - 1));
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });

  std::vector<LabelBlock> blocks;
  for (const size_t i : order) {
    blocks.push_back({wanted[i], 1});
    while (blocks.size() > 1) {
      const LabelBlock last = blocks.back();
      LabelBlock& before = blocks[blocks.size() - 2];
      const double end =
          before.place(low, high, spacing) + spacing * static_cast<double>(before.count);
      if (last.place(low, high, spacing) >= end) break;
      before.sum += last.sum - spacing * static_cast<double>(before.count * last.count);
      before.count += last.count;
      blocks.pop_back();
    }
  }

  std::vector<double> out(n);
  size_t next = 0;
  for (const LabelBlock& block : blocks) {
    double place = block.place(low, high, spacing);
    for (size_t k = 0; k < block.count; ++k, place += spacing) out[order[next++]] = place;
  }
  return out;
}

}  // namespace sextant::chart
