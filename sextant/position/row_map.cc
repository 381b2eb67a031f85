#include "sextant/position/row_map.h"

#include <algorithm>
#include <limits>
#include <string>

#include "sextant/base/error.h"

namespace sextant {
namespace {

void check(const Diagonals& diagonals) {
  if (diagonals.count < 0) {
    fail("row map: diagonals.count: expected at least 0, but got " +
         std::to_string(diagonals.count));
  }
}

void check(const LinearRows& rows) {
  if (rows.rows < 1 || rows.rows >= std::numeric_limits<int32_t>::max()) {
    fail("row map: rows: expected a number from 1 to 2^31 - 2, but got " +
         std::to_string(rows.rows));
  }
  if (rows.zero_distance < 0 || rows.zero_distance >= rows.rows) {
    fail("row map: zero_distance: expected a row of " + std::to_string(rows.rows) + ", but got " +
         std::to_string(rows.zero_distance));
  }
}

template <class Row>
std::vector<int32_t> map_diagonals(const Diagonals& diagonals, Row row) {
  check(diagonals);
  std::vector<int32_t> result(static_cast<size_t>(diagonals.count));
  for (int64_t index = 0; index < diagonals.count; ++index) {
    result[static_cast<size_t>(index)] = static_cast<int32_t>(row(diagonals.distance(index)));
  }
  return result;
}

int64_t row_at(const LinearRows& rows, int64_t distance) {
  const int64_t row = rows.order == RowOrder::kQueryMinusKey ? rows.zero_distance + distance
                                                             : rows.zero_distance - distance;
  if (row >= 0 && row < rows.rows) return row;
  switch (rows.outside) {
    case Outside::kClip:
      return std::clamp(row, int64_t{0}, rows.rows - 1);
    case Outside::kZero:
      return rows.rows;
    case Outside::kRefuse:
      break;
  }
  fail("row map: distance: expected one of the table's " + std::to_string(rows.rows) +
       " rows, but distance " + std::to_string(distance) + " would be row " + std::to_string(row));
}

}  // namespace

std::vector<int32_t> row_map(const Diagonals& diagonals, const LinearRows& rows) {
  check(rows);
  return map_diagonals(diagonals, [&](int64_t distance) { return row_at(rows, distance); });
}

std::vector<int32_t> row_map(const Diagonals& diagonals, const T5Buckets& buckets) {
  return map_diagonals(diagonals, [&](int64_t distance) { return buckets.bucket(distance); });
}

std::vector<int32_t> row_map(const Diagonals& diagonals, const DebertaBuckets& buckets) {
  return map_diagonals(diagonals, [&](int64_t distance) { return buckets.row(distance); });
}

std::vector<int32_t> clipped_row_map(const Diagonals& diagonals, int64_t clip, RowOrder order) {
  constexpr int64_t kMost = (int64_t{1} << 30) - 2;
  if (clip < 0 || clip > kMost) {
    fail("row map: clip: expected a number from 0 to " + std::to_string(kMost) + ", but got " +
         std::to_string(clip));
  }
  return row_map(diagonals, {.rows = 2 * clip + 1, .zero_distance = clip, .order = order});
}

}  // namespace sextant
