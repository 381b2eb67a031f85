// Methods that are a bias, a rotation, a mask, or vectors by distance with projections: gradients
// of their parameters, and properties that the golden cases do not cover.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <ostream>

#include "sextant/base/error.h"
#include "sextant/torch/method.h"
#include "tests/torch/dense.h"
#include "tests/torch/gradients.h"

namespace sextant::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr double kExact = 1e-13;  // sums of a few products in different orders

struct TermTrial {
  std::string method;
  std::string options = "{}";
  ModelShape shape = {
      .layers = 2, .heads = 2, .key_heads = 2, .head_dim = 4, .width = 6, .train_length = 5};
  Layout layout = {.queries = 4, .keys = 6, .first_query = 2};
};

void PrintTo(const TermTrial& trial, std::ostream* out) { *out << trial.method << trial.options; }

Tensors parameters_of(const TermTrial& trial) {
  Tensors values;
  uint64_t seed = 7;
  for (const ParameterSpec& spec :
       make_method(trial.method, trial.shape, json::parse(trial.options))->parameters())
    // Values inside every clamp, away from its bounds.
    values.push_back(0.6 + 0.2 * at::tanh(normal(spec.sizes, ++seed)));
  return values;
}

Tensors inputs_of(const TermTrial& trial) {
  const ModelShape& shape = trial.shape;
  const Layout& p = trial.layout;
  return {normal({p.batch, shape.heads, p.queries, shape.head_dim}, 1),
          normal({p.batch, shape.key_heads, p.keys, shape.head_dim}, 2),
          normal({p.batch, shape.key_heads, p.keys, 3}, 3)};
}

at::Tensor out_of(const TermTrial& trial, const Tensors& inputs, const Tensors& parameters,
                  int64_t layer = 1) {
  return attend_with(*make_method(trial.method, trial.shape, json::parse(trial.options)), inputs[0],
                     inputs[1], inputs[2], trial.layout, layer, parameters);
}

at::Tensor out_of(const TermTrial& trial) {
  return out_of(trial, inputs_of(trial), parameters_of(trial));
}

class ParameterGradients : public ::testing::TestWithParam<TermTrial> {};

TEST_P(ParameterGradients, AgreeWithDifferences) {
  const TermTrial& trial = GetParam();
  Tensors all = inputs_of(trial);
  for (const at::Tensor& parameter : parameters_of(trial)) all.push_back(parameter);
  const auto f = [&](const Tensors& x) {
    const Tensors inputs(x.begin(), x.begin() + 3), parameters(x.begin() + 3, x.end());
    return at::cat({out_of(trial, inputs, parameters, 0), out_of(trial, inputs, parameters, 1)});
  };
  EXPECT_LT(gradient_error(f, all), 1e-7) << trial.method << " " << trial.options;
}

constexpr auto kBothSides = [](std::string method, std::string options = "{}") {
  return TermTrial{.method = std::move(method),
                   .options = std::move(options),
                   .layout = {.queries = 5, .keys = 5, .causal = false}};
};

INSTANTIATE_TEST_SUITE_P(
    Methods, ParameterGradients,
    ::testing::Values(
        TermTrial{"alibi", R"({"train": "one"})"}, kBothSides("alibi", R"({"train": "two"})"),
        TermTrial{"alibi", R"({"train": "one", "flavour": "falcon", "interpolation": "dynamic"})"},
        TermTrial{"kerple-log"}, kBothSides("kerple-log", R"({"clamp": "smooth"})"),
        TermTrial{"kerple-power", R"({"form": "bias-and-weight"})"},
        kBothSides("kerple-power", R"({"form": "weight", "clamp": "smooth"})"),
        TermTrial{"sandwich"},
        TermTrial{"t5", R"({"buckets": 8, "max_distance": 20, "per_layer": true})"},
        TermTrial{"rope", R"({"train": true, "pairing": "interleaved"})"}, TermTrial{"rope-mixed"},
        TermTrial{"xpos", R"({"scale_base": 4})"}, TermTrial{"xpos", R"({"xi": 0.9})"},
        TermTrial{"sandwich", R"({"strength": 0.3})"}, TermTrial{"sink", R"({"of": "kerple-log"})"},
        kBothSides("deberta", R"({"version": 1, "max_positions": 3})"),
        kBothSides("deberta", R"({"version": 1, "max_positions": 3, "flavour": "paper"})"),
        kBothSides("deberta", R"({"version": 3, "buckets": 4, "max_positions": 8})"),
        TermTrial{"tupe", R"({"relative": false, "max_positions": 9})"},
        kBothSides("tupe", R"({"buckets": 8, "max_distance": 6})")));

