// A position encoding: from trained parameters to operands of the score equation.
//
// A method is made by name and options (JSON), says which parameters it wants, and is a pure
// function of them: it holds no tensor, so the lab's modules, Python's nn.Module and a checkpoint
// mapping can each own the parameters in their own way, and autograd sees ordinary tensor code.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  int64_t vocabulary = 0;    // words there are, for methods that tell them apart; 0: not known
};

// The matrix, or its bias, by which a layer makes its queries or keys of its input.
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
  double learning_rate_scale = 1;  // T5's table learns 10 times faster than matrices, or too late
  bool weight_decay = false;
  // A start that no distribution gives (a table of the paper), float64; overrides init.
  at::Tensor initial = {};
  // The method reads the layer's own projection here (share_att_key of DeBERTa v3): a model gives
  // that one, or zeros for a bias that it has not, and trains nothing else. Who has no such layers
  // owns it as any other.
  std::optional<LayerProjection> same_as = std::nullopt;
};

// The parameters of a method in the order of its parameters().
using Parameters = std::span<const at::Tensor>;

class Method {
 public:
  virtual ~Method() = default;
  virtual std::vector<ParameterSpec> parameters() const { return {}; }

  // Whether only distances count, so that a shift of all positions changes nothing. False for all
  // that add to the input or cut the text at fixed places.
  virtual bool relative() const { return true; }

  // Whether embed() goes by the words of a placement.
  virtual bool reads_token_ids() const { return false; }

  // Absolute methods: the input of the first layer, x [batch, queries, width] -> the same shape.
  virtual at::Tensor embed(const at::Tensor& x, const Layout& layout, Parameters parameters) const;

  // Absolute positions in the last layers: what the last layer's queries and its residual stream
  // start from, made of x, the output of the layer before; that layer's keys and values come from x
  // itself. It runs last_layer_runs() times, each time on queries made of its own result and on the
  // keys of x. All other methods return x, for which one run is a layer like any.
  virtual at::Tensor embed_last(const at::Tensor& x, const Layout& layout,
                                Parameters parameters) const;
  virtual int64_t last_layer_runs() const { return 1; }

  // What a layer's input says of each key besides the key: further columns of k, behind its
  // head_dim own ones, which a cache keeps with it. x [batch, rows, width], what keys are projected
  // from -> [batch, key_heads, rows, columns]. Undefined: none, as of most methods. See
  // with_key_columns().
  virtual at::Tensor key_columns(const at::Tensor& x, int64_t layer, Parameters parameters) const;

  // Whether place() goes by the times that a placement may give; where none does, giving them is an
  // Error.
  virtual bool reads_rotary_positions() const { return false; }

  // Whether place() changes keys or values. A cache then hands it a copy of what queries see, and
  // the pages where they lie otherwise.
  virtual bool changes_keys() const { return false; }

  // Relative methods: changes the operands that plain attention would have (q, k, v, scale
  // 1/sqrt(head_dim), one sweep over what is visible, no tables).
  virtual void apply(Operands& operands, const Layout& layout, int64_t layer,
                     Parameters parameters) const;
};

struct MethodInfo {
  std::string name;      // kebab case, as users type it
  std::string summary;   // one line: paper, year
  std::string formula;   // one line of ASCII: clauses of docs/methods/NAME.md, "; " between them
  std::string defaults;  // JSON object: every option with its default; null: the model's own size
  std::unique_ptr<Method> (*make)(const ModelShape& shape, const nlohmann::json& options);
};

// All methods, sorted by name.
std::span<const MethodInfo> methods();

// By name ("alibi") and options, which are laid over the method's defaults. Throws Error for an
// unknown name (listing those there are), an unknown option or a value out of range.
std::unique_ptr<Method> make_method(std::string_view name, const ModelShape& shape,
                                    const nlohmann::json& options);

// A method's defaults with `options` laid over them. Throws Error as make_method() does.
nlohmann::json complete_options(std::string_view name, const nlohmann::json& options);

// What Method::place() starts from.
Operands plain_operands(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                        const Layout& layout);

// k [batch, key_heads, rows, head_dim] with the method's further columns, if it has any.
at::Tensor with_key_columns(const Method& method, const at::Tensor& k, const at::Tensor& x,
                            int64_t layer, Parameters parameters);

// `operands`, placed by the method. Throws Error if `parameters` are not those of
// method.parameters(), in number and in shape, or if the placement has what the method does not
// read.
Operands applied(const Method& method, Operands operands, const Layout& layout, int64_t layer,
                 Parameters parameters);

// The operands of plain attention, placed by the method, attended: [batch, heads, queries, Dv].
// k is with_key_columns(). Throws Error as placed() does.
at::Tensor attend_with(const Method& method, const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v, const Layout& layout, int64_t layer,
                       Parameters parameters);

}  // namespace sextant
