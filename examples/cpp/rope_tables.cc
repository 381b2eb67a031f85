// Exact cos and sin of a model's rotary positions, from its config.json:
//
//   rope_tables config.json 131072
//
// An engine computes its tables with tables_of() when it loads a model. They are within 0.53 ulp of
// the exact values at any position below 2^31; those of a product in float32 are wrong by 6e-2 at
// position 2^20 (sextant/position/turns.h).
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "sextant/attention/rotary/cos_sin.h"
#include "sextant/base/error.h"
#include "sextant/rope_config/read_config.h"

using namespace sextant;

struct Tables {  // [pairs, length] each
  std::vector<float> cos, sin;
};

Tables tables_of(const Rotation& rotation, int64_t length) {
  const size_t pairs = rotation.pairs.size(), rows = static_cast<size_t>(length);
  Tables t = {std::vector<float>(pairs * rows), std::vector<float>(pairs * rows)};
  const PositionRun positions[] = {{.first = 0, .count = length}};
  for (size_t f = 0; f < pairs; ++f) {
    float* const cos = t.cos.data() + f * rows;
    cos_sin_of_positions(rotation.pairs[f].frequency, {}, positions, cos, t.sin.data() + f * rows);
  }
  return t;
}

// The largest difference from cos in long double, of the last position. The frequency is converted
// to an angle in double there, so the last digits of this check are not exact.
double largest_error(const Spectrum& spectrum, const Tables& tables, int64_t length) {
  double error = 0;
  for (size_t f = 0; f < spectrum.pairs.size(); ++f) {
    const Real frequency = spectrum.pairs[f].frequency;
    const long double angle = (static_cast<long double>(frequency.high) + frequency.low) *
                              static_cast<long double>(length - 1);
    const float got = tables.cos[f * static_cast<size_t>(length) + static_cast<size_t>(length - 1)];
    error = std::fmax(error, std::fabs(static_cast<double>(got - std::cos(angle))));
  }
  return error;
}

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: rope_tables CONFIG LENGTH\n");
    return 2;
  }
  const int64_t length = std::atoll(argv[2]);
  if (length < 1) {
    std::fprintf(stderr, "rope_tables: LENGTH: expected at least 1, but got %s\n", argv[2]);
    return 2;
  }
  try {
    for (const RopeConfig& layers : read_rope_config(argv[1], {}).configs) {
      if (!layers.rotates) continue;
      const Spectrum spectrum = spectrum_of(layers, length);
      const Tables tables = tables_of(rotation(spectrum), length);
      const double error = largest_error(spectrum, tables, length);
      std::printf("%s: %zu pairs, gain %.6f\n", layers.model_type.c_str(), spectrum.pairs.size(),
                  spectrum.gain);
      std::printf("position %" PRId64 ": cos of the fastest pair %.7f, of the slowest %.7f\n",
                  length - 1, tables.cos[static_cast<size_t>(length - 1)], tables.cos.back());
      if (error > 1e-7) {
        std::printf("an error of %.2g\n", error);
        return 1;
      }
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "rope_tables: %s\n", error.what());
    return 1;
  }
}
