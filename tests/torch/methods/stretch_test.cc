// rope and xpos with stretches: results that depend on the length of the sequence do not depend on
// how the sequence is split into calls.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr ModelShape kShape = {
    .heads = 2, .key_heads = 1, .head_dim = 6, .width = 12, .train_length = 5};

struct Stretched {
  std::string method;
  json stretch;
};

const std::vector<Stretched>& dynamics() {
  static const json longrope = {{"rope_type", "longrope"},
                                {"factor", 8},
                                {"short_factor", {1, 1.5, 2}},
                                {"long_factor", {2, 3, 8}}};
  static const std::vector<Stretched> all = {{"rope", "dynamic-linear"},   {"rope", "dynamic-ntk"},
                                             {"rope", "qwen-ntk"},         {"rope", "dynamic-yarn"},
                                             {"rope", "dynamic-by-parts"}, {"rope", "dynamic*2"},
                                             {"rope", longrope},           {"xpos", "dynamic-ntk"}};
  return all;
}

json options_of(const Stretched& trial, const json& dynamic) {
  json options = {{"stretch", trial.stretch}, {"dynamic", dynamic}, {"base", 50}};
  if (trial.method == "xpos") options["scale_base"] = 16;
  return options;
}

at::Tensor run_stretched(const std::string& method, const json& options, const Layer& layer,
                         Layout p) {
  return attend_with(*method_of(method, kShape, options.dump()), layer.q, layer.k, layer.v, p, 0,
                     {});
}

// Queries [first, first + count) and the keys up to the last of them.
Layer part(const Layer& whole, int64_t first, int64_t count) {
  Layer layer = whole;
  layer.q = whole.q.narrow(2, first, count);
  layer.k = whole.k.narrow(2, 0, first + count);
  layer.v = whole.v.narrow(2, 0, first + count);
  return layer;
}

Layout cut(int64_t batch, int64_t first, int64_t count) {
  return {.batch = batch, .queries = count, .keys = first + count, .first_query = first};
}

constexpr int64_t kBatch = 2, kRows = 13;
const Layout kWhole = {.batch = kBatch, .queries = kRows, .keys = kRows};

// One call per query, with the fixed stretch for that query's length: no frames are split.
at::Tensor one_by_one(const Stretched& trial, const Layer& layer) {
  std::vector<at::Tensor> rows;
  for (int64_t i = 0; i < kRows; ++i)
    rows.push_back(run_stretched(trial.method, options_of(trial, i + 1), part(layer, i, 1),
                                 cut(kBatch, i, 1)));
  return at::cat(rows, 2);
}

TEST(Dynamic, EachQueryTurnsAllKeysByItsOwnLength) {
  for (const Stretched& trial : dynamics()) {
    SCOPED_TRACE(trial.method + trial.stretch.dump());
    Layer layer(kShape, kWhole);
    std::vector<at::Tensor> grads[2];
    const at::Tensor upstream = normal({kBatch, 2, kRows, 6}, 5);
    at::Tensor out[2];
    for (const bool slowly : {false, true}) {
      for (at::Tensor* x : {&layer.q, &layer.k, &layer.v}) *x = x->detach().requires_grad_();
      out[slowly] = slowly ? one_by_one(trial, layer)
                           : run_stretched(trial.method, options_of(trial, "query"), layer, kWhole);
      (out[slowly] * upstream).sum().backward();
      for (const at::Tensor& x : {layer.q, layer.k, layer.v}) grads[slowly].push_back(x.grad());
    }
    EXPECT_LE(largest_difference(out[0], out[1]), 1e-13);
    for (size_t n = 0; n < 3; ++n) {
      EXPECT_LE(largest_difference(grads[0][n], grads[1][n]), 1e-12) << n;
    }
  }
}

TEST(Dynamic, PrefillChunksAndStepsAgree) {
  for (const Stretched& trial : dynamics()) {
    SCOPED_TRACE(trial.method + trial.stretch.dump());
    const Layer layer(kShape, kWhole);
    const json options = options_of(trial, "query");
    const at::Tensor at_once = run_stretched(trial.method, options, layer, kWhole);
    std::vector<at::Tensor> rows;
    for (const auto& [first, count] : {std::pair{0, 4}, {4, 5}, {9, 1}, {10, 3}})
      rows.push_back(run_stretched(trial.method, options, part(layer, first, count),
                                   cut(kBatch, first, count)));
    EXPECT_LE(largest_difference(at::cat(rows, 2), at_once), 1e-13);
  }
}

