// Ring attention in several processes is attention to the whole sequence in one.
#include "sextant/torch/ring.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <limits>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"
#include "tests/torch/model.h"
#include "tests/torch/processes.h"

namespace sextant::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Tensors = std::vector<at::Tensor>;

constexpr int64_t kRows = 32;  // a multiple of two chunks for each of four ranks
constexpr int64_t kLayer = 1;

// One attention to the whole sequence, which every rank knows.
struct Case {
  std::string name, options;
  bool causal = true;
  at::ScalarType type = at::kFloat;
  bool sink = false, key_bias = false, hides_keys = false;
  CallTerms terms = {};  // but sink and key_bias
  // How many times as large as the gradient of a parameter the terms are of which it is the sum:
  // their rounding errors do not cancel as they do.
  double cancelled = 1;

  std::string title() const {
    std::ostringstream out;
    out << name << " " << options << (causal ? " causal" : "") << " " << type
        << (sink ? " sink" : "") << (key_bias ? " key_bias" : "");
    return out.str();
  }
};

// The results and gradients of a call: out, lse, d q, d k, d v, d x, d key_bias of some rows, and
// those of the sink and the parameters.
struct Results {
  Tensors by_row, summed;
};

const char* name_of(size_t row_result) {
  constexpr const char* kNames[] = {"out", "lse", "dq", "dk", "dv", "dx", "dkey_bias"};
  return kNames[row_result];
}

// The rows of a dimension at the positions of a rank.
at::Tensor rows_of(const at::Tensor& x, int64_t dim, Shards shards, const Group& group) {
  if (!x.defined()) return x;
  Tensors parts;
  for (const Positions& at :
       positions_of_shard(shards, group.rank(), group.size(), x.size(dim) / group.size()))
    parts.push_back(x.narrow(dim, at.first, at.count));
  return at::cat(parts, dim);
}

// The inputs of a case: the same on all ranks.
struct Inputs {
  std::unique_ptr<Method> method;
  Tensors by_row;  // q, k, v, x, and key_bias if there is one
  Tensors shared;  // parameters, and the sink if there is one
  at::Tensor d_out, d_lse;
};

constexpr int64_t kRowDimension[] = {2, 2, 2, 1, 2};  // of Inputs::by_row

Inputs inputs_of(const Case& c) {
  ModelShape shape = subject(c.name).shape();
  Inputs in = {.method = method_of(c.name, shape, c.options)};
  const Layout layout = {.batch = 2, .queries = kRows, .keys = kRows, .causal = c.causal};
  const Layer layer(shape, layout);
  in.by_row = {layer.q, layer.k, layer.v, layer.x};
  if (c.key_bias) {
    at::Tensor bias = normal({2, shape.heads, kRows}, 21);
    if (c.hides_keys) bias.slice(2, 5, 19).fill_(-std::numeric_limits<double>::infinity());
    in.by_row.push_back(bias);
  }
  in.shared = random_parameters(*in.method);
  if (c.sink) in.shared.push_back(normal({shape.heads}, 22));
  in.d_out = normal({2, shape.heads, kRows, shape.head_dim}, 23);
  in.d_lse = normal({2, shape.heads, kRows}, 24);
  for (Tensors* list : {&in.by_row, &in.shared})
    for (at::Tensor& x : *list) x = x.to(at::kFloat).to(c.type);
  in.d_out = in.d_out.to(c.type);
  in.d_lse = in.d_lse.to(c.type);
  return in;
}

