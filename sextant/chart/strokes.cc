#include "sextant/chart/strokes.h"

#include <algorithm>
#include <cmath>

namespace sextant::chart {
namespace {

// Appends the points of first .. last that are kept; they share a column.
void keep(std::span<const double> y, size_t first, size_t last, std::vector<size_t>& out) {
  size_t least = first, greatest = first;
  for (size_t i = first; i <= last; ++i) {
    if (y[i] < y[least]) least = i;
    if (y[i] > y[greatest]) greatest = i;
  }
  for (const size_t i : {first, std::min(least, greatest), std::max(least, greatest), last}) {
    if (out.empty() || out.back() < i) out.push_back(i);
  }
}

}  // namespace

std::vector<std::vector<size_t>> strokes(std::span<const double> y,
                                         const std::function<long(size_t)>& column) {
  std::vector<std::vector<size_t>> out;
  bool drawing = false;
  for (size_t i = 0; i < y.size();) {
    if (!std::isfinite(y[i])) {
      drawing = false;
      ++i;
      continue;
    }
    if (!drawing) out.emplace_back();
    drawing = true;
    size_t last = i;
    while (last + 1 < y.size() && std::isfinite(y[last + 1]) && column(last + 1) == column(i)) {
      ++last;
    }
    keep(y, i, last, out.back());
    i = last + 1;
  }
  return out;
}

}  // namespace sextant::chart
