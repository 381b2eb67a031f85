#include "sextant/torch/operators/flat_operands.h"

#include <ATen/ops/index_select.h>
#include <c10/core/SymInt.h>

#include <sstream>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/to_float.h"

namespace sextant {
namespace {

// Calls f for every argument in the order of the schema.
template <class A, class F>
void each_argument(A& a, F&& f) {
  f(a.q), f(a.k), f(a.v), f(a.scale), f(a.frames), f(a.key_ranges);
  f(a.pairs), f(a.speeds), f(a.growth), f(a.gains);
  f(a.query_rotary_positions), f(a.key_rotary_positions), f(a.query_offsets), f(a.key_offsets);
  f(a.frame_speeds), f(a.frame_gains), f(a.farthest);
  f(a.q_imag), f(a.weight), f(a.weight_rows);
  f(a.bias), f(a.bias_rows), f(a.on_query), f(a.on_query_rows);
  f(a.on_key), f(a.on_key_rows), f(a.on_value), f(a.on_value_rows), f(a.sink), f(a.mask);
  f(a.pages), f(a.key_rows), f(a.query_bias), f(a.key_bias);
}
constexpr size_t kArguments = 34;

struct Push {
  torch::jit::Stack& stack;
  void operator()(const at::Tensor& x) {
    stack.push_back(x.defined() ? at::IValue(x) : at::IValue());
  }
  void operator()(double x) { stack.emplace_back(x); }
  void operator()(int64_t x) { stack.emplace_back(x); }
};

struct Read {
  torch::jit::Stack::iterator at;
  void operator()(at::Tensor& x) {
    if (!at->isNone()) x = std::move(*at).toTensor();
    ++at;
  }
  void operator()(double& x) { x = (at++)->toDouble(); }
  void operator()(int64_t& x) { x = (at++)->toInt(); }
};

// What one dimension may be.
struct Size {
  enum Rule { kAny, kExactly, kOneOr } rule = kAny;
  c10::SymInt size = 0;