TEST(Dynamic, Float32AgreesWithFloat64) {
  for (const Stretched& trial : dynamics()) {
    const Layer exact(kShape, kWhole);
    Layer layer = exact;
    for (at::Tensor* x : {&layer.q, &layer.k, &layer.v}) *x = x->to(at::kFloat).requires_grad_();
    Layer same = layer;
    for (at::Tensor* x : {&same.q, &same.k, &same.v})
      *x = x->detach().to(at::kDouble).requires_grad_();
    const json options = options_of(trial, "query");
    const at::Tensor fast = run_stretched(trial.method, options, layer, kWhole);
    const at::Tensor slow = run_stretched(trial.method, options, same, kWhole);
    EXPECT_LE(largest_difference(fast.to(at::kDouble), slow), 1e-5) << trial.stretch;
    fast.sum().backward();
    slow.sum().backward();
    EXPECT_LE(largest_difference(layer.k.grad().to(at::kDouble), same.k.grad()), 1e-5)
        << trial.stretch;
  }
}

TEST(Dynamic, ByLengthIsTheFixedStretchOfTheText) {
  for (const Stretched& trial : dynamics()) {
    const Layer layer(kShape, kWhole);
    const at::Tensor length =
        run_stretched(trial.method, options_of(trial, "length"), layer, kWhole);
    const at::Tensor stated = run_stretched(trial.method, options_of(trial, kRows), layer, kWhole);
    EXPECT_TRUE(at::equal(length, stated)) << trial.stretch;
  }
}

TEST(Dynamic, WithinTheTrainingLengthNothingIsStretched) {
  const Layout p = {.batch = kBatch, .queries = 5, .keys = 5};
  const Layer layer(kShape, p);
  const at::Tensor plain = run_stretched("rope", {{"base", 50}}, layer, p);
  for (const Stretched& trial : dynamics()) {
    if (trial.method == "xpos" || trial.stretch.is_object()) continue;
    for (const char* by : {"query", "length"})
      EXPECT_TRUE(at::equal(run_stretched("rope", options_of(trial, by), layer, p), plain))
          << trial.stretch;
  }
}

TEST(Dynamic, SequencesOfOneBatchHaveTheirOwnLengths) {
  // The second batch entry begins at a later rotary position, as after a longer prefill.
  const json options = options_of({"rope", "dynamic-ntk"}, "query");
  const Layer layer(kShape, kWhole);
  const at::Tensor rows = at::arange(kRows, at::kLong);
  Layout p = kWhole;
  p.query_rotary_positions = p.key_rotary_positions = at::stack({rows, rows + 4}).unsqueeze(1);
  const at::Tensor both = run_stretched("rope", options, layer, p);
  for (const int64_t b : {0, 1}) {
    Layer one = layer;
    for (at::Tensor* x : {&one.q, &one.k, &one.v}) *x = x->narrow(0, b, 1);
    const Layout alone = {
        .queries = kRows, .keys = kRows, .first_query = 4 * b, .first_key = 4 * b};
    EXPECT_LE(largest_difference(both.narrow(0, b, 1), run_stretched("rope", options, one, alone)),
              1e-13);
  }
}

TEST(Dynamic, PackedTextsCountFromTheirOwnStart) {
  const Layer layer(kShape, kWhole);
  Layout packed = kWhole;
  packed.packed_queries = packed.packed_keys = {0, 4, kRows};
  for (const char* by : {"query", "length"}) {
    const json options = options_of({"rope", "dynamic-linear"}, by);
    const at::Tensor out = run_stretched("rope", options, layer, packed);
    std::vector<at::Tensor> texts;
    for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 4}, {4, kRows - 4}}) {
      Layer one = layer;
      for (at::Tensor* x : {&one.q, &one.k, &one.v}) *x = x->narrow(2, first, count);
      texts.push_back(
          run_stretched("rope", options, one, {.batch = kBatch, .queries = count, .keys = count}));
    }
    EXPECT_LE(largest_difference(out, at::cat(texts, 2)), 1e-13) << by;
  }
}

