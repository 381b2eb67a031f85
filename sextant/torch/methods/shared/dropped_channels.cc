#include "sextant/torch/methods/shared/dropped_channels.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/base/random.h"
#include "sextant/torch/methods/shared/method_wrapper.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {
namespace {

class DroppedChannels final : public MethodWrapper {
 public:
  // dropped: [width], 1 for a channel that is set to zero
  DroppedChannels(std::unique_ptr<Method> of, at::Tensor dropped)
      : MethodWrapper(std::move(of)), dropped_(std::move(dropped)) {}

  at::Tensor embed(const at::Tensor& x, const Layout& layout,
                   Parameters parameters) const override {
    const at::Tensor added = MethodWrapper::embed(at::zeros_like(x), layout, parameters);
    return MethodWrapper::embed(x, layout, parameters) -
           added * on_device_of(x, dropped_.to(x.scalar_type()));
  }

 private:
  at::Tensor dropped_;
};

bool adds_by_default(const std::string& name, const ModelShape& shape) {
  try {
    return make_method(name, shape, nullptr)->added_channels() > 0;
  } catch (const Error&) {
    return false;  // the method does not fit the model
  }
}

// The methods that add to the input with their default options: "binary, clock, ...".
std::string adding_methods(const ModelShape& shape) {
  std::string names;
  for (const auto& info : methods())
    if (adds_by_default(info.name, shape)) names += (names.empty() ? "" : ", ") + info.name;
  return names;
}

}  // namespace

std::vector<int64_t> drawn_channels(int64_t channels, int64_t count, uint64_t seed) {
  std::vector<int64_t> order(static_cast<size_t>(channels));
  std::iota(order.begin(), order.end(), 0);
  const CounterRandom random(seed, "dropped channels");
  for (size_t n = 0; n < static_cast<size_t>(count); ++n)
    std::swap(order[n], order[n + random.below(order.size() - n, n)]);
  order.resize(static_cast<size_t>(count));
  std::ranges::sort(order);
  return order;
}

std::unique_ptr<Method> with_dropped_channels(std::unique_ptr<Method> of, const ModelShape& shape,
                                              int64_t count, uint64_t seed) {
  const int64_t channels = of->added_channels();
  if (channels == 0)
    fail("drop_channels: expected a method that adds a vector to the input (" +
         adding_methods(shape) + "), but got one that adds none");
  if (count < 1 || count > channels)
    fail("drop_channels: expected 1 to " + std::to_string(channels) +
         ", the channels to which the method adds, but got " + std::to_string(count));
  at::Tensor dropped = at::zeros({shape.width}, at::kDouble);
  for (const int64_t channel : drawn_channels(channels, count, seed))
    dropped.data_ptr<double>()[channel] = 1;
  return std::make_unique<DroppedChannels>(std::move(of), std::move(dropped));
}

}  // namespace sextant
