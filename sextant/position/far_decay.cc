#include "sextant/position/far_decay.h"

#include "sextant/base/error.h"
#include "sextant/base/hypot.h"

namespace sextant {
namespace {

double pairs_of(const Rotation& rotation) {
  if (rotation.pairs.empty()) fail("far decay: pairs: expected at least 1, but got 0");
  return static_cast<double>(rotation.pairs.size());
}

}  // namespace

double mean_partial_sum(const Rotation& rotation, int64_t distance) {
  const double pairs = pairs_of(rotation);
  double real = 0, imaginary = 0, sum = 0;
  for (const Rotation::Pair& pair : rotation.pairs) {
    const CosSin angle = cos_sin(pair.frequency * distance);
    real += angle.cos;
    imaginary += angle.sin;
    sum += hypot(real, imaginary);
  }
  return sum / pairs;
}

double score_of_equal_vectors(const Rotation& rotation, int64_t distance) {
  const double pairs = pairs_of(rotation);
  double real = 0;
  for (const Rotation::Pair& pair : rotation.pairs) real += cos_sin(pair.frequency * distance).cos;
  return real / pairs;
}

}  // namespace sextant