// Calls attend(k with its columns, terms) on leaves and computes all gradients.
template <class Attend>
Results results_of(const Case& c, const Inputs& in, Attend&& attend) {
  Tensors leaves;
  for (const Tensors* list : {&in.by_row, &in.shared})
    for (const at::Tensor& x : *list) leaves.push_back(x.detach().clone().requires_grad_());
  const size_t of_rows = in.by_row.size();
  Tensors parameters(leaves.begin() + static_cast<int64_t>(of_rows), leaves.end());
  CallTerms terms = c.terms;
  if (c.key_bias) terms.key_bias = leaves[4];
  if (c.sink) {
    terms.sink = parameters.back();
    parameters.pop_back();
  }
  const at::Tensor k = with_key_columns(*in.method, leaves[1], leaves[3], kLayer, parameters);
  const at::Tensor q = with_query_columns(*in.method, leaves[0], leaves[3], kLayer, parameters);
  const auto [out, lse] = attend(q, k, leaves[2], Parameters(parameters), terms);
  // Gradients of lse where a query sees a key.
  const at::Tensor seen = lse > -1e30;
  const Tensors found = torch::autograd::grad(
      {out, lse}, leaves, {in.d_out, in.d_lse * seen.to(in.d_lse.scalar_type())},
      /*retain_graph=*/false, /*create_graph=*/false, /*allow_unused=*/true);
  Results results = {.by_row = {out.detach(), lse.detach()}};
  for (size_t n = 0; n < leaves.size(); ++n) {
    const at::Tensor grad = found[n].defined() ? found[n] : at::zeros_like(leaves[n]);
    (n < of_rows ? results.by_row : results.summed).push_back(grad);
  }
  return results;
}

// The distance of `got` from `expected`, relative to `expected` (or to 1, if that is tiny).
double error(const at::Tensor& got, const at::Tensor& expected) {
  const double same = (got == expected).all().item<bool>() ? 0 : 1;  // infinities too
  if (same == 0) return 0;
  const at::Tensor finite = expected.isfinite();
  if (!(got.isfinite() == finite).all().item<bool>()) return 1e30;
  const at::Tensor g = got.to(at::kDouble).masked_fill(finite.logical_not(), 0);
  const at::Tensor e = expected.to(at::kDouble).masked_fill(finite.logical_not(), 0);
  const double size = e.norm().item<double>();
  return (g - e).norm().item<double>() / (size > 1e-10 ? size : 1);
}

// The results of the whole sequence in one process.
Results whole_of(Case c, at::ScalarType type) {
  c.type = type;
  Inputs in = inputs_of(c);
  for (Tensors* list : {&in.by_row, &in.shared})
    for (at::Tensor& x : *list) x = x.to(type);
  return results_of(c, in,
                    [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, Parameters p,
                        const CallTerms& terms) {
                      const Layout layout = {
                          .batch = 2, .queries = kRows, .keys = kRows, .causal = c.causal};
                      return attend_with_lse(*in.method, q, k, v, layout, kLayer, p, terms);
                    });
}

// The results of a rank that are not those of the whole.
std::string differences(const Case& c, Shards shards, const Group& group) {
  Inputs in = inputs_of(c);
  const Results whole = whole_of(c, c.type), exact = whole_of(c, at::kDouble);
  for (size_t n = 0; n < in.by_row.size(); ++n)
    in.by_row[n] = rows_of(in.by_row[n], kRowDimension[n], shards, group);
  in.d_out = rows_of(in.d_out, 2, shards, group);
  in.d_lse = rows_of(in.d_lse, 2, shards, group);
  const Results part =
      results_of(c, in,
                 [&](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, Parameters p,
                     const CallTerms& terms) {
                   return attend_ring(group, *in.method, q, k, v,
                                      {.shards = shards, .causal = c.causal}, kLayer, p, terms);
                 });
  group.all_reduce(part.summed);
  std::ostringstream out;
  // Float32 results differ by their own errors: the whole's may be above 1e-6 where it sums terms
  // that cancel.
  const auto compare = [&](const std::string& what, const at::Tensor& got,
                           const at::Tensor& expected, const at::Tensor& truth) {
    const double least = 1e-6 * (what.starts_with("parameter") ? c.cancelled : 1);
    const double bound =
        c.type == at::kDouble ? 1e-12 : std::max(least, 4 * error(expected, truth));
    if (const double off = error(got, expected); !(off <= bound))
      out << c.title() << (shards == Shards::kZigzag ? " zigzag: " : " contiguous: ") << what
          << " off by " << off << "\n";
  };
  for (size_t n = 0; n < part.by_row.size(); ++n) {
    const auto own = [&](const Results& all) {
      return rows_of(all.by_row[n], n == 5 ? 1 : 2, shards, group);  // 5: d x
    };
    compare(name_of(n), part.by_row[n], own(whole), own(exact));
  }
  for (size_t n = 0; n < part.summed.size(); ++n)
    compare("parameter " + std::to_string(n), part.summed[n], whole.summed[n], exact.summed[n]);
  return out.str();
}

