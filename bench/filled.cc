#include "bench/filled.h"

namespace sextant::bench {

Floats filled(const std::function<void(cpu::Carver&)>& lay_out) {
  cpu::Carver measure;
  lay_out(measure);
  Floats numbers(measure.used());
  constexpr int64_t kStep = 37, kPeriod = 101;
  for (int64_t n = 0; n < measure.used(); ++n)
    numbers.data()[n] =
        static_cast<float>(n * kStep % kPeriod) / static_cast<float>(kPeriod) - 0.5F;
  cpu::Carver carver(numbers.data());
  lay_out(carver);
  return numbers;
}

}  // namespace sextant::bench