TEST(Alibi, HolesInTheMaskAreClosedUpByBloomOnly) {
  TermTrial paper = {.method = "alibi", .layout = {.queries = 6, .keys = 6}};
  TermTrial bloom = paper;
  bloom.options = R"({"flavour": "bloom"})";
  const auto with = [](TermTrial trial, std::vector<int64_t> shown) {
    trial.layout.mask = at::tensor(shown, at::kLong).to(at::kBool).view({1, 1, 1, -1});
    return out_of(trial);
  };
  EXPECT_LT(largest_difference(with(paper, {0, 0, 1, 1, 1, 1}), with(bloom, {0, 0, 1, 1, 1, 1})),
            kExact);
  EXPECT_GT(largest_difference(with(paper, {1, 0, 0, 1, 1, 1}), with(bloom, {1, 0, 0, 1, 1, 1})),
            1e-3);
  EXPECT_THAT([&] { out_of(bloom); }, ThrowsMessage<Error>(HasSubstr("expected a mask")));
}

TEST(Kerple, AClampedParameterStillLearns) {
  TermTrial trial = {.method = "kerple-log"};
  Tensors parameters = parameters_of(trial);
  parameters[1].fill_(-3);
  Tensors at_bound = parameters;
  at_bound[1] = at::full_like(parameters[1], 0.01);
  const auto gradient = [&](const Tensors& p) {
    Tensors leaves = {p[0], p[1].clone().requires_grad_()};
    const at::Tensor out = out_of(trial, inputs_of(trial), leaves);
    out.square().sum().backward();
    return leaves[1].grad();
  };
  EXPECT_GT(gradient(parameters).abs().min().item<double>(), 0);
  EXPECT_LT(largest_difference(gradient(parameters), gradient(at_bound)), kExact);
}

TEST(Rope, GivenPositionsAreThoseOfTheRowsByDefault) {
  TermTrial trial = {.method = "rope"};
  const at::Tensor plain = out_of(trial);
  const auto at = [&](int64_t shift) {
    trial.layout.query_rotary_positions =
        at::arange(2 + shift, 6 + shift, at::kLong).view({1, 1, -1});
    trial.layout.key_rotary_positions =
        at::arange(0 + shift, 6 + shift, at::kLong).view({1, 1, -1});
    return out_of(trial);
  };
  EXPECT_LT(largest_difference(plain, at(0)), kExact);
  EXPECT_LT(largest_difference(plain, at(1000000)), kExact);
  trial.method = "alibi";
  EXPECT_THAT([&] { out_of(trial); }, ThrowsMessage<Error>(HasSubstr("does not go by them")));
}

TEST(Rope, TheOppositeSenseIsNegatedPositions) {
  TermTrial trial = {.method = "rope", .options = R"({"sense": "clockwise"})"};
  const at::Tensor clockwise = out_of(trial);
  trial.options = "{}";
  trial.layout.query_rotary_positions = -at::arange(2, 6, at::kLong).view({1, 1, -1});
  trial.layout.key_rotary_positions = -at::arange(0, 6, at::kLong).view({1, 1, -1});
  EXPECT_LT(largest_difference(clockwise, out_of(trial)), kExact);
}

TEST(Rope, TrainedFrequenciesStartAsTheFixedOnes) {
  for (const char* sense : {"clockwise", "counter-clockwise"}) {
    TermTrial fixed = {.method = "rope", .options = json({{"sense", sense}}).dump()};
    TermTrial trained = {.method = "rope",
                         .options = json({{"sense", sense}, {"train", true}}).dump()};
    const auto specs =
        make_method("rope", trained.shape, json::parse(trained.options))->parameters();
    EXPECT_LT(
        largest_difference(out_of(fixed), out_of(trained, inputs_of(trained), {specs[0].initial})),
        kExact);
  }
}

