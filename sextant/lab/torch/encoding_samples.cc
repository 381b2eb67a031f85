#include "sextant/lab/torch/encoding_samples.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "sextant/lab/torch/probe_encoding.h"

namespace sextant::lab {
namespace {

constexpr int64_t kCells = 64;

// Keeps result files short; figures do not show more digits.
double rounded(double value) { return std::round(value * 1e4) / 1e4; }

// 0, 1, ... 63, then in steps of about 1/32 of the distance; the last is length - 1.
std::vector<int64_t> distances_below(int64_t length) {
  std::vector<int64_t> distances;
  for (int64_t d = 0; d < length; d += std::max<int64_t>(1, d / 32)) distances.push_back(d);
  if (distances.back() != length - 1) distances.push_back(length - 1);
  return distances;
}

// -d for each distance but 0, and the distances, in rising order.
std::vector<int64_t> in_both_directions(const std::vector<int64_t>& distances) {
  std::vector<int64_t> both;
  for (size_t n = distances.size(); n-- > 1;) both.push_back(-distances[n]);
  both.insert(both.end(), distances.begin(), distances.end());
  return both;
}

std::vector<at::Tensor> position_parameters(const Decoder& decoder) {
  std::vector<at::Tensor> found;
  for (const at::Tensor& parameter : decoder.method_parameters())
    found.push_back(parameter.detach().cpu().to(at::kDouble));
  return found;
}

double dot(const double* a, const double* b, int64_t count) {
  double sum = 0;
  for (int64_t n = 0; n < count; ++n) sum += a[n] * b[n];
  return sum;
}

void add_vectors(Pictures& pictures, const std::vector<double>& input, int64_t width) {
  const int64_t rows = static_cast<int64_t>(input.size()) / width;
  const int64_t channel = (width + kCells - 1) / kCells;
  pictures.step = (rows + kCells - 1) / kCells;
  for (int64_t row = 0; row < rows; row += pictures.step) {
    const double* const here = input.data() + row * width;
    pictures.vectors.emplace_back();
    for (int64_t c = 0; c < width; c += channel) {
      pictures.vectors.back().push_back(rounded(here[c]));
    }
    pictures.cosines.emplace_back();
    for (int64_t other = 0; other < rows; other += pictures.step) {
      const double* const there = input.data() + other * width;
      const double lengths = dot(here, here, width) * dot(there, there, width);
      // The cosine with a zero vector, such as that of an untrained position, is undefined.
      pictures.cosines.back().push_back(
          lengths > 0 ? rounded(dot(here, there, width) / std::sqrt(lengths)) : NAN);
    }
  }
}

}  // namespace

Pictures pictures_of(const Decoder& decoder, const Method& method, const ModelShape& shape,
                     int64_t length) {
  const at::NoGradGuard no_gradients;
  const std::vector<at::Tensor> parameters = position_parameters(decoder);
  Pictures pictures;
  const int64_t shown = std::min(2 * shape.train_length, length);  // tables may end at the longest
  const std::vector<double> input =
      added_by(method, shape, {.queries = shown, .keys = shown}, parameters);
  if (!input.empty()) {
    add_vectors(pictures, input, shape.width);
    return pictures;
  }
  // One query: the last of a sequence, or in both directions the middle one.
  const bool causal = decoder.options().causal;
  const int64_t reach = causal ? length : shown;
  const int64_t keys = causal ? reach : 2 * reach - 1;
  const std::vector<double> scores = scores_by(
      method, shape, {.queries = 1, .keys = keys, .first_query = reach - 1, .causal = causal},
      parameters);  // [heads, 1, keys]
  pictures.distances = distances_below(reach);
  if (!causal) pictures.distances = in_both_directions(pictures.distances);
  for (int64_t head = 0; head < shape.heads; ++head) {
    pictures.scores.emplace_back();
    for (const int64_t distance : pictures.distances) {
      const double score = scores[static_cast<size_t>(head * keys + reach - 1 - distance)];
      pictures.scores.back().push_back(std::isfinite(score) ? rounded(score) : NAN);
    }
  }
  return pictures;
}

}  // namespace sextant::lab