TEST(Stretch, ScoresAndQueriesAreScaled) {
  const Layer layer(kShape, kWhole);
  const json yarn = {{"rope_type", "yarn"},
                     {"factor", 4},
                     {"attention_factor", 1.5},
                     {"beta_fast", 2},
                     {"beta_slow", 0.5}};
  json louder = yarn;
  louder["attention_factor"] = 1;
  Layer scaled = layer;
  scaled.q = layer.q * 2.25;
  EXPECT_LE(largest_difference(run_stretched("rope", {{"stretch", yarn}}, layer, kWhole),
                               run_stretched("rope", {{"stretch", louder}}, scaled, kWhole)),
            1e-13);

  const at::Tensor positions = at::arange(1, kRows + 1, at::kDouble).view({1, 1, kRows, 1});
  scaled.q = layer.q * (positions.log() / std::log(5.0)).clamp_min(1);
  EXPECT_LE(largest_difference(run_stretched("rope", {{"query_scale", "logn"}}, layer, kWhole),
                               run_stretched("rope", json::object(), scaled, kWhole)),
            1e-13);
}

TEST(Stretch, ScalableSoftmaxTrainsANumberForEachHead) {
  const auto method = method_of("rope", kShape, R"({"query_scale": "ssmax"})");
  ASSERT_EQ(method->parameters().size(), 1u);
  EXPECT_EQ(method->parameters()[0].sizes, std::vector<int64_t>{2});
  const at::Tensor s = at::tensor({0.5, 0.3}, at::kDouble).requires_grad_();
  const Layer layer(kShape, kWhole);
  const std::vector<at::Tensor> parameters = {s};
  attend_with(*method, layer.q, layer.k, layer.v, kWhole, 0, parameters).sum().backward();
  EXPECT_TRUE(s.grad().defined() && s.grad().abs().min().item<double>() > 0);
}

TEST(Stretch, PiIsLinear) {
  const Layer layer(kShape, kWhole);
  const auto out = [&](const json& stretch, const json& dynamic) {
    return run_stretched("rope", options_of({"rope", stretch}, dynamic), layer, kWhole);
  };
  EXPECT_TRUE(out("pi*4", "query").equal(out("linear*4", "query")));
  EXPECT_TRUE(out({{"rope_type", "pi"}, {"factor", 4}}, "query").equal(out("pi*4", "query")));
  EXPECT_TRUE(out("dynamic-pi", "query").equal(out("dynamic-linear", "query")));
  EXPECT_FALSE(out("dynamic-pi", "query").equal(out(nullptr, "query")));
}

TEST(Stretch, ErrorsNameTheOption) {
  const auto error_of = [](const json& options, const char* token_ids, int64_t train_length = 8) {
    ModelShape shape = kShape;
    shape.train_length = train_length;
    EXPECT_THAT([&] { method_of("rope", shape, options.dump()); },
                ThrowsMessage<Error>(HasSubstr(token_ids)));
  };
  error_of({{"stretch", "warp*8"}}, "stretch: rope_type: expected one of");
  error_of({{"stretch", "yarn*0.5"}}, "stretch: factor: expected a number from 1");
  error_of({{"stretch", "yarn*x"}}, "stretch: expected a type and a factor");
  error_of({{"stretch", "yarn"}}, "stretch: factor: expected");
  error_of({{"stretch", "yarn*2"}}, "stretch: original_max_position_embeddings: expected", 0);
  error_of({{"stretch", {{"rope_type", "linear"}, {"factor", 2}, {"beta_fast", 1}}}},
           "\"beta_fast\": expected a field that its rope_type has");
  error_of({{"stretch", {{"rope_type", "linear"}, {"factor", 2}, {"rope_theta", 5}}}},
           "rope: base: expected rope_theta of the stretch");
  error_of({{"stretch", "linear*2"}, {"train", true}}, "rope: train: expected false");
  error_of({{"dynamic", "sometimes"}}, "rope: dynamic: expected one of");
  error_of({{"query_scale", "louder"}}, "query_scale: law: expected one of");
  error_of({{"query_scale", {{"law", "logn"}, {"size", 3}}}},
           "rope: query_scale: expected no fields");
  error_of({{"stretch", "yarn*2"}, {"axes", "restart"}, {"sections", {1, 2}}},
           "rope: axes: expected");
}

}  // namespace
}  // namespace sextant::testing
