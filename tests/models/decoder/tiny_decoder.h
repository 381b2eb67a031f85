// A decoder that is small enough for tests, and random tokens for it.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "sextant/base/random.h"
#include "sextant/models/decoder/decoder.h"

namespace sextant::testing {

constexpr int64_t kLength = 16;

inline DecoderOptions tiny() {
  return {.layers = 2, .width = 32, .heads = 4, .key_heads = 2, .mlp_width = 64};
}

inline std::unique_ptr<Method> method_of(const std::string& name,
                                         const nlohmann::json& options = {}) {
  return make_method(name, model_shape(tiny(), kLength),
                     options.is_null() ? nlohmann::json::object() : options);
}

// The defaults, and a grid of more places than tokens for methods that need one.
inline nlohmann::json options_for_text(const MethodInfo& method) {
  return method.grid_option ? nlohmann::json::parse(method.tests.options)
                            : nlohmann::json::object();
}

inline Decoder decoder(const std::string& method, uint64_t seed = 0) {
  return {tiny(), method_of(method), seed};
}

inline at::Tensor tokens(int64_t batch, int64_t length, uint64_t seed = 1) {
  const CounterRandom random(seed, "tokens");
  at::Tensor tokens = at::empty({batch, length}, at::kLong);
  for (int64_t n = 0; n < batch * length; ++n) {
    tokens.data_ptr<int64_t>()[n] =
        static_cast<int64_t>(random.below(256, static_cast<uint64_t>(n)));
  }
  return tokens;
}

inline double largest_difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

}  // namespace sextant::testing