auto turn_operator() {
  return c10::Dispatcher::singleton()
      .findSchemaOrThrow("sextant::rotate", "")
      .typed<at::Tensor(const at::Tensor&, const at::Tensor&, c10::string_view, bool)>();
}

// The reviews' form, s = (R_m q)^T (R_n k) xi^(m - n) / sqrt(d), over scores of rope.
TEST(Xpos, WithOneXiIsRopeTimesXiToTheDistance) {
  for (const bool causal : {true, false}) {
    TermTrial rope = {.method = "rope",
                      .options = R"({"pairing": "interleaved"})",
                      .layout = {.queries = 6, .keys = 6, .causal = causal}};
    TermTrial xpos = rope;
    xpos.method = "xpos";
    xpos.options = R"({"xi": 0.8})";
    const at::Tensor distance = distances(rope.layout);
    const at::Tensor seen = causal ? distance.ge(0) : at::ones({6, 6}, at::kBool);
    const Tensors in = inputs_of(rope);
    const auto rotated = [&](const at::Tensor& x) {
      const at::Tensor rotary_positions = at::arange(6, at::kLong).view({1, 1, 6});
      return turn_operator().call(x, rotary_positions, rope.options, false);
    };
    const at::Tensor scores = at::matmul(rotated(in[0]), rotated(in[1]).transpose(2, 3)) / 2 *
                              at::pow(0.8, distance.to(at::kDouble));
    EXPECT_LT(largest_difference(out_of(xpos), at::matmul(weights(scores, seen), in[2])), kExact);
    xpos.options = R"({"xi": 1.0})";
    EXPECT_LT(largest_difference(out_of(xpos), out_of(rope)), kExact);
  }
}

// xi^3000 is no float64, and its inverse neither: factors are of distances within tiles.
TEST(Xpos, WithASmallXiSurvivesLongSequences) {
  TermTrial trial = {.method = "xpos",
                     .options = R"({"xi": 0.5})",
                     .layout = {.queries = 2, .keys = 3000, .first_query = 2998}};
  const at::Tensor out = out_of(trial);
  EXPECT_TRUE(at::isfinite(out).all().item<bool>());
  EXPECT_GT(out.abs().min().item<double>(), 0);
}

TEST(Xpos, FadesSlowerWithALongerBase) {
  const at::Tensor rope = out_of({.method = "rope", .options = R"({"pairing": "interleaved"})"});
  const at::Tensor xpos = out_of({.method = "xpos", .options = R"({"scale_base": 1e10})"});
  EXPECT_LT(largest_difference(rope, xpos), 1e-8);
}

// float32 has its own kernel: each result is a sum of two products of rounded values below 8 (the
// gain of YaRN by 8 is 1.21).
TEST(SideRotation, OfFloat32IsThatOfFloat64) {
  const auto turn = turn_operator();
  constexpr double kRounding = 4 * 8 * 0x1p-23;
  const at::Tensor x = normal({2, 3, 5, 40});
  const at::Tensor rotary_positions = at::tensor({0, 1, 2, 70000, -9}, at::kLong).view({1, 1, 5});
  for (const char* options :
       {R"({"dim": 40})", R"({"dim": 24, "columns": "last", "pairing": "interleaved"})",
        R"({"stretch": {"rope_type": "yarn", "factor": 8,)"
        R"( "original_max_position_embeddings": 64}})"})
    for (const bool back : {false, true}) {
      // Contiguous, and in the layout of a model's projection: [batch, rows, heads, columns].
      for (const at::Tensor& rows : {x, x.transpose(1, 2).contiguous().transpose(1, 2)})
        EXPECT_LT(
            largest_difference(
                turn.call(rows.to(at::kFloat), rotary_positions, options, back).to(at::kDouble),
                turn.call(rows.to(at::kFloat).to(at::kDouble), rotary_positions, options, back)),
            kRounding)
            << options;
    }
}

