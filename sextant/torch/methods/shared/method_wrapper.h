// A method laid over another: it changes the operands that the other has placed.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>
#include <vector>

#include "sextant/torch/method.h"

namespace sextant {

class Over : public Method {
 public:
  explicit Over(std::unique_ptr<Method> of) : of_(std::move(of)) {}

  std::vector<ParameterSpec> parameters() const override { return of_->parameters(); }
  bool relative() const override { return of_->relative(); }
  bool reads_times() const override { return of_->reads_times(); }
  bool reads_words() const override { return of_->reads_words(); }
  bool dresses_keys() const override { return of_->dresses_keys(); }
  at::Tensor embed(const at::Tensor& x, const Placement& placement,
                   Parameters parameters) const override {
    return of_->embed(x, placement, parameters);
  }
  at::Tensor embed_last(const at::Tensor& x, const Placement& placement,
                        Parameters parameters) const override {
    return of_->embed_last(x, placement, parameters);
  }
  int64_t last_layer_runs() const override { return of_->last_layer_runs(); }
  at::Tensor key_columns(const at::Tensor& x, int64_t layer, Parameters parameters) const override {
    return of_->key_columns(x, layer, parameters);
  }
  void place(Operands& operands, const Placement& placement, int64_t layer,
             Parameters parameters) const override {
    of_->place(operands, placement, layer, parameters);
  }

 private:
  std::unique_ptr<Method> of_;
};

}  // namespace sextant
