// Compares methods that change the embeddings with the official modules: float64, with autograd
// through the trained parameters.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sextant/torch/method.h"
#include "tests/golden/golden.h"
#include "tests/golden/tensors.h"

namespace sextant::golden {
namespace {

using nlohmann::json;

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