void expect_no_differences(int size, const std::vector<Case>& cases,
                           const std::vector<Shards>& orders = {Shards::kZigzag,
                                                                Shards::kContiguous}) {
  const auto ended = in_processes(size, [&] {
    const Group group = Group::from_environment();
    std::string all;
    for (const Case& c : cases)
      for (const Shards shards : orders) try {
          all += differences(c, shards, group);
        } catch (const std::exception& error) {
          return all + c.title() + ": " + error.what();
        }
    return all;
  });
  for (const Ended& one : ended) {
    EXPECT_EQ(one.message, "");
    EXPECT_EQ(one.signal, 0);
  }
}

std::vector<Case> every_method(at::ScalarType type, const std::vector<bool>& causal) {
  std::vector<Case> cases;
  for (const MethodInfo& info : methods())
    for (const bool hides_future : causal) {
      Case c = {info.name, subject(info.name).options, hides_future, type};
      if (info.name == "wavlm") c.cancelled = 10;  // its gates', 3 to 60 times in 20 draws
      cases.push_back(c);
    }
  return cases;
}

TEST(Ring, IsTheWholeForEveryMethod) {
  expect_no_differences(2, every_method(at::kFloat, {true, false}));
}

TEST(Ring, IsTheWholeForEveryMethodInFloat64) {
  expect_no_differences(2, every_method(at::kDouble, {true, false}), {Shards::kZigzag});
}

TEST(Ring, IsTheWholeForEveryMethodOfFourRanks) {
  expect_no_differences(4, every_method(at::kFloat, {true}), {Shards::kZigzag});
}

// Terms of the call; fox has a shift of all scores, which a sink needs.
TEST(Ring, ServesTheTermsOfACall) {
  std::vector<Case> cases;
  for (const at::ScalarType type : {at::kFloat, at::kDouble})
    for (const bool causal : {true, false})
      for (const char* name : {"none", "t5", "fox", "shaw"}) {
        Case c = {name, subject(name).options, causal, type};
        c.sink = true;
        c.terms = {.scale = 0.3, .softcap = 5};
        cases.push_back(c);
        c.sink = false;
        c.key_bias = c.hides_keys = true;
        c.terms = {.window = DistanceWindow{9, 3}};
        cases.push_back(c);
        c.sink = true;
        c.hides_keys = false;
        cases.push_back(c);
      }
  expect_no_differences(2, cases);
}

// Options of methods that depend on the length of the sequence, or on its first keys.
TEST(Ring, GivesMethodsTheWholeSequence) {
  std::vector<Case> cases;
  for (const bool causal : {true, false})
    for (const auto& [name, options] : std::vector<std::pair<std::string, std::string>>{
             {"alibi", R"({"interpolation": "dynamic", "train": "two"})"},
             {"rope", R"({"stretch": "dynamic*4", "dynamic": "length"})"},
             {"rope", R"({"stretch": "dynamic*4", "dynamic": "query"})"},
             {"rope", R"({"query_scale": "logn"})"},
             {"rope", R"({"train": true})"},
             {"streaming", R"({"sinks": 3, "recent": 6})"},
             {"window", R"({"window": 5, "sinks": 2, "options": {"train": true}})"}}) {
      cases.push_back({name, options, causal});
    }
  // A sink for each query.
  const std::string second = R"({"columns": 3, "reach": 6, "flavour": "inkling2"})";
  for (const bool causal : {true, false}) cases.push_back({"inkling", second, causal, at::kDouble});
  expect_no_differences(4, cases);
}