  Size() = default;
  Size(Rule r, c10::SymInt n) : rule(r), size(std::move(n)) {}
  Size(int64_t n) : rule(kExactly), size(n) {}  // NOLINT(google-explicit-constructor)
  bool accepts(const c10::SymInt& got) const {
    return rule == kAny || got == size || (rule == kOneOr && got == 1);
  }
};

std::ostream& operator<<(std::ostream& out, const Size& s) {
  if (s.rule == Size::kAny) return out << "*";
  return out << (s.rule == Size::kOneOr ? "1 or " : "") << s.size;
}

template <class Type, class Sizes>  // a type, or words for several
std::string text(const Type& type, const Sizes& sizes) {
  std::ostringstream out;
  out << type << " [";
  const char* comma = "";
  for (const auto& size : sizes) {
    out << comma << size;
    comma = ", ";
  }
  out << "]";
  return out.str();
}

[[noreturn]] void bad(const std::string& argument, const std::string& expected,
                      const std::string& got) {
  fail("attend: " + argument + ": expected " + expected + ", but got " + got);
}

bool fits(const at::Tensor& x, const std::vector<Size>& sizes) {
  const auto got = x.sym_sizes();
  if (got.size() != sizes.size()) return false;
  for (size_t n = 0; n < got.size(); ++n)
    if (!sizes[n].accepts(got[n])) return false;
  return true;
}

void check(const char* argument, const at::Tensor& x, at::ScalarType type,
           const std::vector<Size>& sizes) {
  if (!x.defined() || (x.scalar_type() == type && fits(x, sizes))) return;
  bad(argument, text(type, sizes), text(x.scalar_type(), x.sym_sizes()));
}

// Differentiable operands: as q in device, and of a type that is computed with as q's is.
void check_like_q(const char* argument, const at::Tensor& x, const at::Tensor& q,
                  const std::vector<Size>& sizes) {
  if (!x.defined()) return;
  if (x.device() != q.device()) bad(argument, q.device().str() + ", as q", x.device().str());
  if (wide_type(x) == wide_type(q) && fits(x, sizes)) return;
  const char* types = wide_type(q) == at::kFloat ? "Float, BFloat16 or Half" : "Double";
  bad(argument, text(types, sizes), text(x.scalar_type(), x.sym_sizes()));
}

c10::SymInt key_rows(const FlatOperands& a) {
  return a.pages.defined() ? c10::SymInt(a.key_rows) : a.k.sym_size(2);
}

void check_pages(const FlatOperands& a) {
  if (!a.pages.defined()) {
    if (a.key_rows != 0) bad("key_rows", "0, as there are no pages", std::to_string(a.key_rows));
    return;
  }
  check("pages", a.pages, at::kLong, {{Size::kOneOr, a.q.sym_size(0)}, {}});
  const c10::SymInt room = a.pages.sym_size(1) * a.k.sym_size(2);
  if (a.key_rows < 0 || room < a.key_rows) {
    std::ostringstream most;
    most << room;
    bad("key_rows", "0 to " + most.str() + ", as pages hold", std::to_string(a.key_rows));
  }
}

void check_rotation(const FlatOperands& a, const Size& sweeps, const Size& batch) {
  if (!a.pairs.defined()) {
    for (const auto& [name, x] : {std::pair{"speeds", &a.speeds},
                                  {"growth", &a.growth},
                                  {"gains", &a.gains},
                                  {"query_rotary_positions", &a.query_rotary_positions},
                                  {"key_rotary_positions", &a.key_rotary_positions},
                                  {"query_offsets", &a.query_offsets},
                                  {"key_offsets", &a.key_offsets},
                                  {"frame_speeds", &a.frame_speeds}})
      if (x->defined()) bad(name, "none, as there are no pairs", "a tensor");
    return;
  }
  check("pairs", a.pairs, at::kLong, {sweeps, {}, 3});
  const Size pairs = {Size::kExactly, a.pairs.sym_size(1)};
  for (const auto& [name, x] : {std::pair{"speeds", &a.speeds},
                                {"query_rotary_positions", &a.query_rotary_positions},
                                {"key_rotary_positions", &a.key_rotary_positions}})
    if (!x->defined()) bad(name, "a tensor, as there are pairs", "none");
  check("speeds", a.speeds, at::kLong, {sweeps, pairs, 2});
  check("growth", a.growth, at::kDouble, {sweeps, pairs});
  check("gains", a.gains, at::kDouble, {sweeps});
  check("query_rotary_positions", a.query_rotary_positions, at::kLong,
        {sweeps, batch, {}, {Size::kExactly, a.q.sym_size(2)}});
  check("key_rotary_positions", a.key_rotary_positions, at::kLong,
        {sweeps, batch, {}, {Size::kExactly, key_rows(a)}});
  check("query_offsets", a.query_offsets, at::kLong, {sweeps, pairs, 2});
  check("key_offsets", a.key_offsets, at::kLong, {sweeps, pairs, 2});
  const Size frames = {Size::kExactly, a.frames.sym_size(0)};
  check("frame_speeds", a.frame_speeds, at::kLong, {sweeps, frames, pairs, 2});
  if (a.frame_speeds.defined() != a.frame_gains.defined())
    bad("frame_gains", "a tensor where there are frame_speeds, and only there",
        a.frame_gains.defined() ? "a tensor" : "none");
  check("frame_gains", a.frame_gains, at::kDouble, {sweeps, frames});
}

}  // namespace

void push(torch::jit::Stack& stack, const FlatOperands& arguments) {
  each_argument(arguments, Push{stack});
}

FlatOperands pop_arguments(torch::jit::Stack& stack) {
  FlatOperands arguments;
  each_argument(arguments, Read{stack.end() - kArguments});
  stack.resize(stack.size() - kArguments);
  return arguments;
}

at::Tensor gathered(const at::Tensor& x, const at::Tensor& pages, int64_t rows) {
  const int64_t count = pages.size(1);
  return x.index_select(0, pages.flatten().to(x.device()))
      .view({pages.size(0), count, x.size(1), x.size(2), x.size(3)})
      .transpose(1, 2)
      .reshape({pages.size(0), x.size(1), count * x.size(2), x.size(3)})
      .narrow(2, 0, rows);
}

FlatOperands without_pages(FlatOperands a) {
  if (!a.pages.defined()) return a;
  check_arguments(a);
  for (at::Tensor* x : {&a.k, &a.v})
    *x = gathered(*x, a.pages, a.key_rows).expand({a.q.size(0), -1, -1, -1});
  a.pages.reset();
  a.key_rows = 0;
  return a;
}

void check_arguments(const FlatOperands& a) {
  if (wide_type(a.q) != at::kFloat && a.q.scalar_type() != at::kDouble)
    bad("q", "Float, BFloat16, Half or Double", text(a.q.scalar_type(), a.q.sym_sizes()));
  check("q", a.q, a.q.scalar_type(), {{}, {}, {}, {}});
  const Size batch = {Size::kExactly, a.q.sym_size(0)};
  const Size one_or_batch = {Size::kOneOr, a.q.sym_size(0)};
  const Size heads = {Size::kOneOr, a.q.sym_size(1)};
  const Size entries = a.pages.defined() ? Size{Size::kExactly, a.k.sym_size(0)} : batch;
  check_like_q("k", a.k, a.q, {entries, {}, {}, {Size::kExactly, a.q.sym_size(3)}});
  check_like_q("v", a.v, a.q,
               {entries, {Size::kExactly, a.k.sym_size(1)}, {Size::kExactly, a.k.sym_size(2)}, {}});
  check_pages(a);
  const Size queries = {Size::kExactly, a.q.sym_size(2)};
  check("frames", a.frames, at::kLong, {{}, 7});
  check("key_ranges", a.key_ranges, at::kLong, {{}, one_or_batch, queries, 2});
  check_rotation(a, {Size::kExactly, a.key_ranges.sym_size(0)}, one_or_batch);
  check_like_q(
      "q_imag", a.q_imag, a.q,
      {batch, {Size::kExactly, a.q.sym_size(1)}, queries, {Size::kExactly, a.q.sym_size(3)}});
  check_like_q("weight", a.weight, a.q, {heads, {}});
  check_like_q("bias", a.bias, a.q, {heads, {}});
  check_like_q("on_query", a.on_query, a.q, {heads, {}, {}});
  check_like_q("on_key", a.on_key, a.q, {heads, {}, {}});
  check_like_q("on_value", a.on_value, a.q, {heads, {}, {Size::kExactly, a.v.sym_size(3)}});
  check_like_q("query_bias", a.query_bias, a.q, {one_or_batch, heads, queries, {}});
  check("key_bias", a.key_bias, at::kDouble, {one_or_batch, heads, {Size::kExactly, key_rows(a)}});
  if (a.key_bias.defined() && a.key_bias.device() != a.q.device())
    bad("key_bias", a.q.device().str() + ", as q", a.key_bias.device().str());
  for (const auto& [name, rows] : {std::pair{"weight_rows", &a.weight_rows},
                                   {"bias_rows", &a.bias_rows},
                                   {"on_query_rows", &a.on_query_rows},
                                   {"on_key_rows", &a.on_key_rows},
                                   {"on_value_rows", &a.on_value_rows}})
    check(name, *rows, at::kInt, {{}});
  check_like_q("sink", a.sink, a.q, {{Size::kExactly, a.q.sym_size(1)}});
  check("mask", a.mask, at::kBool,
        {one_or_batch, heads, {Size::kOneOr, a.q.sym_size(2)}, {Size::kOneOr, key_rows(a)}});
}

void check_results(const FlatOperands& a, const at::Tensor& d_out, const at::Tensor& out,
                   const at::Tensor& lse) {
  const Size batch = {Size::kExactly, a.q.sym_size(0)}, heads = {Size::kExactly, a.q.sym_size(1)};
  const Size queries = {Size::kExactly, a.q.sym_size(2)};
  const Size columns = {Size::kExactly, a.v.sym_size(3)};
  check_like_q("d_out", d_out, a.q, {batch, heads, queries, columns});
  check_like_q("out", out, a.q, {batch, heads, queries, columns});
  check("lse", lse, wide_type(a.q), {batch, heads, queries});
}

}  // namespace sextant