TEST(SideRotation, BackUndoesIt) {
  const auto turn = turn_operator();
  const char* options = R"({"dim": 4, "columns": "last", "pairing": "interleaved"})";
  const at::Tensor rotary_positions = at::tensor({3, 1, 1000000007}, at::kLong).view({1, 1, 3});
  const at::Tensor x = normal({2, 3, 3, 6});
  const at::Tensor rotated = turn.call(x, rotary_positions, options, false);
  EXPECT_GT(largest_difference(rotated, x), 0.1);
  EXPECT_LT(largest_difference(rotated.slice(3, 0, 2), x.slice(3, 0, 2)), kExact);
  EXPECT_LT(largest_difference(turn.call(rotated, rotary_positions, options, true), x), kExact);
  EXPECT_LT(
      gradient_error(
          [&](const Tensors& in) { return turn.call(in[0], rotary_positions, options, false); },
          {x}),
      1e-7);
}

// The reviews' form, q_m.k_n / sqrt(d) + lambda p_m.p_n with sinusoids p, for every head.
TEST(Sandwich, WithAStrengthIsTheProductOfSinusoids) {
  TermTrial trial = {.method = "sandwich",
                     .options = R"({"strength": 0.3, "first_index": 0, "sinusoid_width": 8})",
                     .layout = {.queries = 6, .keys = 6}};
  const Tensors in = inputs_of(trial);
  const at::Tensor p = make_method("sinusoidal", {.width = 8}, json::object())
                           ->embed(at::zeros({1, 6, 8}, at::kDouble), trial.layout, {})[0];
  const at::Tensor scores =
      at::matmul(in[0], in[1].transpose(2, 3)) / 2 + 0.3 * at::matmul(p, p.t());
  const at::Tensor expected = at::matmul(weights(scores, distances(trial.layout).ge(0)), in[2]);
  EXPECT_LT(largest_difference(out_of(trial), expected), kExact);
}

TEST(Sandwich, WithAnotherRatioIsTheCurveOverIt) {
  TermTrial trial = {
      .method = "sandwich", .options = R"({"ratio": 2})", .layout = {.queries = 6, .keys = 6}};
  TermTrial same = trial;
  // Head 0 of 2 has 2 / (2 * 1), the strength 1.
  same.options = R"({"strength": 1.0})";
  EXPECT_LT(largest_difference(out_of(trial).select(1, 0), out_of(same).select(1, 0)), kExact);
  same.options = R"({"strength": 0.5})";
  EXPECT_LT(largest_difference(out_of(trial).select(1, 1), out_of(same).select(1, 1)), kExact);
}

TEST(Chunk, ReadingOneByOneIsReadingAtOnce) {
  TermTrial whole = {.method = "chunk",
                     .options = R"({"chunk": 3, "origin": 1})",
                     .layout = {.queries = 6, .keys = 6}};
  const Tensors all = inputs_of(whole);
  const at::Tensor at_once = out_of(whole);
  for (int64_t n = 0; n < 6; ++n) {
    TermTrial one = whole;
    one.layout = {.queries = 1, .keys = n + 1, .first_query = n};
    const at::Tensor out = out_of(
        one, {all[0].slice(2, n, n + 1), all[1].slice(2, 0, n + 1), all[2].slice(2, 0, n + 1)}, {});
    EXPECT_LT(largest_difference(out, at_once.slice(2, n, n + 1)), kExact);
  }
}

TEST(Window, SinksStayInSight) {
  TermTrial trial = {.method = "window",
                     .options = R"({"window": 2, "sinks": 2, "of": "alibi"})",
                     .layout = {.queries = 6, .keys = 6}};
  TermTrial same = trial;
  same.method = "alibi";
  same.options = "{}";
  const at::Tensor distance = distances(same.layout);
  const at::Tensor first = at::arange(6, at::kLong).lt(2).unsqueeze(0);
  same.layout.mask = distance.lt(2).logical_or(first).view({1, 1, 6, 6});
  EXPECT_LT(largest_difference(out_of(trial), out_of(same)), kExact);
}

