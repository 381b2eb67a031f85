#include "sextant/position/sinusoid.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "sextant/base/error.h"
#include "sextant/position/spectrum.h"

namespace sextant {
namespace {

void check_timescale(const char* name, double value) {
  if (!(value > 0 && std::isfinite(value))) {
    fail(std::string("sinusoid: ") + name + ": expected a finite number above 0, but got " +
         std::to_string(value));
  }
}

void check(const SinusoidOptions& options) {
  if (options.width < 1) {
    fail("sinusoid: width: expected at least 1, but got " + std::to_string(options.width));
  }
  if (options.layout == SinusoidLayout::kConcatenated && options.width % 2 != 0) {
    fail("sinusoid: width: expected an even number (concatenated), but got " +
         std::to_string(options.width));
  }
  check_timescale("max_timescale", options.max_timescale);
  check_timescale("min_timescale", options.min_timescale);
  if (options.layout != SinusoidLayout::kTensor2Tensor && options.min_timescale != 1) {
    fail("sinusoid: min_timescale: expected 1 (only tensor2tensor's layout has it), but got " +
         std::to_string(options.min_timescale));
  }
}

// In the order of SinusoidLayout.
constexpr std::array<std::string_view, 3> kNames = {"interleaved", "concatenated", "tensor2tensor"};
constexpr std::string_view kFairseq = "fairseq";

std::string names() {
  std::string text;
  for (const std::string_view name : kNames) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

[[noreturn]] void refuse(std::string_view name, const std::string& where, const std::string& all) {
  fail(where + ": expected one of " + all + ", but got \"" + std::string(name) + "\"");
}

std::optional<SinusoidLayout> find_layout(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return {};
  return static_cast<SinusoidLayout>(found - kNames.begin());
}

Real frequency(const SinusoidOptions& options, int64_t f) {
  const auto real = [](int64_t n) { return Real(static_cast<double>(n)); };
  if (options.layout != SinusoidLayout::kTensor2Tensor) {
    return pow(options.max_timescale, real(-2 * f) / real(options.width));
  }
  const Real ratio = Real(options.min_timescale) / Real(options.max_timescale);
  const int64_t last = std::max<int64_t>(options.width / 2 - 1, 1);
  return options.min_timescale * pow(ratio, real(f) / real(last));
}

}  // namespace

SinusoidLayout sinusoid_layout(std::string_view name, const std::string& where) {
  const auto found = find_layout(name);
  if (!found) refuse(name, where, names());
  return *found;
}

TextSinusoid text_sinusoid(std::string_view name, const std::string& where) {
  if (name == kFairseq) return {.layout = SinusoidLayout::kTensor2Tensor, .fairseq = true};
  const auto found = find_layout(name);
  if (!found) refuse(name, where, text_sinusoid_names());
  return {.layout = *found};
}

std::string text_sinusoid_names() { return names() + ", " + std::string(kFairseq); }

Sinusoid::Sinusoid(const SinusoidOptions& options) : options_(options) {
  check(options);
  for (int64_t f = 0; f < options.width / 2; ++f)
    frequencies_.push_back(turns(frequency(options, f)));
}

void Sinusoid::write_row(int64_t position, std::span<double> row) const {
  if (row.size() != static_cast<size_t>(width())) {
    fail("sinusoid: row: expected " + std::to_string(width()) + " columns, but got " +
         std::to_string(row.size()));
  }
  std::fill(row.begin(), row.end(), 0.0);
  if (position == options_.padding_position) return;
  const bool interleaved = options_.layout == SinusoidLayout::kInterleaved;
  for (size_t f = 0; f < frequencies_.size(); ++f) {
    const CosSin value = cos_sin(frequencies_[f] * position);
    row[interleaved ? 2 * f : f] = value.sin;
    row[interleaved ? 2 * f + 1 : frequencies_.size() + f] = value.cos;
  }
}

std::vector<double> Sinusoid::rows(std::span<const int64_t> positions) const {
  const auto columns = static_cast<size_t>(width());
  std::vector<double> result(positions.size() * columns);
  for (size_t n = 0; n < positions.size(); ++n) {
    write_row(positions[n], std::span(result).subspan(n * columns, columns));
  }
  return result;
}

std::vector<double> Sinusoid::rows(int64_t first, int64_t count, int64_t step) const {
  if (count < 0) fail("sinusoid: count: expected at least 0, but got " + std::to_string(count));
  std::vector<double> result(static_cast<size_t>(count * width()));
  write_rows(first, count, step, result);
  return result;
}

Sinusoid::Angles Sinusoid::angles(int64_t position) const {
  Angles result;
  for (const Turns& frequency : frequencies_) {
    const CosSin value = cos_sin(frequency * position);
    result.sin.push_back(value.sin);
    result.cos.push_back(value.cos);
  }
  return result;
}

void Sinusoid::write_rows(int64_t first, int64_t count, int64_t step,
                          std::span<double> rows) const {
  constexpr int64_t kPositionsAtOnce = 64;
  const auto columns = static_cast<size_t>(width());
  if (rows.size() != static_cast<size_t>(std::max<int64_t>(count, 0)) * columns) {
    fail("sinusoid: rows: expected room for " + std::to_string(count) + " of " +
         std::to_string(columns) + " columns, but got " + std::to_string(rows.size()));
  }
  if (columns % 2 != 0) std::fill(rows.begin(), rows.end(), 0.0);
  const size_t pairs = frequencies_.size();
  const bool interleaved = options_.layout == SinusoidLayout::kInterleaved;
  const size_t apart = interleaved ? 2 : 1, cosines = interleaved ? 1 : pairs;
  std::vector<Angles> offsets;
  for (int64_t n = 0; n < std::min(kPositionsAtOnce, count); ++n)
    offsets.push_back(angles(n * step));
  Angles base;
  for (int64_t n = 0; n < count; ++n) {
    if (n % kPositionsAtOnce == 0) base = angles(first + n * step);
    const Angles& offset = offsets[static_cast<size_t>(n % kPositionsAtOnce)];
    double* row = rows.data() + static_cast<size_t>(n) * columns;
    for (size_t f = 0; f < pairs; ++f) {
      row[apart * f] = base.sin[f] * offset.cos[f] + base.cos[f] * offset.sin[f];
      row[cosines + apart * f] = base.cos[f] * offset.cos[f] - base.sin[f] * offset.sin[f];
    }
    if (first + n * step == options_.padding_position) std::fill_n(row, columns, 0.0);
  }
}

std::vector<int64_t> fairseq_positions(std::span<const int64_t> tokens, int64_t padding_token) {
  std::vector<int64_t> positions;
  positions.reserve(tokens.size());
  int64_t real_tokens = 0;
  for (const int64_t token : tokens) {
    positions.push_back(token == padding_token ? padding_token : padding_token + ++real_tokens);
  }
  return positions;
}

}  // namespace sextant
