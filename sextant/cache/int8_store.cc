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

struct Step {
  float factor, scale;
};

// The scale of numbers up to `most` in magnitude, and its inverse. The least numbers, whose factor
// would overflow, become 0; the largest integer never becomes infinite.
Step step_of(float most) {
  const float factor = kMost / most;
  if (!std::isfinite(factor)) return {0, 0};
  const float scale = most / kMost;
  return {factor, std::isfinite(scale * kMost) ? scale : std::nextafter(scale, 0.0F)};
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
  most_.resize(static_cast<size_t>(scales_ == Scales::kByColumn ? columns_ : 1));
  factor_.resize(most_.size());
}

void Int8Store::quantize(const AnyView<const float>& x, int64_t from, int64_t to) {
  // Rows with one scale each are rounded one by one, those of columns together.
  const bool by_column = scales_ == Scales::kByColumn;
  const int64_t together = by_column ? rows_ : 1;
  HostAnyView(x).visit([&](const auto& view) {
    for (int64_t h = 0; h < heads_; ++h) {
      const int64_t head = to * heads_ + h;
      for (int64_t first = 0; first < rows_; first += together) {
        std::ranges::fill(most_, 0.0F);
        for (int64_t i = first; i < first + together; ++i) {
          const auto* const row = view.at(from, h, i);
          for (int64_t c = 0; c < columns_; ++c) {
            float& most = most_[static_cast<size_t>(by_column ? c : 0)];
            most = std::max(most, std::abs(to_float(row[c])));
          }
        }
        float* const scale = scale_.data() + head * scales_of_head() + (by_column ? 0 : first);
        for (size_t n = 0; n < most_.size(); ++n) {
          const Step step = step_of(most_[n]);
          factor_[n] = step.factor;
          scale[n] = step.scale;
        }
        int8_t* number = numbers_.data() + (head * rows_ + first) * columns_;
        for (int64_t i = first; i < first + together; ++i, number += columns_) {
          const auto* const row = view.at(from, h, i);
          for (int64_t c = 0; c < columns_; ++c)
            number[c] = integer(to_float(row[c]), factor_[static_cast<size_t>(by_column ? c : 0)]);
        }
      }
    }
  });
}

void Int8Store::copy_page(const Int8Pages<float>& from, int64_t to) {
  const auto expect = [](const char* field, int64_t got, int64_t expected) {
    if (got != expected) cache_checks::bad(field, std::to_string(expected), got);
  };
  const bool by_column = scales_ == Scales::kByColumn;
  if (from.numbers.batch < 1 || from.scale.batch < 1 || (rows_ * columns_ > 0 && !from.numbers) ||
      !from.scale)
    cache_checks::bad("int8: pages", "one", std::min(from.numbers.batch, from.scale.batch));
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

Int8Pages<float> Int8Store::pages(int64_t count) const {
  if (count == 0) return {};
  const bool by_column = scales_ == Scales::kByColumn;
  return {.numbers = packed(numbers_.data(), count, heads_, rows_, columns_),
          .scale = packed(scale_.data(), count, heads_, by_column ? 1 : rows_,
                          by_column ? columns_ : 1)};
}

}  // namespace sextant
