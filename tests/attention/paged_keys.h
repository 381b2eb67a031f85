// The keys and values of a score in pages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <random>
#include <type_traits>
#include <vector>

#include "sextant/attention/score.h"
#include "sextant/base/packed.h"

namespace sextant {

inline constexpr int64_t kSpare = 3;  // pages that belong to no sequence

// The keys and values of a score, scattered over pages in random order. Rows past the end, and the
// spare pages, hold NaN.
template <class T>
class Paged {
 public:
  Paged(const Score<T>& whole, int64_t page_rows, uint64_t seed)
      : per_entry_((whole.k.rows + page_rows - 1) / page_rows), score(whole) {
    const int64_t pages = whole.k.batch * per_entry_ + kSpare;
    std::vector<int64_t> order(static_cast<size_t>(pages));
    for (int64_t n = 0; n < pages; ++n) order[static_cast<size_t>(n)] = n;
    std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
    table_.assign(order.begin(), order.end() - kSpare);
    score.k = scattered(whole.k, page_rows, pages, k_);
    score.v = scattered(whole.v, page_rows, pages, v_);
    table_.push_back(0);  // so that the page table is not null even without keys
    score.pages = {.at = table_.data(), .batch_stride = per_entry_, .rows = whole.k.rows};
  }

 private:
  AnyView<const T> scattered(const AnyView<const T>& x, int64_t page_rows, int64_t pages,
                             std::vector<std::byte>& memory) {
    return HostAnyView(x).visit([&](const auto& view) -> AnyView<const T> {
      using Number = std::remove_cvref_t<decltype(*view.data)>;
      const int64_t count = pages * x.heads * page_rows * x.columns;
      memory.assign(static_cast<size_t>(count) * sizeof(Number), std::byte{0xff});  // NaN
      const HostView to(
          packed(reinterpret_cast<Number*>(memory.data()), pages, x.heads, page_rows, x.columns));
      for (int64_t b = 0; b < x.batch; ++b)
        for (int64_t h = 0; h < x.heads; ++h)
          for (int64_t j = 0; j < x.rows; ++j)
            for (int64_t c = 0; c < x.columns; ++c)
              to(table_[static_cast<size_t>(b * per_entry_ + j / page_rows)], h, j % page_rows, c) =
                  view(b, h, j, c);
      return to;
    });
  }

  int64_t per_entry_;
  std::vector<std::byte> k_, v_;
  std::vector<int64_t> table_;

 public:
  Score<T> score;
};

}  // namespace sextant
