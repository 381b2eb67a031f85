// A position encoding: a function from trained parameters to operands of the score equation.
//
// A method is made from its name and options (JSON), lists its parameters, and is a pure function
// of them. It owns no trained tensor, so the lab's modules, an nn.Module of Python and a checkpoint
// mapping can each own the parameters in their own form, and autograd records ordinary tensor code.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "sextant/torch/call_terms.h"
#include "sextant/torch/layout.h"
#include "sextant/torch/operands.h"

namespace sextant {

// The sizes of the model that a method serves.
struct ModelShape {
  int64_t layers = 1;
  int64_t heads = 1;
  int64_t key_heads = 1;
  int64_t head_dim = 0;
  int64_t width = 0;         // of the residual stream; heads * head_dim as a rule
  int64_t train_length = 0;  // L: positions seen in training
  int64_t vocabulary = 0;    // number of tokens, for methods that depend on token ids; 0: unknown
};

// The weight matrix, or the bias, of a layer's projection to queries or keys.
struct LayerProjection {
  enum class Of { kQuery, kKey } of = Of::kQuery;
  int64_t layer = 0;
  bool bias = false;

  bool operator==(const LayerProjection&) const = default;
};

struct ParameterSpec {
  std::string name;  // as in the official code where there is one, so that checkpoints map onto it
  std::vector<int64_t> sizes;
  enum class Init { kZeros, kOnes, kNormal, kUniform } init = Init::kZeros;
  double init_low = 0, init_high = 0;  // kNormal: mean and standard deviation; kUniform: range
  double learning_rate_scale = 1;      // T5's table needs a rate 10 times that of matrices
  bool weight_decay = false;
  // Initial values that are not from a distribution (a table of the paper), float64; they override
  // init.
  at::Tensor initial = {};
  // The parameter is the layer's own projection (share_att_key of DeBERTa v3): a model passes that
  // tensor, or zeros for a bias that it lacks, and trains no other. Callers without such layers own
  // the parameter like any other.
  std::optional<LayerProjection> same_as = std::nullopt;

  // Drawn around 0: from a normal distribution, or uniformly from -bound to bound.
  static ParameterSpec normal(std::string name, std::vector<int64_t> sizes, double deviation,
                              bool decays = false) {
    return {std::move(name), std::move(sizes), Init::kNormal, 0, deviation, 1, decays};
  }
  static ParameterSpec uniform(std::string name, std::vector<int64_t> sizes, double bound,
                               bool decays = false) {
    return {std::move(name), std::move(sizes), Init::kUniform, -bound, bound, 1, decays};
  }
};

// The parameters of a method in the order of its parameters().
using Parameters = std::span<const at::Tensor>;

class Method {
 public:
  virtual ~Method() = default;
  virtual std::vector<ParameterSpec> parameters() const { return {}; }

  // Whether results depend on distances only, so that a shift of all positions changes nothing.
  // False for methods that add to the input or divide the sequence at fixed positions.
  virtual bool relative() const { return true; }

  // Whether embed() uses the layout's token ids.
  virtual bool reads_token_ids() const { return false; }

  // Absolute methods: the input of the first layer, x [batch, queries, width] -> the same shape.
  virtual at::Tensor embed(const at::Tensor& x, const Layout& layout, Parameters parameters) const;

  // How many channels of the input embed() adds a vector of the position to: the first ones.
  // embed() of a zero input is then that vector. 0 for methods that add none there, which leave the
  // input as it is or change it in another way.
  virtual int64_t added_channels() const { return 0; }

  // Whether embed() computes a row from the result of the row before it, so that a layout whose
  // queries do not begin with their sequence needs Layout::input_before.
  virtual bool recurs_over_input() const { return false; }

  // Absolute positions in the last layer: returns the input of that layer's queries and residual
  // stream. x is the output of the layer before, from which its keys and values are computed. The
  // layer is applied last_layer_runs() times, each time with queries from its previous result and
  // keys from x. All other methods return x and apply the layer once, as any other.
  virtual at::Tensor embed_last(const at::Tensor& x, const Layout& layout,
                                Parameters parameters) const;
  virtual int64_t last_layer_runs() const { return 1; }

  // Values for each key that are computed from the layer's input: further columns of k behind its
  // head_dim own ones, which a cache stores with the key. x [batch, rows, width], the input of the
  // key projection -> [batch, key_heads, rows, columns]. Most methods have none and return an
  // undefined tensor. See with_key_columns().
  virtual at::Tensor key_columns(const at::Tensor& x, int64_t layer, Parameters parameters) const;
  // The number of these columns.
  virtual int64_t further_key_columns() const { return 0; }

