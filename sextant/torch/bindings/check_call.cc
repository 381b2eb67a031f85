#include "sextant/torch/bindings/check_call.h"

#include "sextant/base/error.h"

namespace sextant {
namespace {

void expect(const char* argument, int64_t got, int64_t expected, const char* sizes,
            const std::string& reason) {
  if (got != expected)
    fail(std::string(argument) + ": expected " + std::to_string(expected) + " " + sizes + ", " +
         reason + ", but got " + std::to_string(got));
}

void check_four_dimensions(const char* argument, const at::Tensor& x) {
  if (x.dim() != 4)
    fail(std::string(argument) + ": expected [batch, heads, rows, columns], but got " +
         std::to_string(x.dim()) + " dimensions");
}

void check_layer(const NamedMethod& named, int64_t layer) {
  if (layer < 0 || layer >= named.layers())
    fail("layer: expected 0 to " + std::to_string(named.layers() - 1) + ", as the method " +
         named.name + " has " + std::to_string(named.layers()) +
         (named.layers() == 1 ? " layer" : " layers") + " (layers), but got " +
         std::to_string(layer));
}

}  // namespace

void check_call(const NamedMethod& named, const Method& method, const at::Tensor& q,
                const at::Tensor& k, const at::Tensor& v, int64_t layer) {
  const std::string of_method = " of the method " + named.name;
  check_four_dimensions("q", q);
  check_four_dimensions("k", k);
  check_four_dimensions("v", v);
  expect("q", q.size(1), named.heads(), "heads", "the heads" + of_method);
  const auto expect_columns = [&](const char* name, const at::Tensor& x, int64_t more,
                                  const char* appended_by) {
    expect(name, x.size(3), named.head_dim() + more, "columns",
           "the head_dim" + of_method +
               (more == 0 ? ""
                          : " and " + std::to_string(more) + " more, which its " + appended_by +
                                " appends"));
  };
  expect_columns("q", q, method.further_query_columns(), "queries(q, x)");
  expect("k", k.size(1), named.key_heads(), "heads", "the key_heads" + of_method);
  expect_columns("k", k, method.further_key_columns(), "keys(k, x)");
  expect("k", k.size(0), q.size(0), "batch entries", "as q");
  expect("v", v.size(0), q.size(0), "batch entries", "as q");
  expect("v", v.size(1), named.key_heads(), "heads", "the key_heads" + of_method);
  expect("v", v.size(2), k.size(2), "rows", "as k");
  if (method.adds_to_values())
    expect("v", v.size(3), named.head_dim(), "columns",
           "the head_dim" + of_method + ", which adds vectors to values");
  check_layer(named, layer);
}

void check_input(const NamedMethod& named, const at::Tensor& x) {
  if (x.dim() != 3)
    fail("x: expected [batch, length, width], but got " + std::to_string(x.dim()) + " dimensions");
  if (x.size(2) != named.width())
    fail("x: expected " + std::to_string(named.width()) + " columns, the width of the method " +
         named.name + " (heads * head_dim unless it is given), but got " +
         std::to_string(x.size(2)));
}

void check_same_device(const char* like, const at::Tensor& x,
                       std::initializer_list<std::pair<const char*, const at::Tensor&>> others,
                       const std::vector<at::Tensor>& parameters) {
  const auto check = [&](const char* name, const at::Tensor& other) {
    if (other.device() != x.device())
      fail(std::string(name) + ": expected " + x.device().str() + ", as " + like + ", but got " +
           other.device().str());
  };
  for (const auto& [name, other] : others) check(name, other);
  for (const at::Tensor& parameter : parameters) check("parameters", parameter);
}

}  // namespace sextant
