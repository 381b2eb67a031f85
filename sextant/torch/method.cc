// Methods by name. CMake makes the list from the files in methods/ (methods/CMakeLists.txt).
#include "sextant/torch/method.h"

#include <ATen/ops/cat.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/base/nearest.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

std::string sequence(at::IntArrayRef sizes) {
  std::string result;
  for (const int64_t size : sizes) result += (result.empty() ? "" : ", ") + std::to_string(size);
  return "[" + result + "]";
}

void check_parameters(const Method& method, Parameters parameters) {
  const std::vector<ParameterSpec> specs = method.parameters();
  if (specs.size() != parameters.size())
    fail("method: parameters: expected " + std::to_string(specs.size()) + ", but got " +
         std::to_string(parameters.size()));
  for (size_t n = 0; n < specs.size(); ++n)
    if (parameters[n].sizes() != at::IntArrayRef(specs[n].sizes))
      fail("method: parameter " + specs[n].name + ": expected shape " + sequence(specs[n].sizes) +
           ", but got " + sequence(parameters[n].sizes()));
}

}  // namespace

at::Tensor Method::embed(const at::Tensor& x, const Layout&, Parameters) const { return x; }
at::Tensor Method::embed_last(const at::Tensor& x, const Layout&, Parameters) const { return x; }
at::Tensor Method::key_columns(const at::Tensor&, int64_t, Parameters) const { return {}; }
at::Tensor Method::query_columns(const at::Tensor&, int64_t, Parameters) const { return {}; }
void Method::apply(TensorOperands&, const Layout&, int64_t, Parameters) const {}

TensorOperands plain_operands(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const Layout& layout) {
  if (q.dim() != 4) fail("attend: q: expected 4 dimensions, but got " + std::to_string(q.dim()));
  const auto head_dim = static_cast<double>(std::max<int64_t>(q.size(3), 1));
  TensorOperands o;
  o.q = q, o.k = k, o.v = v;
  o.scale = 1 / std::sqrt(head_dim);
  o.frames = frames(layout);
  o.sweeps = {{.key_ranges = visible_ranges(layout)}};
  o.farthest = layout.farthest_distance();
  o.mask = layout.mask;
  o.plans = layout.plans;
  return o;
}

void set_rotary_positions(SweepOperand& sweep, const Layout& layout, int64_t axes) {
  const bool grows =
      std::ranges::any_of(sweep.rotation.pairs, [](const auto& pair) { return pair.growth != 0; });
  if (grows || layout.query_rotary_positions.defined())
    sweep.query_rotary_positions = query_rotary_positions(layout, axes);
  if (grows || layout.key_rotary_positions.defined())
    sweep.key_rotary_positions = key_rotary_positions(layout, axes);
}

namespace {

at::Tensor with_columns(const at::Tensor& rows, const at::Tensor& more) {
  return more.defined() ? at::cat({rows, more.to(rows.scalar_type())}, 3) : rows;
}

}  // namespace

at::Tensor with_key_columns(const Method& method, const at::Tensor& k, const at::Tensor& x,
                            int64_t layer, Parameters parameters) {
  check_parameters(method, parameters);
  return with_columns(k, method.key_columns(to_float(x), layer, all_to_float(parameters)));
}

at::Tensor with_query_columns(const Method& method, const at::Tensor& q, const at::Tensor& x,
                              int64_t layer, Parameters parameters) {
  check_parameters(method, parameters);
  return with_columns(q, method.query_columns(to_float(x), layer, all_to_float(parameters)));
}

TensorOperands applied(const Method& method, TensorOperands operands, const Layout& layout,
                       int64_t layer, Parameters parameters, const CallTerms& terms) {
  check_parameters(method, parameters);
  if ((layout.query_rotary_positions.defined() || layout.key_rotary_positions.defined()) &&
      !method.reads_rotary_positions())
    fail(
        "method: query_rotary_positions, key_rotary_positions: expected none, as the method does "
        "not go by them");
  const bool dresses = method.changes_keys();
  const std::array<at::Tensor*, 3> rows = {&operands.q, &operands.k, &operands.v};
  std::array<at::Tensor, 3> given, handed;
  for (size_t n = 0; n < rows.size(); ++n) {
    given[n] = *rows[n];
    handed[n] = *rows[n] = n == 0 || dresses ? to_float(given[n]) : given[n];
  }
  if (const int64_t more = method.further_query_columns(); more > 0)
    operands.scale = 1 / std::sqrt(static_cast<double>(operands.q.size(3) - more));
  set_scale(operands, terms);
  method.apply(operands, layout, layer, all_to_float(parameters));
  for (size_t n = 0; n < rows.size(); ++n) {
    if (rows[n]->is_same(handed[n]))
      *rows[n] = given[n];
    else if (n > 0 && !dresses)
      fail("method: changes_keys: expected true, as apply() changes keys or values, but got false");
  }
  add_terms(operands, layout, terms);
  return operands;
}

