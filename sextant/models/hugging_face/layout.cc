#include "sextant/models/hugging_face/layout.h"

#include <nlohmann/json.hpp>
#include <numeric>

namespace sextant::hugging_face {
namespace {

using Form = TensorMapping::Form;

// A family's names of the parts of its decoder.
struct Words {
  std::string embedding, layer, final_norm;    // "model.layers."
  std::string attention_norm, attention, out;  // within a layer; attention: q, k and v joined
  std::string mlp_norm, gate, up, down;        // gate: "" if there is none
  std::string positions = {};                  // trained positions
};

Words words_of(Family family) {
  switch (family) {
    case Family::kMpt:
      return {.embedding = "transformer.wte",
              .layer = "transformer.blocks.",
              .final_norm = "transformer.norm_f",
              .attention_norm = "norm_1",
              .attention = "attn.Wqkv",
              .out = "attn.out_proj",
              .mlp_norm = "norm_2",
              .gate = "",
              .up = "ffn.up_proj",
              .down = "ffn.down_proj"};
    case Family::kGpt2:
      return {.embedding = "transformer.wte",
              .layer = "transformer.h.",
              .final_norm = "transformer.ln_f",
              .attention_norm = "ln_1",
              .attention = "attn.c_attn",
              .out = "attn.c_proj",
              .mlp_norm = "ln_2",
              .gate = "",
              .up = "mlp.c_fc",
              .down = "mlp.c_proj",
              .positions = "transformer.wpe"};
    default:
      break;
  }
  Words words{.embedding = "model.embed_tokens",
              .layer = "model.layers.",
              .final_norm = "model.norm",
              .attention_norm = "input_layernorm",
              .attention = "",
              .out = "self_attn.o_proj",
              .mlp_norm = "post_attention_layernorm",
              .gate = "mlp.gate_proj",
              .up = "mlp.up_proj",
              .down = "mlp.down_proj"};
  if (family == Family::kArcee) words.gate = "";
  if (family == Family::kStarcoder2) {
    words.gate = "";
    words.up = "mlp.c_fc";
    words.down = "mlp.c_proj";
  }
  return words;
}

class Layout {
 public:
  Layout(const ModelConfig& config, Family family)
      : model_(config.model),
        words_(words_of(family)),
        norm_bias_(has_norm_bias(family)),
        gpt2_(family == Family::kGpt2),
        turned_(pairing_of(config) == "interleaved" ? Form::kInterleaved : Form::kRows) {}

  std::vector<TensorMapping> all(int64_t position_rows, bool one_matrix) && {
    const std::vector<int64_t> tokens = {model_.vocabulary, model_.width};
    apply(words_.embedding, "embedding", tokens, model_.tied ? Form::kScaled : Form::kRows);
    if (!words_.positions.empty()) {
      apply(words_.positions, "position.position_embeddings.weight", {position_rows, model_.width});
    }
    for (int64_t n = 0; n < model_.layers; ++n) layer(n);
    norm(words_.final_norm, "final_norm");
    apply(one_matrix ? words_.embedding : "lm_head", model_.tied ? "embedding" : "unembedding",
          tokens);
    return std::move(places_);
  }

 private:
  void apply(const std::string& module, const std::string& parameter, std::vector<int64_t> shape,
             Form form = Form::kRows, int64_t first_row = 0) {
    places_.push_back({.tensor = module + ".weight",
                       .parameter = parameter,
                       .shape = std::move(shape),
                       .first_row = first_row,
                       .form = form});
  }

  void zeros(const std::string& module, int64_t size) {
    places_.push_back(
        {.tensor = module + ".bias", .parameter = "", .shape = {size}, .form = Form::kZeros});
  }

  void norm(const std::string& module, const std::string& parameter) {
    apply(module, parameter, {model_.width});
    if (norm_bias_) zeros(module, model_.width);
  }

  // GPT-2 has transposed matrices, and biases.
  void matrix(const std::string& module, const std::string& parameter, int64_t rows,
              int64_t columns) {
    if (!gpt2_) return apply(module, parameter, {rows, columns});
    apply(module, parameter, {columns, rows}, Form::kTransposed);
    zeros(module, rows);
  }

  void layer(int64_t n) {
    const std::string ours = "layers." + std::to_string(n) + ".";
    const std::string theirs = words_.layer + std::to_string(n) + ".";
    norm(theirs + words_.attention_norm, ours + "attention.norm");
    attention_in(theirs, ours + "attention.in");
    matrix(theirs + words_.out, ours + "attention.out", model_.width, model_.width);
    norm(theirs + words_.mlp_norm, ours + "mlp.norm");
    int64_t first_row = 0;
    if (!words_.gate.empty()) {
      apply(theirs + words_.gate, ours + "mlp.up", {model_.mlp_width, model_.width});
      first_row = model_.mlp_width;
    }
    if (first_row > 0) {
      apply(theirs + words_.up, ours + "mlp.up", {model_.mlp_width, model_.width}, Form::kRows,
            first_row);
    } else {
      matrix(theirs + words_.up, ours + "mlp.up", model_.mlp_width, model_.width);
    }
    matrix(theirs + words_.down, ours + "mlp.down", model_.width, model_.mlp_width);
  }

  void attention_in(const std::string& theirs, const std::string& parameter) {
    const int64_t query_rows = model_.heads * model_.head_dim();
    const int64_t key_rows = model_.key_heads * model_.head_dim();
    if (!words_.attention.empty()) {
      return matrix(theirs + words_.attention, parameter, query_rows + 2 * key_rows, model_.width);
    }
    const std::string attention = theirs + "self_attn.";
    apply(attention + "q_proj", parameter, {query_rows, model_.width}, turned_);
    apply(attention + "k_proj", parameter, {key_rows, model_.width}, turned_, query_rows);
    apply(attention + "v_proj", parameter, {key_rows, model_.width}, Form::kRows,
          query_rows + key_rows);
  }

  const DecoderOptions& model_;
  Words words_;
  bool norm_bias_, gpt2_;
  Form turned_;
  std::vector<TensorMapping> places_;
};

int64_t position_rows(const ModelConfig& config) {
  const nlohmann::json options = nlohmann::json::parse(config.options);
  const auto rows = options.find("rows");
  return rows == options.end() || rows->is_null() ? config.train_length : rows->get<int64_t>();
}

}  // namespace

std::string pairing_of(const ModelConfig& config) {
  nlohmann::json options = nlohmann::json::parse(config.options);
  if (config.method == "window") options = options.value("options", nlohmann::json::object());
  return options.value("pairing", "half-split");
}

std::vector<TensorMapping> places(const ModelConfig& config, Family family, bool one_matrix) {
  const int64_t rows = family == Family::kGpt2 ? position_rows(config) : 0;
  return Layout(config, family).all(rows, one_matrix);
}

std::vector<int64_t> half_split_order(int64_t head_dim, int64_t turning) {
  std::vector<int64_t> order(static_cast<size_t>(head_dim));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t n = 0; n < turning / 2; ++n) {
    order[static_cast<size_t>(n)] = 2 * n;
    order[static_cast<size_t>(n + turning / 2)] = 2 * n + 1;
  }
  return order;
}

}  // namespace sextant::hugging_face
