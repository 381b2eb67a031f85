// Pages of keys and values as 8-bit integers.
//
//   key of a page: integer x scale of its head and column
//   value:         integer x scale of its head and row
//
// A scale is 1 / 127 of the largest magnitude of what it covers. Keys have a scale for each column
// because some of their columns are much larger than the others, in all rows; those of values are
// alike, and rows differ: KIVI (Liu et al. 2024, arXiv 2402.02750, section 3) and KVQuant (Hooper
// et al. 2024, arXiv 2401.18079, section 3.1), which also keeps keys before their rotation, that
// would mix large columns with others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sextant/attention/score.h"
#include "sextant/base/aligned_memory.h"
#include "sextant/cache/page_pool.h"

namespace sextant {

// [pages, heads, rows, columns] of integers, with a scale for each row or each column.
class Int8Store {
 public:
  enum class Scales { kByColumn, kByRow };

  Int8Store() = default;
  Int8Store(Scales scales, int64_t heads, int64_t rows, int64_t columns)
      : scales_(scales), heads_(heads), rows_(rows), columns_(columns) {}

  // Takes memory for `pages` pages in all.
  void resize(int64_t pages);
  // Rounds page `from` of x, which has finite numbers only, to page `to`.
  void quantize(const AnyView<const float>& x, int64_t from, int64_t to);
  // Copies a page that another store made. Throws Error if its sizes differ.
  void copy_page(const Int8Pages<float>& from, int64_t to);
  // Copies a row of all heads, rounded to the type of `to`.
  void copy_row(int64_t page, int64_t row, const AnyView<float>& to, StoredRow target) const;

  Int8Pages<float> pages(int64_t count) const;  // the first `count`; no view of none

 private:
  int64_t scales_of_head() const { return scales_ == Scales::kByColumn ? columns_ : rows_; }

  Scales scales_ = Scales::kByRow;
  int64_t heads_ = 0, rows_ = 0, columns_ = 0;
  std::vector<int8_t, LinesAllocator<int8_t>> numbers_;
  std::vector<float> scale_;
  std::vector<float> most_, factor_;  // of the columns or the row that are being rounded
};

}  // namespace sextant
