// Compares methods of attention by name with the official modules: float64, with autograd through
// the trained parameters.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "sextant/torch/method.h"
#include "tests/golden/golden.h"
#include "tests/golden/tensors.h"

namespace sextant::golden {
namespace {

using nlohmann::json;

// The positions of the file's queries and keys, which are consecutive in all cases here.
Layout placement_of(const Golden& file, const at::Tensor& q, const at::Tensor& k, bool causal) {
  Layout layout{.batch = q.size(0), .queries = q.size(2), .keys = k.size(2), .causal = causal};
  layout.first_query = layout.keys - layout.queries;
  if (file.has("pos_q")) {
    layout.first_query = file.integers("pos_q")[0];
    layout.first_key = file.integers("pos_k")[0];
  }
  return layout;
}

// Files with the names of the rotary cases: q, k, v, gout, dq, dk, dv.
void expect_rotary(const std::string& name, const std::string& method, const json& options,
                   bool causal) {
  SCOPED_TRACE(name);
  if (!golden_files().contains(name)) GTEST_SKIP() << "not there";
  const Golden file(golden_files().at(name));
  const Tensors in = inputs(file, {"q", "k", "v"});
  const at::Tensor &q = in.at("q"), &k = in.at("k"), &v = in.at("v");
  const auto made = make_method(
      method, {.heads = q.size(1), .key_heads = k.size(1), .head_dim = q.size(3)}, options);
  const at::Tensor out = attend_with(*made, q, k, v, placement_of(file, q, k, causal), 0, {});
  expect_answers(file, out, "gout", in, "d");
}

// Compares the forward pass alone, for files with one token after a cache, or with gradients that
// omit a part of the formula.
void expect_out(const std::string& name, const std::string& method, const json& options) {
  SCOPED_TRACE(name);
  if (!golden_files().contains(name)) GTEST_SKIP() << "not there";
  const Golden file(golden_files().at(name));
  const at::Tensor q = tensor_of(file, "q"), k = tensor_of(file, "k"), v = tensor_of(file, "v");
  const auto made = make_method(
      method, {.heads = q.size(1), .key_heads = k.size(1), .head_dim = q.size(3)}, options);
  expect_equal(file, "out", attend_with(*made, q, k, v, placement_of(file, q, k, true), 0, {}));
}

TEST(MethodsGolden, None) { expect_rotary("nope_causal", "none", json::object(), true); }

TEST(MethodsGolden, RopeHalfSplit) {
  expect_rotary("rope_neox_full", "rope", json::object(), true);
  expect_rotary("rope_neox_offset_gqa", "rope", json::object(), true);
}

TEST(MethodsGolden, RopeInterleaved) {
  expect_rotary("rope_gptj_partial", "rope", {{"pairing", "interleaved"}, {"dim", 8}}, true);
  expect_rotary("rope_meta_complex", "rope", {{"pairing", "interleaved"}, {"base", 5e5}}, true);
}

TEST(MethodsGolden, Rerope) {
  const json options = {{"window", 4}, {"log_n", 8}};
  expect_rotary("rerope_prefill", "rerope", options, true);
  expect_rotary("rerope_prefill_gqa", "rerope", {{"window", 3}}, true);
  expect_out("rerope_decode", "rerope", options);
  expect_rotary("rerope_bidirectional", "rerope", {{"window", 3}}, false);
}

TEST(MethodsGolden, LeakyRerope) {
  const json options = {{"window", 4}, {"factor", 4.0}, {"log_n", 8}};
  expect_rotary("leaky_prefill", "leaky-rerope", options, true);
  expect_out("leaky_decode", "leaky-rerope", options);
  expect_rotary("leaky_bidirectional", "leaky-rerope", {{"window", 3}, {"factor", 4.0}}, false);
}

TEST(MethodsGolden, SelfExtend) {
  const json options = {{"window", 8}, {"group", 4}};
  expect_rotary("selfextend_prefill", "self-extend", options, true);
  expect_rotary("selfextend_logn", "self-extend", {{"window", 4}, {"group", 2}, {"log_n", 6}},
                true);
  expect_rotary("selfextend_nondividing", "self-extend", {{"window", 4}, {"group", 3}}, true);
  expect_out("selfextend_decode", "self-extend", options);
}

TEST(MethodsGolden, DualChunk) {
  json options = {{"chunk_size", 8}, {"local_window", 2}};
  expect_out("dca_prefill", "dual-chunk", options);
  expect_out("dca_decode", "dual-chunk", options);
  if (golden_files().contains("dca_prefill_mscale"))
    options["mscale"] = Golden(golden_files().at("dca_prefill_mscale")).meta().at("mscale");
  expect_out("dca_prefill_mscale", "dual-chunk", options);
  expect_out("dca_prefill_lw4", "dual-chunk", {{"chunk_size", 8}, {"local_window", 4}});
}

TEST(MethodsGolden, Streaming) {
  expect_out("streamingllm_steps", "streaming", {{"sinks", 2}, {"recent", 4}});
}

TEST(MethodsGolden, Alibi) {
  expect_rotary("alibi_causal_decode_h8", "alibi", json::object(), true);
  expect_rotary("alibi_bidirectional_symmetric", "alibi", json::object(), false);
}

TEST(MethodsGolden, Fire) {
  for (const char* name : {"fire_short", "fire_long"}) {
    if (!golden_files().contains(name)) continue;
    SCOPED_TRACE(name);
    const Golden file(golden_files().at(name));
    Tensors in = inputs(file, {"q", "k", "v"});
    std::vector<at::Tensor> parameters;
    for (const std::string parameter :
         {"c", "L_multiplier", "mlp_0_weight", "mlp_0_bias", "mlp_2_weight", "mlp_2_bias"}) {
      parameters.push_back(tensor_of(file, parameter).requires_grad_(true));
      in["_" + parameter] = parameters.back();  // the file calls their gradients d_c and so on
    }
    const at::Tensor &q = in.at("q"), &k = in.at("k");
    const auto made = make_method(
        "fire", {.heads = q.size(1), .key_heads = k.size(1), .head_dim = q.size(3)},
        {{"hidden", file.shape("mlp_0_bias")[0]}, {"threshold", file.meta().at("init_L")}});
    const at::Tensor out =
        attend_with(*made, q, k, in.at("v"), placement_of(file, q, k, true), 0, parameters);
    expect_answers(file, out, "gout", in, "d");
  }
}

// Arrays in these files are [batch, length, heads, columns]; the gates' logits are columns of the
// keys.
TEST(MethodsGolden, Fox) {
  for (const auto& [name, method, options] :
       {std::tuple{"fox_causal", "fox", json::object()},
        std::tuple{"fox_window4", "window", json{{"of", "fox"}, {"window", 4}}}}) {
    if (!golden_files().contains(name)) continue;
    SCOPED_TRACE(name);
    const Golden file(golden_files().at(name));
    Tensors in = inputs(file, {"q", "k", "v"});
    const at::Tensor logits = tensor_of(file, "fgate_logit").requires_grad_(true);
    in["_fgate_logit"] = logits;
    const at::Tensor q = in.at("q").transpose(1, 2), k = in.at("k").transpose(1, 2);
    const ModelShape shape = {.heads = q.size(1),
                              .key_heads = k.size(1),
                              .head_dim = q.size(3),
                              .width = q.size(1) * q.size(3)};
    const at::Tensor gates = logits.unflatten(2, {k.size(1), -1}).transpose(1, 2);
    const auto unread = [&](std::vector<int64_t> sizes) { return at::zeros(sizes, at::kDouble); };
    const std::vector<at::Tensor> parameters = {unread({shape.heads, shape.width}),
                                                unread({shape.heads})};
    const at::Tensor out =
        attend_with(*make_method(method, shape, options), q, at::cat({k, gates}, 3),
                    in.at("v").transpose(1, 2), placement_of(file, q, k, true), 0, parameters);
    expect_answers(file, out.transpose(1, 2), "gout", in, "d");
  }
}

TEST(MethodsGolden, Window) {
  expect_rotary("window_causal_w4", "window", {{"window", 4}, {"of", "none"}}, true);
}

// Compares the method's window with masks of several implementations, which count the window either
// with or without the query itself.
TEST(MethodsGolden, WindowsSeeWhatThoseOfOtherCodesSee) {
  const Golden file(golden_files().at("window_masks"));
  const struct {
    const char* mask;
    int64_t window;
    bool causal;
  } windows[] = {
      {"hf_sliding_causal_w4", 4, true},
      {"gptoss_sliding_w4", 4, true},
      {"flashattn_window_left3_right0", 4, true},
      {"hf_sliding_bidirectional_w4_inclusive", 5, false},
      {"flashattn_window_left4_right4", 5, false},
      {"gemma3_bidirectional_w4_exclusive", 4, false},
  };
  for (const auto& [mask, window, causal] : windows) {
    const int64_t rows = file.shape(mask)[0];
    const Layout layout{.queries = rows, .keys = rows, .causal = causal};
    const auto made = make_method("window", {.head_dim = 1, .train_length = rows},
                                  {{"window", window}, {"of", "none"}});
    const at::Tensor x = at::zeros({1, 1, rows, 1}, at::kDouble);
    TensorOperands operands = plain_operands(x, x, x, layout);
    made->apply(operands, layout, 0, {});
    const at::Tensor key_ranges = operands.sweeps.at(0).key_ranges.contiguous();
    Doubles seen;
    for (int64_t i = 0; i < rows; ++i) {
      const auto* run = key_ranges.data_ptr<int64_t>() + 2 * i;
      for (int64_t j = 0; j < rows; ++j) seen.push_back(j >= run[0] && j < run[1] ? 1 : 0);
    }
    EXPECT_EQ(seen, file.numbers(mask)) << mask;
  }
}

TEST(MethodsGolden, Shaw) {
  for (const char* name : {"shaw_bidir", "shaw_causal_clip2"}) {
    SCOPED_TRACE(name);
    const Golden file(golden_files().at(name));
    const Tensors in = inputs(file, {"q", "k", "v", "rel_k", "rel_v"});
    const at::Tensor &q = in.at("q"), &k = in.at("k");
    const auto made = make_method("shaw", {.heads = q.size(1), .head_dim = q.size(3)},
                                  {{"clip", file.meta().at("max_relative_position")}});
    const std::vector<at::Tensor> parameters = {in.at("rel_k"), in.at("rel_v")};
    const at::Tensor out =
        attend_with(*made, q, k, in.at("v"),
                    placement_of(file, q, k, file.meta().at("causal").get<bool>()), 0, parameters);
    expect_answers(file, out, "g", in, "grad_");
  }
}

at::Tensor split_heads(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}

TEST(MethodsGolden, T5) {
  for (const char* name : {"t5_encoder_L9", "t5_decoder_L9"}) {
    SCOPED_TRACE(name);
    const Golden file(golden_files().at(name));
    const Tensors in = inputs(file, {"x", "rel_bias", "q_w", "k_w", "v_w", "o_w"});
    const at::Tensor& x = in.at("x");
    const int64_t heads = in.at("rel_bias").size(1);
    const auto projected = [&](const char* weight) {
      return split_heads(at::linear(x, in.at(weight)), heads);
    };
    const at::Tensor q = projected("q_w"), k = projected("k_w"), v = projected("v_w");
    const auto made = make_method("t5", {.heads = heads, .head_dim = q.size(3), .width = x.size(2)},
                                  {{"buckets", file.meta().at("num_buckets")},
                                   {"max_distance", file.meta().at("max_distance")}});
    const std::vector<at::Tensor> parameters = {in.at("rel_bias")};
    const at::Tensor context =
        attend_with(*made, q, k, v, placement_of(file, q, k, file.meta().at("causal").get<bool>()),
                    0, parameters);
    const at::Tensor out =
        at::linear(context.transpose(1, 2).reshape({x.size(0), x.size(1), -1}), in.at("o_w"));
    expect_answers(file, out, "g", in, "grad_");
  }
}

}  // namespace
}  // namespace sextant::golden
