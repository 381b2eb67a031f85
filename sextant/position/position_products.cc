#include "sextant/position/position_products.h"

#include <cmath>
#include <limits>
#include <string>

#include "sextant/base/error.h"

namespace sextant {
namespace {

// The columns of a matrix of `size` numbers with this many rows.
size_t columns_of(size_t size, int64_t rows, const char* name) {
  if (rows < 1 || size == 0 || size % static_cast<size_t>(rows) != 0) {
    fail(std::string("position products: ") + name + ": expected a matrix of " +
         std::to_string(rows) + " rows, at least 1, but got " + std::to_string(size) + " numbers");
  }
  return size / static_cast<size_t>(rows);
}

// a b^T for a [rows of a, width] and b [rows of b, width].
std::vector<double> times_transposed(std::span<const double> a, std::span<const double> b,
                                     size_t width) {
  std::vector<double> out;
  out.reserve(width == 0 ? 0 : a.size() / width * (b.size() / width));
  for (size_t i = 0; i < a.size(); i += width) {
    for (size_t j = 0; j < b.size(); j += width) {
      double sum = 0;
      for (size_t c = 0; c < width; ++c) sum += a[i + c] * b[j + c];
      out.push_back(sum);
    }
  }
  return out;
}

// rows [count, width] times matrix [width, columns].
std::vector<double> projected(std::span<const double> rows, size_t width,
                              std::span<const double> matrix, size_t columns) {
  std::vector<double> out(rows.size() / width * columns);
  for (size_t i = 0; i < rows.size() / width; ++i) {
    for (size_t k = 0; k < width; ++k) {
      const double value = rows[i * width + k];
      for (size_t c = 0; c < columns; ++c) out[i * columns + c] += value * matrix[k * columns + c];
    }
  }
  return out;
}

struct Moments {
  double sum = 0;
  int64_t count = 0;
  double mean() const { return sum / static_cast<double>(count); }
};

}  // namespace

std::vector<double> position_products(std::span<const double> rows, int64_t count) {
  return times_transposed(rows, rows, columns_of(rows.size(), count, "rows"));
}

std::vector<double> position_products(std::span<const double> rows, int64_t count,
                                      const HeadProjection& head) {
  const size_t width = columns_of(rows.size(), count, "rows");
  const size_t columns = columns_of(head.query.size(), static_cast<int64_t>(width), "query");
  if (head.key.size() != head.query.size()) {
    fail("position products: key: expected as many numbers as the query's " +
         std::to_string(head.query.size()) + ", but got " + std::to_string(head.key.size()));
  }
  return times_transposed(projected(rows, width, head.query, columns),
                          projected(rows, width, head.key, columns), columns);
}

std::vector<double> standardised(std::vector<double> values) {
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(values.size()));
  for (double& value : values) value = deviation > 0 ? (value - mean) / deviation : 0;
  return values;
}

double variance_explained_by_distance(std::span<const double> matrix, int64_t count,
                                      PairsOfPositions pairs) {
  const auto side = static_cast<size_t>(count);
  if (count < 1 || matrix.size() != side * side) {
    fail("variance explained by distance: expected a square matrix of side " +
         std::to_string(count) + ", but got " + std::to_string(matrix.size()) + " numbers");
  }
  // Calls use(value, diagonal) for each pair. Values are less the first one, so that equal values
  // have no variance by rounding.
  double first = std::numeric_limits<double>::quiet_NaN();
  const auto for_pairs = [&](const auto& use) {
    for (size_t i = 0; i < side; ++i) {
      for (size_t j = 0; j < (pairs == PairsOfPositions::kPast ? i : side); ++j) {
        const double value = matrix[i * side + j];
        if (!std::isfinite(value)) continue;
        if (std::isnan(first)) first = value;
        use(value - first, i + side - j);
      }
    }
  };
  Moments all;
  std::vector<Moments> diagonals(2 * side);
  for_pairs([&](double value, size_t diagonal) {
    for (Moments* moments : {&all, &diagonals[diagonal]}) {
      moments->sum += value;
      ++moments->count;
    }
  });
  double total = 0, left = 0;
  for_pairs([&](double value, size_t diagonal) {
    total += (value - all.mean()) * (value - all.mean());
    const double rest = value - diagonals[diagonal].mean();
    left += rest * rest;
  });
  // By the decomposition of the variance the explained part is the total less the rest, which has
  // no cancellation for a Toeplitz matrix.
  return total > 0 ? 1 - left / total : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace sextant
