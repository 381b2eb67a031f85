// Checks of a call by its caller's arguments, before any method or kernel reads them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "sextant/torch/bindings/method_cache.h"

namespace sextant {

// A method as operators name it: its name and its sizes, [layers, heads, key_heads, head_dim,
// width, train_length].
struct NamedMethod {
  std::string name;
  std::vector<int64_t> shape;

  int64_t layers() const { return shape.at(0); }
  int64_t heads() const { return shape.at(1); }
  int64_t key_heads() const { return shape.at(2); }
  int64_t head_dim() const { return shape.at(3); }
  int64_t width() const { return shape.at(4); }
};

// Both throw Error that names the argument: "q: expected 8 heads, the heads of the method rope, but
// got 4".
//
// check_call: q, k and v [batch, heads, rows, columns] and the layer must fit each other and the
// method. check_input: x [batch, length, width] of embed() and key_columns() must have its width.
void check_call(const NamedMethod& named, const Method& method, const at::Tensor& q,
                const at::Tensor& k, const at::Tensor& v, int64_t layer);
void check_input(const NamedMethod& named, const at::Tensor& x);

// Throws Error that names the first tensor which is not on the device of the tensor `like`.
void check_same_device(const char* like, const at::Tensor& x,
                       std::initializer_list<std::pair<const char*, const at::Tensor&>> others,
                       const std::vector<at::Tensor>& parameters);

}  // namespace sextant