std::string error_of(const std::function<void(const Group&)>& call) {
  const Group group = Group::from_environment();
  try {
    call(group);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

at::Tensor attend_rows(const Group& group, int64_t rows, const RingLayout& layout = {},
                       const CallTerms& terms = {}) {
  const ModelShape shape = {.heads = 2, .key_heads = 2, .head_dim = 8, .width = 16};
  const at::Tensor x = normal({1, 2, rows, 8}, 1);
  return std::get<0>(attend_ring(group, *method_of("none", shape), x, x, x, layout, 0, {}, terms));
}

TEST(Ring, RefusesWhatRanksDoNotShare) {
  const auto messages = [](const std::function<void(const Group&)>& call) {
    const auto ended = in_processes(2, [&] { return error_of(call); });
    return std::vector{ended[0].message, ended[1].message};
  };
  EXPECT_THAT(messages([](const Group& g) { attend_rows(g, 4 + 2 * g.rank()); }),
              ::testing::ElementsAre("ring_attention: q: rows: expected the same on all ranks, but "
                                     "got 4 on rank 0, and others elsewhere",
                                     "ring_attention: q: rows: expected the same on all ranks, but "
                                     "got 6 on rank 1, and others elsewhere"));
  EXPECT_THAT(
      messages([](const Group& g) { attend_rows(g, 4, {.causal = g.rank() == 0}); }),
      ::testing::ElementsAre(
          StartsWith("ring_attention: causal: expected the same on all ranks, but got true"),
          HasSubstr("but got false on rank 1")));
  const auto with_bias = [](const Group& g, const at::Tensor& bias) {
    attend_rows(g, 4, {}, {.key_bias = bias});
  };
  EXPECT_THAT(messages([&](const Group& g) {
                with_bias(g, g.rank() == 0 ? normal({4}, 2) : at::Tensor());
              }),
              ::testing::ElementsAre(HasSubstr("key_bias: type: expected the same on all ranks, "
                                               "but got Double on rank 0"),
                                     HasSubstr("but got none on rank 1")));
  EXPECT_THAT(messages([&](const Group& g) {
                with_bias(g, normal({1, 1 + g.rank(), 4}, 2));
              }),
              Each(StartsWith("ring_attention: key_bias: elements: expected the same")));
  for (const auto& [sizes, got] :
       {std::pair<std::vector<int64_t>, const char*>{{8}, "8"}, {{}, "a number"}})
    EXPECT_THAT(messages([&](const Group& g) { with_bias(g, normal(sizes, 2)); }),
                Each(std::string("ring_attention: key_bias: expected 4 columns, the rank's own "
                                 "keys, but got ") +
                     got));
  EXPECT_THAT(messages([](const Group& g) { attend_rows(g, 5); }),
              Each(StartsWith("shards: expected an even number of rows of each rank")));
  EXPECT_THAT(messages([](const Group& g) { attend_rows(g, 4, {}, {.dropout = {.p = 0.1}}); }),
              Each(StartsWith("ring_attention: dropout_p: expected 0")));
}

TEST(Ring, OfOneProcessIsPlainAttention) {
  const at::Tensor x = normal({1, 2, 5, 8}, 1);
  const ModelShape shape = {.heads = 2, .key_heads = 2, .head_dim = 8, .width = 16};
  const Layout layout = {.queries = 5, .keys = 5};
  const at::Tensor whole = attend_with(*method_of("none", shape), x, x, x, layout, 0, {});
  EXPECT_LE(largest_difference(attend_rows(Group(), 5), whole), 1e-14);
}

TEST(Ring, AKilledRankIsAnErrorInTheOthers) {
  const auto ended = in_processes(4, [] {
    const Group group = Group::from_environment();
    attend_rows(group, 8);
    if (group.rank() == 2) kill(getpid(), SIGKILL);
    attend_rows(group, 8);
    attend_rows(group, 8);
    return std::string("no error");
  });
  for (const int rank : {0, 1, 3}) {
    EXPECT_THAT(ended[rank].message, AllOf(StartsWith("Error: group: rank "),
                                           HasSubstr("but a rank has ended, failed or does not")));
    EXPECT_LE(ended[rank].seconds, 30);
  }
}

}  // namespace
}  // namespace sextant::testing
