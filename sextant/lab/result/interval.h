// Means and their 95 % intervals.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::lab {

// A mean and half the width of its 95 % interval; one value, such as that of a single seed, has no
// interval.
struct MeanInterval {
  double mean = 0;
  std::optional<double> half = {};

  // The ends of the interval; the mean if there is none.
  double low() const { return mean - half.value_or(0); }
  double high() const { return mean + half.value_or(0); }
};

// The mean with Student's t interval, which needs two values; the mean of no values is 0.
MeanInterval interval95(std::span<const double> values);

// The elements of `values` minus those of `minus`; empty if there are more of one.
std::vector<double> paired_differences(std::span<const double> values,
                                       std::span<const double> minus);

// Interval of the difference of two shares, that of `ours` minus that of `theirs`. Both hold
// answers to the same questions in the same order, '1' for a right one. Following Agresti and Min
// 2005, half an answer is added to each of the four kinds of pair, so the interval has a width even
// if all pairs agree. Throws Error if the two differ in length or are empty.
MeanInterval difference95_of_shares(std::string_view ours, std::string_view theirs);

// Half the width of a 95 % interval in standard errors, for large samples.
inline constexpr double kNormal95 = 1.960;

// Numbers in tables and sentences, with a fixed number of decimals. A value that rounds to zero is
// printed as zero without a minus sign.
std::string fixed(double value, int decimals = 3);         // "1.563", "-0.011", "0.000"
std::string signed_fixed(double value, int decimals = 3);  // "+1.563", "-0.011", "+0.000"

// "-0.011 ± 0.004": a mean that has an interval, and half the interval's width.
std::string signed_fixed(const MeanInterval& interval);

}  // namespace sextant::lab
