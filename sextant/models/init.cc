#include "sextant/models/init.h"

#include <ATen/ops/empty.h>

#include "sextant/base/random.h"

namespace sextant {
namespace {

at::Tensor filled(const std::vector<int64_t>& sizes, const auto& value_at) {
  at::Tensor tensor = at::empty(sizes, at::kDouble);
  double* data = tensor.data_ptr<double>();
  for (int64_t n = 0; n < tensor.numel(); ++n) data[n] = value_at(static_cast<uint64_t>(n));
  return tensor;
}

}  // namespace

at::Tensor normal_values(const std::vector<int64_t>& sizes, double mean, double deviation,
                         uint64_t seed, const std::string& name) {
  const CounterRandom random(seed, "init/" + name);
  return filled(sizes, [&](uint64_t n) { return mean + deviation * random.normal(n); });
}

at::Tensor constant_values(const std::vector<int64_t>& sizes, double value) {
  return filled(sizes, [=](uint64_t) { return value; });
}

at::Tensor initial_value(const ParameterSpec& spec, uint64_t seed, const std::string& name) {
  if (spec.initial.defined()) return spec.initial.contiguous();
  using Init = ParameterSpec::Init;
  if (spec.init == Init::kZeros) return constant_values(spec.sizes, 0);
  if (spec.init == Init::kOnes) return constant_values(spec.sizes, 1);
  if (spec.init == Init::kNormal)
    return normal_values(spec.sizes, spec.init_low, spec.init_high, seed, name);
  const CounterRandom random(seed, "init/" + name);
  return filled(spec.sizes, [&](uint64_t n) {
    return spec.init_low + (spec.init_high - spec.init_low) * random.uniform(n);
  });
}

}  // namespace sextant
