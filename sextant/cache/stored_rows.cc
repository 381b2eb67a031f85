#include "sextant/cache/stored_rows.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>

#include "sextant/base/error.h"

namespace sextant::stored_rows {
namespace {

// The shortest decimal number that is the float32.
std::string shown(double x) {
  std::array<char, 32> digits;
  const auto end =
      std::to_chars(digits.data(), digits.data() + digits.size(), static_cast<float>(x)).ptr;
  return {digits.data(), end};
}

float largest(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 65504;
    case DType::kBfloat16:
      return to_float(Bfloat16{0x7f7f});
    case DType::kFloat32:
    case DType::kFloat64:
      break;
  }
  return std::numeric_limits<float>::max();
}

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return "float16";
    case DType::kBfloat16:
      return "bfloat16";
    case DType::kFloat32:
    case DType::kFloat64:
      break;
  }
  return "float32";
}

// The least magnitude, as bits of a float32, that rounds to infinity.
uint32_t least_overflow(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x477ff000;  // 65520
    case DType::kBfloat16:
      return 0x7f7f8000;
    case DType::kFloat32:
    case DType::kFloat64:
      break;
  }
  return 0x7f800000;
}

// Whether a finite element of a row is `limit` or more in magnitude. It is one loop without
// branches, for it reads every element that is appended.
template <class Row>
bool any_above(const Row* row, int64_t columns, int64_t step, uint32_t limit) {
  const uint32_t span = uint32_t{0x7f800000} - limit;
  uint32_t found = 0;
  for (int64_t c = 0; c < columns; ++c) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(to_float(row[c * step])) & 0x7fffffffU;
    found |= static_cast<uint32_t>(magnitude - limit < span);
  }
  return found != 0;
}

std::string at_element(int64_t head, int64_t row, int64_t column) {
  return " at head " + std::to_string(head) + ", row " + std::to_string(row) + ", column " +
         std::to_string(column);
}

}  // namespace

void copy_row(const AnyView<const float>& from, StoredRow source, const AnyView<float>& to,
              StoredRow target) {
  HostAnyView(from).visit([&](const auto& x) {
    HostAnyView(to).visit([&](const auto& y) {
      using Number = std::remove_pointer_t<decltype(y.data)>;
      for (int64_t h = 0; h < x.heads; ++h)
        for (int64_t c = 0; c < x.columns; ++c)
          y(target.batch, h, target.row, c) =
              narrowed<Number>(to_float(x(source.batch, h, source.row, c)));
    });
  });
}

bool overflows(double x, DType dtype) {
  if (!std::isfinite(x)) return false;
  const uint32_t bits = std::bit_cast<uint32_t>(rounded_to_odd(x)) & 0x7fffffffU;
  return bits >= least_overflow(dtype) ||
         (dtype == DType::kFloat32 && !std::isfinite(static_cast<float>(x)));
}

void refuse_overflow(const std::string& name, DType dtype, double value, int64_t head, int64_t row,
                     int64_t column) {
  fail("kv cache: " + name + ": expected magnitudes up to " + shown(largest(dtype)) + ", which " +
       name_of(dtype) + " holds, but got " + shown(value) + at_element(head, row, column));
}

void check_fits(const char* name, const AnyView<const float>& x, int64_t b, DType dtype) {
  if (dtype == DType::kFloat32 || x.dtype == dtype) return;
  HostAnyView(x).visit([&](const auto& view) {
    for (int64_t h = 0; h < view.heads; ++h)
      for (int64_t i = 0; i < view.rows; ++i) {
        if (!any_above(view.at(b, h, i), view.columns, view.column_stride, least_overflow(dtype)))
          continue;
        for (int64_t c = 0; c < view.columns; ++c)
          if (overflows(to_float(view(b, h, i, c)), dtype))
            refuse_overflow(name, dtype, to_float(view(b, h, i, c)), h, i, c);
      }
  });
}

void check_finite(const char* name, const AnyView<const float>& x, int64_t b) {
  HostAnyView(x).visit([&](const auto& view) {
    for (int64_t h = 0; h < view.heads; ++h)
      for (int64_t i = 0; i < view.rows; ++i) {
        float zero = 0;  // NaN if an element is not finite
        for (int64_t c = 0; c < view.columns; ++c) zero += 0 * to_float(view(b, h, i, c));
        for (int64_t c = 0; std::isnan(zero) && c < view.columns; ++c)
          if (const float element = to_float(view(b, h, i, c)); !std::isfinite(element))
            fail("kv cache: " + std::string(name) +
                 ": expected finite numbers, as int8 holds no others, but got " + shown(element) +
                 at_element(h, i, c));
      }
  });
}

}  // namespace sextant::stored_rows
