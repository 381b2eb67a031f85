// Compares methods by name with the official modules: float64, with autograd through the trained
// parameters.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "sextant/position/slopes.h"
#include "sextant/torch/method.h"
#include "tests/golden/golden.h"

namespace sextant::golden {
namespace {

using nlohmann::json;
using Tensors = std::map<std::string, at::Tensor>;

constexpr double kTolerance = 1e-12;

at::Tensor tensor_of(const Golden& file, const std::string& array) {
  Doubles numbers = file.numbers(array);
  return at::from_blob(numbers.data(), file.shape(array), at::kDouble).clone();
}
at::Tensor integers_of(const Golden& file, const std::string& array) {
  std::vector<int64_t> numbers = file.integers(array);
  return at::from_blob(numbers.data(), file.shape(array), at::kLong).clone();
}

// The file's arrays of these names as tensors that require gradients.
Tensors inputs(const Golden& file, const std::vector<std::string>& names) {
  Tensors tensors;
  for (const std::string& name : names) {
    if (file.has(name)) tensors[name] = tensor_of(file, name).requires_grad_(true);
  }
  return tensors;
}

void expect_equal(const Golden& file, const std::string& array, const at::Tensor& got) {
  ASSERT_TRUE(got.defined()) << array;
  const at::Tensor flat = got.detach().contiguous();
  const auto* data = flat.data_ptr<double>();
  EXPECT_EQ(difference(array, {data, data + flat.numel()}, file.numbers(array), kTolerance), "");
}

// Compares `out` with the file's, and the gradient of each input with the array `prefix` + name.
void expect_answers(const Golden& file, const at::Tensor& out, const std::string& gradient_of,
                    const Tensors& inputs, const std::string& prefix) {
  expect_equal(file, "out", out);
  (out * tensor_of(file, gradient_of)).sum().backward();
  for (const std::string& answer : file.answers()) {
    if (answer == "out") continue;
    const std::string name = answer.substr(prefix.size());
    ASSERT_TRUE(answer.starts_with(prefix) && inputs.contains(name)) << answer;
    expect_equal(file, answer, inputs.at(name).grad());
  }
}

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
    Operands operands = plain_operands(x, x, x, layout);
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

TEST(MethodsGolden, Learned) {
  for (const char* name : {"learned_bert_past0", "learned_gpt2"}) {
    SCOPED_TRACE(name);
    const Golden file(golden_files().at(name));
    const Tensors in = inputs(file, {"tok_emb", "pos_emb", "type_emb", "ln_w", "ln_b"});
    const auto rows = [&](const char* table, const char* ids) {
      const at::Tensor index = integers_of(file, ids);
      return in.at(table).index_select(0, index.flatten()).view({index.size(0), index.size(1), -1});
    };
    at::Tensor x = rows("tok_emb", "input_ids");
    if (file.has("type_emb")) x = x + rows("type_emb", "token_type_ids");
    const at::Tensor& table = in.at("pos_emb");
    const auto made = make_method("learned", {.width = table.size(1)}, {{"rows", table.size(0)}});
    const auto positions = file.integers("position_ids");
    const std::vector<at::Tensor> parameters = {table};
    std::vector<at::Tensor> texts;  // sequences, each with its own first position
    for (int64_t b = 0; b < x.size(0); ++b) {
      const Layout layout{.queries = x.size(1),
                          .keys = x.size(1),
                          .first_query = positions.at(static_cast<size_t>(b * x.size(1)))};
      texts.push_back(made->embed(x.narrow(0, b, 1), layout, parameters));
    }
    const at::Tensor sum = at::cat(texts);
    expect_equal(file, "pre_ln", sum);
    const at::Tensor out = at::layer_norm(sum, {sum.size(2)}, in.at("ln_w"), in.at("ln_b"),
                                          file.meta().at("ln_eps").get<double>());
    expect_equal(file, "out", out);
    (out * tensor_of(file, "g")).sum().backward();
    for (const auto& [array, tensor] : in) {
      at::Tensor grad = tensor.grad();
      // torch computes no gradient for BERT's padding token, whose row is 0; the encoding has no
      // such rule.
      if (array == "tok_emb" && file.has("type_emb")) grad.select(0, 0).zero_();
      expect_equal(file, "grad_" + array, grad);
    }
  }
}

TEST(MethodsGolden, Sinusoidal) {
  const Golden file(golden_files().at("sinusoidal_tables"));
  for (const auto& [array, options] :
       {std::pair{"interleaved_d32", json::object()},
        std::pair{"interleaved_d8_base500", json{{"base", 500}}},
        std::pair{"concat_txl_d32", json{{"layout", "concatenated"}}},
        std::pair{"t2t_d32", json{{"layout", "tensor2tensor"}}}}) {
    SCOPED_TRACE(array);
    const int64_t rows = file.shape(array)[0], width = file.shape(array)[1];
    const auto made = make_method("sinusoidal", {.width = width}, options);
    const at::Tensor table =
        made->embed(at::zeros({1, rows, width}, at::kDouble), {.queries = rows, .keys = rows}, {});
    expect_equal(file, array, table);
  }
}

// Sequences with padding on either side. The official module keeps its table in float32.
TEST(MethodsGolden, SinusoidalOfFairseq) {
  const Golden file(golden_files().at("sinusoidal_tables"));
  const at::Tensor token_ids = integers_of(file, "fairseq_mask_tokens");
  const auto made =
      make_method("sinusoidal", {.width = 8}, {{"layout", "fairseq"}, {"padding_idx", 0}});
  const Layout layout{.batch = token_ids.size(0),
                      .queries = token_ids.size(1),
                      .keys = token_ids.size(1),
                      .token_ids = token_ids};
  const at::Tensor rows =
      made->embed(at::zeros({token_ids.size(0), token_ids.size(1), 8}, at::kDouble), layout, {});
  const auto* data = rows.data_ptr<double>();
  EXPECT_EQ(difference("fairseq", {data, data + rows.numel()}, file.numbers("fairseq_mask_out_d8"),
                       0x1p-24),
            "");
}

// All combinations of sharing in the files: a table is [token ids, D], [D] or [token ids, 1].
TEST(MethodsGolden, ComplexWords) {
  const auto names = names_starting_with({"complex_embed_"});
  if (names.empty()) GTEST_SKIP() << "not kept in the tree";
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const Golden file(golden_files().at(name));
    const Tensors in = inputs(file, {"r", "w", "theta"});
    const int64_t token_ids = in.at("r").size(0), half = in.at("r").size(1);
    const auto sharing = [&](const char* table) -> std::string {
      if (!in.contains(table)) return "none";
      if (in.at(table).dim() == 1) return "component";
      return in.at(table).size(1) == 1 ? "word" : "word-and-component";
    };
    const auto made = make_method("complex", {.width = 2 * half},
                                  {{"amplitude", "word"},
                                   {"frequency", sharing("w")},
                                   {"phase", sharing("theta")},
                                   {"vocabulary", token_ids}});
    std::vector<at::Tensor> parameters = {in.at("r"), in.at("w")};
    if (in.contains("theta")) parameters.push_back(in.at("theta"));
    const at::Tensor ids = integers_of(file, "input_ids");
    const Layout layout{.batch = ids.size(0),
                        .queries = ids.size(1),
                        .keys = ids.size(1),
                        .first_query = file.integers("positions")[0] - 1,
                        .token_ids = ids};
    const auto parts = made->embed(at::zeros({ids.size(0), ids.size(1), 2 * half}, at::kDouble),
                                   layout, parameters)
                           .chunk(2, -1);
    expect_equal(file, "re", parts[0]);
    expect_equal(file, "im", parts[1]);
    (parts[0] * tensor_of(file, "g_re") + parts[1] * tensor_of(file, "g_im")).sum().backward();
    for (const auto& [table, tensor] : in) expect_equal(file, "grad_" + table, tensor.grad());
  }
}

TEST(MethodsGolden, SinusoidalOnScaledTokens) {
  if (!golden_files().contains("sinusoidal_added_scaled")) GTEST_SKIP() << "not kept in the tree";
  const Golden file(golden_files().at("sinusoidal_added_scaled"));
  const Tensors in = inputs(file, {"x"});
  const at::Tensor& x = in.at("x");
  const auto made = make_method("sinusoidal", {.width = x.size(2)},
                                {{"token_scale", std::sqrt(static_cast<double>(x.size(2)))}});
  const Layout layout{.batch = x.size(0), .queries = x.size(1), .keys = x.size(1)};
  expect_answers(file, made->embed(x, layout, {}), "g", in, "grad_");
}

}  // namespace
}  // namespace sextant::golden