TEST(Sink, IsAKeyWithoutAValue) {
  TermTrial trial = {.method = "sink", .options = R"({"of": "none"})"};
  const Tensors in = inputs_of(trial);
  const Tensors sinks = parameters_of(trial);
  const at::Tensor scores = at::matmul(in[0], in[1].transpose(2, 3)) / 2;
  const at::Tensor seen = distances(trial.layout).ge(0);
  const at::Tensor sink = sinks[1].view({1, -1, 1, 1}).expand({1, 2, 4, 1});
  const at::Tensor p =
      weights(at::cat({scores, sink}, 3), at::cat({seen, at::ones({4, 1}, at::kBool)}, 1));
  EXPECT_LT(largest_difference(out_of(trial), at::matmul(p.slice(3, 0, 6), in[2])), kExact);
}

TEST(Tupe, TheFirstTokenSeesNoPosition) {
  TermTrial trial = kBothSides("tupe", R"({"buckets": 8, "max_distance": 6})");
  const Tensors in = inputs_of(trial);
  const at::Tensor plain =
      attention(in[0], in[1], in[2], at::ones({5, 5}, at::kBool), 1 / std::sqrt(8.0));
  const at::Tensor out = out_of(trial);
  EXPECT_LT(largest_difference(out.slice(2, 0, 1), plain.slice(2, 0, 1)), kExact);
  EXPECT_GT(largest_difference(out.slice(2, 1), plain.slice(2, 1)), 1e-3);
  trial.options = R"({"max_positions": 4})";
  EXPECT_THAT([&] { out_of(trial); }, ThrowsMessage<Error>(HasSubstr("expected 0 to 3")));
}

TEST(Options, WhatDoesNotFitIsRefused) {
  const auto fails = [](const char* text, const char* method, const char* options) {
    EXPECT_THAT([&] { make_method(method, TermTrial{}.shape, json::parse(options)); },
                ThrowsMessage<Error>(HasSubstr(text)));
  };
  fails("alibi: flavour: expected", "alibi", R"({"flavour": "mpt"})");
  fails("kerple-power: form: expected", "kerple-power", R"({"form": "sum"})");
  fails("sandwich: sinusoid_width: expected an even", "sandwich", R"({"sinusoid_width": 7})");
  fails("rope: dim: expected an even", "rope", R"({"dim": 3})");
  fails("axes: sections: expected a sum of 2", "rope", R"({"axes": "blocks", "sections": [2, 1]})");
  fails("rope: sections: expected none", "rope", R"({"sections": [1, 1]})");
  fails("sandwich: strength: expected a number from 1e-06 to 1e+06, but got 0", "sandwich",
        R"({"strength": 0})");
  fails("sandwich: ratio: expected 8, the default, as strength", "sandwich",
        R"({"strength": 1, "ratio": 4})");
  fails("xpos: gamma: expected", "xpos", R"({"gamma": 0})");
  fails("xpos: xi: expected a number from 1e-06 to 1, but got 1.5", "xpos", R"({"xi": 1.5})");
  fails("xpos: gamma: expected 0.4, the default, as xi", "xpos", R"({"xi": 0.9, "gamma": 0.5})");
  fails("xpos: scale_base: expected 512, the default, as xi", "xpos",
        R"({"xi": 0.9, "scale_base": 4})");
  fails("clock: system: expected one of", "clock", R"({"system": "mars"})");
  fails("clock: hands: expected null", "clock", R"({"hands": 3})");
  fails("clock: periods: expected the default, as the alien clock", "clock",
        R"({"system": "alien", "periods": [60]})");
  fails("clock: expected a code of at most the model's 6 columns", "clock",
        R"({"system": "alien", "hands": 4})");
  fails("chunk: chunk: expected", "chunk", R"({"chunk": 0})");
  fails("deberta: flavour: expected", "deberta", R"({"flavour": "paper"})");
  fails("t5 buckets: buckets", "tupe", R"({"buckets": 5})");
}

}  // namespace
}  // namespace sextant::testing
