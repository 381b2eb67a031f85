#include "sextant/attention/key_bias.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace sextant {
namespace {

constexpr double kNone = -std::numeric_limits<double>::infinity();

// The largest bias in ranges of keys. Ranges whose ends do not fall cost a comparison for each new
// key: keys_ has those of the last range that are larger than all later ones.
class LargestBias {
 public:
  // keys: memory for as many keys as there are.
  LargestBias(const double* first, int64_t stride, int64_t* keys)
      : first_(first), stride_(stride), keys_(keys) {}

  double in(const KeyRange& range) {
    if (range.first >= range.last) return kNone;
    if (range.first < range_.first || range.last < range_.last || range.first > range_.last) {
      begin_ = end_ = 0;
      range_ = {range.first, range.first};
    }
    for (int64_t j = range_.last; j < range.last; ++j) {
      while (end_ > begin_ && !(bias(keys_[end_ - 1]) > bias(j))) --end_;
      keys_[end_++] = j;
    }
    while (keys_[begin_] < range.first) ++begin_;
    range_ = range;
    return bias(keys_[begin_]);
  }

 private:
  double bias(int64_t key) const { return first_[key * stride_]; }

  const double* first_;
  int64_t stride_;
  int64_t* keys_;
  int64_t begin_ = 0, end_ = 0;  // of keys_
  KeyRange range_ = {};
};

}  // namespace

KeyBiasOrigins::KeyBiasOrigins(const HostView<const double>& key_bias,
                               std::span<const Frame> frames, std::span<const Sweep> sweeps,
                               int64_t queries, Workspace* memory) {
  if (!key_bias) return;
  const int64_t batch = key_bias.batch;
  const int64_t heads =
      key_bias.head_stride == 0 ? std::min<int64_t>(key_bias.heads, 1) : key_bias.heads;
  head_stride_ = heads > 1 ? queries : 0;
  batch_stride_ = heads * queries;
  static_assert(sizeof(double) == 2 * sizeof(float) && sizeof(int64_t) == sizeof(double));
  Workspace& floats = memory ? *memory : own_;
  const int64_t count = batch * batch_stride_;
  auto* const values = reinterpret_cast<double*>(floats.floats(2 * count));
  auto* const keys = reinterpret_cast<int64_t*>(floats.floats(2 * key_bias.rows));
  values_ = values;
  std::fill(values, values + count, kNone);
  for (const Frame& frame : frames) {
    const bool every = frame.batch == kEveryBatch;
    for (int64_t b = every ? 0 : frame.batch; b < (every ? batch : frame.batch + 1); ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (const Sweep& sweep : sweeps) {
          LargestBias largest(key_bias.at(b, h, 0), key_bias.row_stride, keys);
          double* const origins = values + b * batch_stride_ + h * head_stride_;
          for (int64_t i = frame.query_row; i < frame.query_row + frame.queries; ++i)
            origins[i] = std::max(origins[i], largest.in(visible_keys(sweep, frame, b, i)));
        }
  }
  for (int64_t n = 0; n < count; ++n)
    if (!std::isfinite(values[n])) values[n] = 0;
}

}  // namespace sextant
