// A method that wraps another and changes the operands that the inner method has set.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <utility>
#include <vector>

#include "sextant/torch/method.h"

namespace sextant {

class MethodWrapper : public Method {
 public:
  // own: how many parameters the wrapper has, behind those of the inner method.
  explicit MethodWrapper(std::unique_ptr<Method> of, size_t own = 0)
      : of_(std::move(of)), own_(own) {}

  std::vector<ParameterSpec> parameters() const override { return of_->parameters(); }
  bool relative() const override { return of_->relative(); }
  bool reads_rotary_positions() const override { return of_->reads_rotary_positions(); }
  bool reads_token_ids() const override { return of_->reads_token_ids(); }
  bool changes_keys() const override { return of_->changes_keys(); }
  bool adds_to_values() const override { return of_->adds_to_values(); }
  int64_t further_key_columns() const override { return of_->further_key_columns(); }
  int64_t further_query_columns() const override { return of_->further_query_columns(); }
  int64_t added_channels() const override { return of_->added_channels(); }
  bool recurs_over_input() const override { return of_->recurs_over_input(); }
  at::Tensor embed(const at::Tensor& x, const Layout& layout,
                   Parameters parameters) const override {
    return of_->embed(x, layout, inner(parameters));
  }
  at::Tensor embed_last(const at::Tensor& x, const Layout& layout,
                        Parameters parameters) const override {
    return of_->embed_last(x, layout, inner(parameters));
  }
  int64_t last_layer_runs() const override { return of_->last_layer_runs(); }
  at::Tensor key_columns(const at::Tensor& x, int64_t layer, Parameters parameters) const override {
    return of_->key_columns(x, layer, inner(parameters));
  }
  at::Tensor query_columns(const at::Tensor& x, int64_t layer,
                           Parameters parameters) const override {
    return of_->query_columns(x, layer, inner(parameters));
  }
  void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
             Parameters parameters) const override {
    of_->apply(operands, layout, layer, inner(parameters));
  }

 private:
  Parameters inner(Parameters all) const { return all.first(all.size() - own_); }

  std::unique_ptr<Method> of_;
  size_t own_;
};

}  // namespace sextant
