#include "sextant/lab/result/interval.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "sextant/base/error.h"

namespace sextant::lab {
namespace {

// Student's t at 0.975 for 1, 2, ... degrees of freedom. For more, 1.96 + 2.5 / n is accurate to
// 0.002.
constexpr std::array<double, 20> kStudent = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                             2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                                             2.131,  2.120, 2.110, 2.101, 2.093, 2.086};

double student(size_t freedom) {
  if (freedom <= kStudent.size()) return kStudent.at(freedom - 1);
  return kNormal95 + 2.5 / static_cast<double>(freedom);
}

double mean_of(std::span<const double> values) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  return mean;
}

}  // namespace

MeanInterval interval95(std::span<const double> values) {
  const double mean = mean_of(values);
  if (values.size() < 2) return {.mean = mean};
  const auto count = static_cast<double>(values.size());
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {.mean = mean,
          .half = student(values.size() - 1) * std::sqrt(squares / (count - 1) / count)};
}

std::vector<double> paired_differences(std::span<const double> values,
                                       std::span<const double> minus) {
  if (values.size() != minus.size()) return {};
  std::vector<double> result;
  for (size_t n = 0; n < values.size(); ++n) result.push_back(values[n] - minus[n]);
  return result;
}

MeanInterval difference95_of_shares(std::string_view ours, std::string_view theirs) {
  if (ours.size() != theirs.size() || ours.empty())
    fail(fmt::format("interval: expected answers to the same texts, but got {} and {}", ours.size(),
                     theirs.size()));
  double only_ours = 0, only_theirs = 0;
  for (size_t n = 0; n < ours.size(); ++n) {
    only_ours += ours[n] == '1' && theirs[n] != '1' ? 1 : 0;
    only_theirs += ours[n] != '1' && theirs[n] == '1' ? 1 : 0;
  }
  const auto count = static_cast<double>(ours.size());
  const double guarded = count + 2, unlike = only_ours + only_theirs + 1;
  const double apart = (only_ours - only_theirs) / guarded;
  return {.mean = (only_ours - only_theirs) / count,
          .half = kNormal95 * std::sqrt((unlike / guarded - apart * apart) / guarded)};
}

std::string signed_fixed(double value, int decimals) {
  std::string text = fmt::format("{:+.{}f}", value, decimals);
  if (text.find_first_of("123456789ni") == std::string::npos) text.front() = '+';
  return text;
}

std::string fixed(double value, int decimals) {
  const std::string text = signed_fixed(value, decimals);
  return text.front() == '+' ? text.substr(1) : text;
}

std::string signed_fixed(const MeanInterval& interval) {
  return fmt::format("{} ± {:.3f}", signed_fixed(interval.mean), interval.half.value());
}

}  // namespace sextant::lab
