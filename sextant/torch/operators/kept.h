// A value that an autograd function keeps for its backward pass.
#pragma once

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/custom_function.h>

#include <utility>

namespace sextant {

template <class Value>
struct Kept : torch::CustomClassHolder {
  explicit Kept(Value given) : value(std::move(given)) {}
  Value value;
};

template <class Value>
void keep(torch::autograd::AutogradContext* context, Value value) {
  context->saved_data["kept"] =
      at::IValue::make_capsule(c10::make_intrusive<Kept<Value>>(std::move(value)));
}

// Valid as long as the context is.
template <class Value>
const Value& kept(torch::autograd::AutogradContext* context) {
  const auto capsule = context->saved_data.at("kept").toCapsule();
  return static_cast<const Kept<Value>&>(*capsule).value;
}

}  // namespace sextant
