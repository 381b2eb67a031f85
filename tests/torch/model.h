// One attention layer around a method, shared by tests of methods.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "sextant/torch/method.h"

namespace sextant::testing {

// The method of this name; options are JSON text.
std::unique_ptr<Method> method_of(const std::string& name, const ModelShape& shape,
                                  const std::string& options = "{}");

// Random float64 parameters in the method's sizes, small enough that recurrences over them are not
// chaotic.
std::vector<at::Tensor> random_parameters(const Method& method);

// Random q, k, v and input of a layer, float64.
struct Layer {
  Layer(const ModelShape& shape, const Layout& layout);
  at::Tensor x, q, k, v;  // x [batch, queries, width]
  at::Tensor seen;        // the input of keys, [batch, keys, width]
};

inline constexpr ModelShape kSmallShape = {
    .layers = 2, .heads = 4, .key_heads = 2, .head_dim = 6, .width = 24, .train_length = 8};

// The way in which tests over all methods take one.
struct Subject : TestSubject {
  // The shape of a small model; two query heads share a key head if the method allows it.
  ModelShape shape() const;
};
Subject subject(const std::string& method);

}  // namespace sextant::testing
