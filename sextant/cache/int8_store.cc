#include "sextant/cache/int8_store.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <new>
#include <string>
#include <type_traits>

#include "sextant/base/packed.h"
#include "sextant/cache/cache_checks.h"

namespace sextant {
namespace {

constexpr float kMost = 127;

// x rounded to an integer, half to even. For magnitudes below 2^22.
float rounded(float x) {
  constexpr float kShift = 0x1.8p23F;
  return (x + kShift) - kShift;
}

// The factor by which numbers up to `most` in magnitude become integers. The least ones, whose
// factor would overflow, become 0.
float factor_of(float most) {
  const float factor = kMost / most;
  return std::isfinite(factor) ? factor : 0;
}

int8_t integer(float x, float factor) {
  return static_cast<int8_t>(std::clamp(rounded(x * factor), -kMost, kMost));
}

size_t product(int64_t a, int64_t b) {
  size_t all = 0;
  if (__builtin_mul_overflow(a, b, &all)) throw std::bad_array_new_length();
  return all;
}

}  // namespace

void Int8Store::resize(int64_t pages) {
  // At least one byte: a view of no columns has an address, too.
  numbers_.resize(std::max<size_t>(product(pages, heads_ * rows_ * columns_), 1));
  scale_.resize(product(pages, heads_ * scales_of_head()));
  count_ = pages;
}

void Int8Store::quantize(const AnyView<const float>& x, int64_t from, int64_t to) {
  HostAnyView(x).visit([&](const auto& view) {
    for (int64_t h = 0; h < heads_; ++h) {
      const auto at = [&](int64_t row) { return view.at(from, h, row); };
      std::ranges::fill(most_, 0.0F);
      const auto of = [&](int64_t row, int64_t column) {
        return static_cast<size_t>(scales_ == Scales::kByColumn ? column : row);
      };
      for (int64_t i = 0; i < rows_; ++i) {
        const auto* const row = at(i);
        for (int64_t c = 0; c < columns_; ++c)
          most_[of(i, c)] = std::max(most_[of(i, c)], std::abs(to_float(row[c])));
      }
      float* const scale = scale_.data() + (to * heads_ + h) * scales_of_head();
      for (size_t n = 0; n < most_.size(); ++n) {
        factor_[n] = factor_of(most_[n]);
        scale[n] = factor_[n] == 0 ? 0 : most_[n] / kMost;
      }
      int8_t* number = numbers_.data() + (to * heads_ + h) * rows_ * columns_;
      for (int64_t i = 0; i < rows_; ++i, number += columns_) {
        const auto* const row = at(i);
        for (int64_t c = 0; c < columns_; ++c)
          number[c] = integer(to_float(row[c]), factor_[of(i, c)]);
      }
    }
  });
}

void Int8Store::copy_page(const Int8Pages<float>& from, int64_t to) {
  const auto expect = [](const char* field, int64_t got, int64_t expected) {
    if (got != expected) cache_checks::bad(field, std::to_string(expected), got);
  };
  const bool by_column = scales_ == Scales::kByColumn;
  expect("int8.heads", from.numbers.heads, heads_);
  expect("int8.rows", from.numbers.rows, rows_);
  expect("int8.columns", from.numbers.columns, columns_);
  expect("int8.scale.heads", from.scale.heads, heads_);
  expect("int8.scale.rows", from.scale.rows, by_column ? 1 : rows_);
  expect("int8.scale.columns", from.scale.columns, by_column ? columns_ : 1);
  const HostView numbers(from.numbers);
  const HostView scale(from.scale);
  int8_t* number = numbers_.data() + to * heads_ * rows_ * columns_;
  float* own_scale = scale_.data() + to * heads_ * scales_of_head();
  for (int64_t h = 0; h < heads_; ++h) {
    for (int64_t i = 0; i < rows_; ++i)
      for (int64_t c = 0; c < columns_; ++c) *number++ = numbers(0, h, i, c);
    for (int64_t n = 0; n < scales_of_head(); ++n)
      *own_scale++ = scale(0, h, by_column ? 0 : n, by_column ? n : 0);
  }
}

void Int8Store::copy_row(int64_t page, int64_t row, const AnyView<float>& to,
                         StoredRow target) const {
  HostAnyView(to).visit([&](const auto& y) {
    using Number = std::remove_pointer_t<decltype(y.data)>;
    for (int64_t h = 0; h < heads_; ++h) {
      const int64_t head = page * heads_ + h;
      const int8_t* const number = numbers_.data() + (head * rows_ + row) * columns_;
      const float* const scale = scale_.data() + head * scales_of_head();
      for (int64_t c = 0; c < columns_; ++c)
        y(target.batch, h, target.row, c) = narrowed<Number>(
            static_cast<float>(number[c]) * scale[scales_ == Scales::kByColumn ? c : row]);
    }
  });
}

Int8Pages<float> Int8Store::pages() const {
  if (count_ == 0) return {};
  const bool by_column = scales_ == Scales::kByColumn;
  return {.numbers = packed(numbers_.data(), count_, heads_, rows_, columns_),
          .scale = packed(scale_.data(), count_, heads_, by_column ? 1 : rows_,
                          by_column ? columns_ : 1)};
}

}  // namespace sextant
