// Means over seeds and how far to trust them.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace sextant::lab {

// A mean and half the width of its 95 % interval.
struct MeanInterval {
  double mean = 0, half = 0;
};

// Student's t over values, two at least. Throws Error for fewer.
MeanInterval interval95(std::span<const double> values);

// Of the share of `ours` minus that of `theirs`, answers of the same texts in the same order: '1'
// for right. By Agresti and Min 2005, half an answer added to each of the four kinds of pair, so
// that texts on which all agree leave an error. Throws Error if they are not of one length, or
// empty.
MeanInterval difference95_of_shares(std::string_view ours, std::string_view theirs);

// Over seeds. half: as above; absent for one seed.
struct SeedMean {
  double mean = 0;
  std::optional<double> half = {};
};
SeedMean seed_mean(std::span<const double> values);

// Half a 95 % interval is so many standard errors where there are many samples.
inline constexpr double kNormal95 = 1.960;

}  // namespace sextant::lab