  // The same for each query, of the input of the query projection -> [batch, heads, rows, columns]:
  // further columns of q, which apply() takes off. See with_query_columns().
  virtual at::Tensor query_columns(const at::Tensor& x, int64_t layer, Parameters parameters) const;
  virtual int64_t further_query_columns() const { return 0; }

  // Whether apply() uses the layout's rotary positions. If not, a layout with them is an Error.
  virtual bool reads_rotary_positions() const { return false; }

  // Whether apply() changes keys or values. If so, a cache passes a copy of the visible ones;
  // otherwise it passes its pages.
  virtual bool changes_keys() const { return false; }

  // Whether apply() adds vectors of head_dim columns to values, which then need as many.
  virtual bool adds_to_values() const { return false; }

  // Relative methods: changes the operands of plain attention (q, k, v, scale 1/sqrt(head_dim), one
  // sweep over the visible keys, no tables).
  virtual void apply(TensorOperands& operands, const Layout& layout, int64_t layer,
                     Parameters parameters) const;
};

// How the tests over all methods take a method that their defaults do not fit.
struct TestSubject {
  std::string options = "{}";  // that allow 64 positions, with and without a causal mask
  double rounding = 0;  // how far a shift of all positions may move a relative method; 0: by no bit
  bool shares_key_heads = true;
  int64_t head_dim = 6;
  bool smooth = true;  // in its parameters: at the kinks of a ReLU, differences are no derivatives
  bool integrates = false;  // its positions: a float32 solver drifts over thousands of steps
};

struct MethodInfo {
  std::string name;      // kebab case, as users type it
  std::string summary;   // one line: paper, year
  std::string formula;   // one line of ASCII: clauses of docs/methods/NAME.md, joined by "; "
  std::string defaults;  // JSON object: every option with its default; null: the model's own size
  std::unique_ptr<Method> (*make)(const ModelShape& shape, const nlohmann::json& options);
  TestSubject tests = {};
  // The option that has the sizes of a grid, for methods whose rows are its places and not text;
  // null: others.
  const char* grid_option = nullptr;
  int64_t rows_before_grid = 0;  // a class token
};

// All methods, sorted by name.
std::span<const MethodInfo> methods();

// Throws Error for an unknown name, with the nearest known ones.
const MethodInfo& method_info(std::string_view name);

// Makes a method from its name ("alibi") and options, which override the method's defaults. Throws
// Error for an unknown name (with a list of the known ones), an unknown option or a value out of
// range.
std::unique_ptr<Method> make_method(std::string_view name, const ModelShape& shape,
                                    const nlohmann::json& options);

// A method's defaults, overridden by `options`. Throws Error as make_method() does.
nlohmann::json complete_options(std::string_view name, const nlohmann::json& options);

// Sets the rotary positions of a sweep whose rotation is set, if the layout has any or the rotation
// grows. Without them rows are rotated at the positions of their frames.
void set_rotary_positions(SweepOperand& sweep, const Layout& layout, int64_t axes);

// The operands of plain attention, which Method::apply() changes.
TensorOperands plain_operands(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const Layout& layout);

// k [batch, key_heads, rows, head_dim] with the method's further columns, if it has any.
at::Tensor with_key_columns(const Method& method, const at::Tensor& k, const at::Tensor& x,
                            int64_t layer, Parameters parameters);

// q [batch, heads, rows, head_dim] with the method's further columns, if it has any.
at::Tensor with_query_columns(const Method& method, const at::Tensor& q, const at::Tensor& x,
                              int64_t layer, Parameters parameters);

// `operands` after the method's apply(), with the terms of the call. Throws Error if the number or
// shapes of `parameters` differ from method.parameters(), if the layout has rotary positions that
// the method does not use, or if a term does not fit.
TensorOperands applied(const Method& method, TensorOperands operands, const Layout& layout,
                       int64_t layer, Parameters parameters, const CallTerms& terms = {});

// Attention with the method: the result [batch, heads, queries, Dv] of plain_operands() after
// applied(). k comes from with_key_columns(), q from with_query_columns(). Throws Error as
// applied() does.
at::Tensor attend_with(const Method& method, const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v, const Layout& layout, int64_t layer,
                       Parameters parameters, const CallTerms& terms = {});

// The same and lse [batch, heads, queries], the logarithm of the sum of exp(s_ij) with the sink, in
// the type of the computation. Both are differentiable.
std::tuple<at::Tensor, at::Tensor> attend_with_lse(const Method& method, const at::Tensor& q,
                                                   const at::Tensor& k, const at::Tensor& v,
                                                   const Layout& layout, int64_t layer,
                                                   Parameters parameters,
                                                   const CallTerms& terms = {});

}  // namespace sextant
