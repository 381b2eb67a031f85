#include "sextant/position/buckets.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "sextant/base/error.h"
#include "sextant/position/double_double.h"

namespace sextant {
namespace {

constexpr int64_t kMostDistance = std::numeric_limits<int32_t>::max();

// An arbitrary-precision natural number: digits to base 2^32, lowest first.
using Natural = std::vector<uint32_t>;

void multiply_by_power(Natural& number, int64_t factor, int64_t exponent) {
  for (; exponent > 0; --exponent) {
    uint64_t carry = 0;
    for (uint32_t& digit : number) {
      carry += uint64_t{digit} * static_cast<uint64_t>(factor);
      digit = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) number.push_back(static_cast<uint32_t>(carry));
  }
}

// The sign of near^(1 - step/steps) far^(step/steps) - n, computed with integers alone: compares
// near^(steps - step) far^step with n^steps.
int compare_knot(int64_t near, int64_t far, int64_t step, int64_t steps, int64_t n) {
  Natural left{1}, right{1};
  multiply_by_power(left, far, step);
  multiply_by_power(left, near, steps - step);
  multiply_by_power(right, n, steps);
  if (left.size() != right.size()) return left.size() < right.size() ? -1 : 1;
  for (size_t i = left.size(); i-- > 0;) {
    if (left[i] != right[i]) return left[i] < right[i] ? -1 : 1;
  }
  return 0;
}

// Knot `step`, 0 <= step <= steps, of the geometric sequence from `near` to `far` in `steps` steps.
struct Knot {
  int64_t floor = 0;
  bool whole = false;  // the knot is an integer
};

Knot knot(int64_t near, int64_t far, int64_t step, int64_t steps) {
  const auto real = [](int64_t n) { return Real(static_cast<double>(n)); };
  const Real ratio = real(far) / real(near);
  const Real value = real(near) * pow(ratio, real(step) / real(steps));
  const double nearest = std::nearbyint(value.high);
  const auto n = static_cast<int64_t>(nearest);
  // Real decides all cases but ties. Ties have a small denominator once the fraction is reduced: a
  // tie makes far / near a power of that order.
  double side = double(value - nearest);
  if (std::fabs(side) < 0x1p-80 * nearest) {
    const int64_t common = std::gcd(step, steps);
    side = compare_knot(near, far, step / common, steps / common, n);
  }
  return {side < 0 ? n - 1 : n, side == 0};
}

// The last bucket whose start is at most `size`.
int64_t find(const std::vector<int64_t>& starts, int64_t size) {
  return std::upper_bound(starts.begin(), starts.end(), size) - starts.begin() - 1;
}

// distance|, limited to 2^32: every start is below.
int64_t size_of(int64_t distance) {
  constexpr int64_t kEnough = int64_t{1} << 32;
  return std::abs(std::clamp(distance, -kEnough, kEnough));
}

}  // namespace

T5Buckets::T5Buckets(const Options& options) : bidirectional_(options.bidirectional) {
  const int64_t sides = bidirectional_ ? 2 : 1;
  if (options.buckets < 2 * sides || options.buckets % sides != 0) {
    fail(std::string("t5 buckets: buckets: expected ") +
         (bidirectional_ ? "an even number of at least 4 (bidirectional)" : "at least 2") +
         ", but got " + std::to_string(options.buckets));
  }
  const int64_t side = options.buckets / sides, exact = side / 2;
  if (options.max_distance <= exact || options.max_distance > kMostDistance) {
    fail("t5 buckets: max_distance: expected a number above " + std::to_string(exact) +
         " (half of the buckets of one side) and below 2^31, but got " +
         std::to_string(options.max_distance));
  }
  for (int64_t bucket = 0; bucket <= exact; ++bucket) starts_.push_back(bucket);
  for (int64_t step = 1; step < side - exact; ++step) {
    const Knot k = knot(exact, options.max_distance, step, side - exact);
    starts_.push_back(k.whole ? k.floor : k.floor + 1);
  }
}

int64_t T5Buckets::bucket(int64_t distance) const {
  if (distance >= 0) return find(starts_, size_of(distance));
  return bidirectional_ ? side() + find(starts_, size_of(distance)) : 0;
}

DebertaBuckets::DebertaBuckets(const Options& options) : buckets_(options.buckets) {
  if (buckets_ < 4 || buckets_ % 2 != 0) {
    fail("deberta buckets: buckets: expected an even number of at least 4, but got " +
         std::to_string(buckets_));
  }
  const int64_t exact = buckets_ / 2, farthest = options.max_positions - 1;
  if (farthest <= exact || farthest > kMostDistance) {
    fail("deberta buckets: max_positions: expected a number above " + std::to_string(exact + 1) +
         " and at most 2^31, but got " + std::to_string(options.max_positions));
  }
  for (int64_t bucket = 0; bucket <= exact; ++bucket) starts_.push_back(bucket);
  const int64_t last = options.flavour == Flavour::kHuggingFace ? exact : exact - 1;
  for (int64_t step = 1; step <= last; ++step) {
    starts_.push_back(knot(exact, farthest, step - 1, exact - 1).floor + 1);
  }
}

int64_t DebertaBuckets::bucket(int64_t distance) const {
  const int64_t size = find(starts_, size_of(distance));
  return distance < 0 ? -size : size;
}

int64_t DebertaBuckets::row(int64_t distance) const {
  return std::clamp(bucket(distance) + buckets_, int64_t{0}, 2 * buckets_ - 1);
}

}  // namespace sextant
