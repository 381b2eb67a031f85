#include "tests/torch/attend_cases.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/torch/dense.h"
#include "tests/torch/equation.h"

namespace sextant::testing {
namespace {

TensorOperands with_frequencies_of_frames(TensorOperands o) {
  SweepOperand& sweep = o.sweeps[0];
  sweep.of_frames = {sweep.rotation, sweep.rotation};
  sweep.of_frames[1].gain = 0.7;
  for (Rotation::Pair& pair : sweep.of_frames[1].pairs)
    pair.frequency = pair.frequency + turns(0.11);
  return o;
}

}  // namespace

void without_tables(TensorOperands& o) {
  o.weight = o.bias = o.on_query = o.on_key = o.on_value = {};
  o.query_bias = at::Tensor();
}

std::vector<Case> cases() {
  const TensorOperands all = every_term();
  TensorOperands plain = all;
  plain.sweeps = {{.key_ranges = all.sweeps[0].key_ranges}};
  without_tables(plain);
  plain.sink = plain.mask = at::Tensor();
  const auto with = [&](const char* name, auto change) {
    TensorOperands o = plain;
    change(o);
    return Case{name, o};
  };
  const auto dropped = [](TensorOperands o) {
    o.softcap = 1.3;
    o.dropout = {.p = 0.3, .seed = at::full({1}, -5, at::kLong)};
    return o;
  };
  TensorOperands modulus = all;
  modulus.q_imag = normal({2, 4, 7, 6}, 11);
  return {
      {"plain", plain},
      with("turns", [&](TensorOperands& o) { o.sweeps = {all.sweeps[0]}; }),
      with("two sweeps", [&](TensorOperands& o) { o.sweeps = all.sweeps; }),
      with("one of two sweeps turns",
           [&](TensorOperands& o) {
             o.sweeps = {{.key_ranges = all.sweeps[0].key_ranges}, all.sweeps[1]};
           }),
      with("weight", [&](TensorOperands& o) { o.weight = all.weight; }),
      with("bias", [&](TensorOperands& o) { o.bias = all.bias; }),
      with("on_query", [&](TensorOperands& o) { o.on_query = all.on_query; }),
      with("on_key", [&](TensorOperands& o) { o.on_key = all.on_key; }),
      with("on_value", [&](TensorOperands& o) { o.on_value = all.on_value; }),
      with("sink", [&](TensorOperands& o) { o.sink = all.sink; }),
      with("mask", [&](TensorOperands& o) { o.mask = all.mask; }),
      with("modulus",
           [&](TensorOperands& o) {
             o.q_imag = normal({2, 4, 7, 6}, 11);
           }),
      {"every term", all},
      with("query_bias", [&](TensorOperands& o) { o.query_bias = all.query_bias; }),
      with("query_bias of each batch entry, for all heads",
           [&](TensorOperands& o) {
             o.query_bias = normal({2, 1, 7, 8}, 13);
           }),
      with("key_bias",
           [&](TensorOperands& o) {
             o.key_bias = 1000 + normal({2, 4, 9}, 14);
           }),
      with("key_bias for all heads, sink and mask",
           [&](TensorOperands& o) {
             o.key_bias = 3 * normal({1, 1, 9}, 15);
             o.sink = all.sink;
             o.mask = all.mask;
           }),
      {"every term, frequencies of frames", with_frequencies_of_frames(all)},
      with("softcap", [&](TensorOperands& o) { o.softcap = 0.9; }),
      with("dropout", [&](TensorOperands& o) { o.dropout = dropped(o).dropout; }),
      {"every term, softcap and dropout", dropped(all)},
      {"modulus, softcap and dropout", dropped(modulus)},
      {"frequencies of frames, softcap and dropout", dropped(with_frequencies_of_frames(all))},
  };
}

at::Tensor out_of(const TensorOperands& operands) { return std::get<0>(attend(operands)); }

Tensors gradients_of(const at::Tensor& out, TensorOperands& operands) {
  Tensors inputs;
  for (const at::Tensor* x : differentiable(operands)) inputs.push_back(*x);
  return torch::autograd::grad({(out * normal(out.sizes().vec(), 99)).sum()}, inputs);
}

TensorOperands requiring_gradients(const TensorOperands& operands) {
  TensorOperands o = operands;
  for (at::Tensor* x : differentiable(o)) *x = x->detach().clone().set_requires_grad(true);
  return o;
}

double lse_difference(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor nothing = at::logical_and(a.isneginf(), b.isneginf());
  return largest_difference(a.masked_fill(nothing, 0), b.masked_fill(nothing, 0));
}

}  // namespace sextant::testing
