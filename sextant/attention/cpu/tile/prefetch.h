// Lines of memory that will be read, asked for one by one while something else is worked on.
//
// What asks for a line keeps one of a core's dozen buffers until it has come; when all are taken,
// it stands still. So they are asked for among the steps, or the tiles, of a product.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hwy/base.h"
#include "sextant/base/view.h"

namespace sextant::cpu {

class Prefetcher {
 public:
  Prefetcher() = default;  // asks for nothing
  // count: of rows of so many bytes, `step` bytes apart.
  Prefetcher(const void* first, int64_t bytes, int64_t step, int64_t count)
      : bytes_(bytes), step_(step), left_(count) {
    if (left_ <= 0 || bytes_ <= 0) return;
    at_ = static_cast<const std::byte*>(first);
    if (step_ == bytes_) {
      bytes_ *= left_;
      left_ = 1;
    }
    end_ = at_ + bytes_;
  }
  // Of x, whose rows must be whole in memory, or nothing is asked for.
  Prefetcher(const void* first, const AnyView<const float>& x, int64_t count)
      : Prefetcher(first, x.columns * x.element_size(), x.row_stride * x.element_size(),
                   x.column_stride == 1 ? count : 0) {}

  // Where to: more than an L1 cache holds, or what is read soon, or read soon and not again for
  // long. Of what is read once nothing is pushed out of the other caches, and their traffic does
  // not compete with reading: where two cores of a Zen 5 wait for memory, that is a tenth of their
  // time.
  enum class Into { kL2 = 2, kL1 = 3, kL1Once = 0 };

  // For the next line. After the last one it asks for that over and over.
  template <Into kInto>
  HWY_INLINE void prefetch() {
    ask_at<kInto>(at_);
    at_ += kLine;
    if (HWY_UNLIKELY(at_ >= end_)) next_row();
  }

  template <Into kInto>
  static HWY_INLINE void ask_at(const void* at) {
    constexpr int64_t kReading = 0;
    __builtin_prefetch(at, kReading, static_cast<int>(kInto));
  }

  static constexpr int64_t kLine = 64;  // bytes

 private:
  void next_row() {
    if (--left_ > 0) {
      at_ = end_ - bytes_ + step_;
      end_ += step_;
    } else {
      at_ -= kLine;
    }
  }

  static constexpr std::byte kNothing{};  // any address, for asking reads nothing

  int64_t bytes_ = 0, step_ = 0, left_ = 0;
  const std::byte *at_ = &kNothing, *end_ = at_;
};

}  // namespace sextant::cpu
