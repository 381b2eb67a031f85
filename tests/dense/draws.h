// Random operands.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace sextant::dense {

// Normally distributed values, the same for the same seed.
inline std::vector<float> draws(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& number : numbers) number = normal(random);
  return numbers;
}

}  // namespace sextant::dense