at::Tensor attend_with(const Method& method, const at::Tensor& q, const at::Tensor& k,
                       const at::Tensor& v, const Layout& layout, int64_t layer,
                       Parameters parameters, const CallTerms& terms) {
  const TensorOperands operands =
      applied(method, plain_operands(q, k, v, layout), layout, layer, parameters, terms);
  return std::get<0>(attend(operands)).to(q.scalar_type());
}

std::tuple<at::Tensor, at::Tensor> attend_with_lse(const Method& method, const at::Tensor& q,
                                                   const at::Tensor& k, const at::Tensor& v,
                                                   const Layout& layout, int64_t layer,
                                                   Parameters parameters, const CallTerms& terms) {
  TensorOperands operands =
      applied(method, plain_operands(q, k, v, layout), layout, layer, parameters, terms);
  operands.whole_lse = true;
  const auto [out, lse] = attend(operands);
  return {out.to(q.scalar_type()), lse};
}

std::vector<MethodInfo> listed_methods();  // generated by CMake

namespace {

std::string list(const std::vector<std::string>& names) {
  std::string result;
  for (const std::string& name : names) result += (result.empty() ? "" : ", ") + name;
  return result.empty() ? "none" : result;
}

void check_shape(const ModelShape& shape) {
  for (const auto& [field, size, least] : {std::tuple{"layers", shape.layers, 1},
                                           {"heads", shape.heads, 1},
                                           {"key_heads", shape.key_heads, 1},
                                           {"head_dim", shape.head_dim, 0},
                                           {"width", shape.width, 0},
                                           {"train_length", shape.train_length, 0},
                                           {"vocabulary", shape.vocabulary, 0}})
    if (size < least)
      fail("model shape: " + std::string(field) + ": expected at least " + std::to_string(least) +
           ", but got " + std::to_string(size));
  if (shape.heads % shape.key_heads != 0)
    fail("model shape: heads: expected a multiple of the " + std::to_string(shape.key_heads) +
         " key heads, but got " + std::to_string(shape.heads));
}

// Old names of options, which the next version does not have.
constexpr std::pair<const char*, const char*> kOldNames[] = {
    {"float32_speeds", "float32_frequencies"}};  // old name, name

// The name of an option by which it may have been called. Warns of an old one, once.
std::string name_now(const std::string& method, const nlohmann::json& defaults,
                     const std::string& option) {
  for (const auto& renamed : kOldNames) {
    const char* const name = renamed.second;
    if (option != renamed.first || !defaults.contains(name)) continue;
    TORCH_WARN_ONCE(method, ": ", option, ": its name is ", name, " now");
    return name;
  }
  return option;
}

nlohmann::json complete(const MethodInfo& info, const nlohmann::json& options) {
  nlohmann::json result = nlohmann::json::parse(info.defaults);
  if (options.is_null()) return result;
  if (!options.is_object())
    fail(info.name + ": options: expected a JSON object, but got " + options.dump());
  for (const auto& [given, value] : options.items()) {
    const std::string option = name_now(info.name, result, given);
    if (option != given && options.contains(option))
      fail(std::string(info.name).append(": " + given + ": expected only " + option +
                                         ", its name now, but got both"));
    if (!result.contains(option)) {
      std::vector<std::string> known;
      for (const auto& [name, unused] : result.items()) known.push_back(name);
      fail(info.name + ": options: expected any of " + list(known) + ", but got \"" + option +
           "\"");
    }
    result[option] = value;
  }
  return result;
}

}  // namespace

std::span<const MethodInfo> methods() {
  static const std::vector<MethodInfo> all = [] {
    std::vector<MethodInfo> found = listed_methods();
    std::ranges::sort(found, {}, &MethodInfo::name);
    return found;
  }();
  return all;
}

const MethodInfo& method_info(std::string_view name) {
  std::vector<std::string> names;
  for (const MethodInfo& info : methods()) {
    if (info.name == name) return info;
    names.push_back(info.name);
  }
  fail("method: expected one of " + nearest_text(name, names) + ", but got \"" + std::string(name) +
       "\"");
}

nlohmann::json complete_options(std::string_view name, const nlohmann::json& options) {
  return complete(method_info(name), options);
}

std::unique_ptr<Method> make_method(std::string_view name, const ModelShape& shape,
                                    const nlohmann::json& options) {
  check_shape(shape);
  const MethodInfo& info = method_info(name);
  return info.make(shape, complete(info, options));
}

}  // namespace sextant
