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
  LargestBias(const double* first, int64_t stride) : first_(first), stride_(stride) {}

  double in(const KeyRange& range) {
    if (range.first >= range.last) return kNone;
    if (range.first < range_.first || range.last < range_.last || range.first > range_.last) {
      keys_.clear();
      begin_ = 0;
      range_ = {range.first, range.first};
    }
    for (int64_t j = range_.last; j < range.last; ++j) {
      while (keys_.size() > begin_ && !(bias(keys_.back()) > bias(j))) keys_.pop_back();
      keys_.push_back(j);
    }
    while (keys_[begin_] < range.first) ++begin_;
    range_ = range;
    return bias(keys_[begin_]);
  }

 private:
  double bias(int64_t key) const { return first_[key * stride_]; }

  const double* first_;
  int64_t stride_;
  std::vector<int64_t> keys_;
  size_t begin_ = 0;
  KeyRange range_ = {};
};

}  // namespace

KeyBiasOrigins::KeyBiasOrigins(const HostView<const double>& key_bias,
                               std::span<const Frame> frames, std::span<const Sweep> sweeps,
                               int64_t queries) {
  if (!key_bias) return;
  const int64_t batch = key_bias.batch;
  const int64_t heads =
      key_bias.head_stride == 0 ? std::min<int64_t>(key_bias.heads, 1) : key_bias.heads;
  head_stride_ = heads > 1 ? queries : 0;
  batch_stride_ = heads * queries;
  values_.assign(static_cast<size_t>(batch * batch_stride_), kNone);
  for (const Frame& frame : frames) {
    const bool every = frame.batch == kEveryBatch;
    for (int64_t b = every ? 0 : frame.batch; b < (every ? batch : frame.batch + 1); ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (const Sweep& sweep : sweeps) {
          LargestBias largest(key_bias.at(b, h, 0), key_bias.row_stride);
          double* const origins = values_.data() + b * batch_stride_ + h * head_stride_;
          for (int64_t i = frame.query_row; i < frame.query_row + frame.queries; ++i)
            origins[i] = std::max(origins[i], largest.in(visible_keys(sweep, frame, b, i)));
        }
  }
  for (double& origin : values_)
    if (!std::isfinite(origin)) origin = 0;
}

}  // namespace sextant
