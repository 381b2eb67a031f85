#include "bench/filled.h"

namespace sextant::bench {

AlignedFloats filled(const std::function<void(cpu::Arena&)>& lay_out) {
  cpu::Arena measure;
  lay_out(measure);
  AlignedFloats numbers(measure.used());
  constexpr int64_t kStep = 37, kPeriod = 101;
  for (int64_t n = 0; n < measure.used(); ++n)
    numbers.data()[n] =
        static_cast<float>(n * kStep % kPeriod) / static_cast<float>(kPeriod) - 0.5F;
  cpu::Arena arena(numbers.data());
  lay_out(arena);
  return numbers;
}

}  // namespace sextant::bench
