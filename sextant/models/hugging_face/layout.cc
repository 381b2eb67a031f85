#include "sextant/models/hugging_face/layout.h"

#include <nlohmann/json.hpp>
#include <numeric>

namespace sextant::hugging_face {
namespace {

using Form = TensorMapping::Form;

class Layout {
 public:
  Layout(const ModelConfig& config, Family family)
      : model_(config.model),
        facts_(facts_of(family)),
        gpt2_(family == Family::kGpt2),
        turned_(pairing_of(config) == "interleaved" ? Form::kInterleaved : Form::kRows) {}

  std::vector<TensorMapping> all(int64_t position_rows, bool one_matrix) && {
    const std::vector<int64_t> tokens = {model_.vocabulary, model_.width};
    apply(name_of("embedding"), "embedding", tokens, model_.tied ? Form::kScaled : Form::kRows);
    if (const std::string positions = name_of("positions"); !positions.empty())
      apply(positions, "position.position_embeddings.weight", {position_rows, model_.width});
    for (int64_t n = 0; n < model_.layers; ++n) layer(n);
    norm(name_of("final_norm"), "final_norm");
    apply(one_matrix ? name_of("embedding") : "lm_head", model_.tied ? "embedding" : "unembedding",
          tokens);
    return std::move(places_);
  }

 private:
  std::string name_of(const char* part) const { return facts_.modules.value(part, ""); }

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
    if (facts_.norm_bias) zeros(module, model_.width);
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
    const std::string theirs = name_of("layer") + std::to_string(n) + ".";
    norm(theirs + name_of("attention_norm"), ours + "attention.norm");
    attention_in(theirs, ours + "attention.in");
    matrix(theirs + name_of("out"), ours + "attention.out", model_.width, model_.width);
    norm(theirs + name_of("mlp_norm"), ours + "mlp.norm");
    int64_t first_row = 0;
    if (const std::string gate = name_of("gate"); !gate.empty()) {
      apply(theirs + gate, ours + "mlp.up", {model_.mlp_width, model_.width});
      first_row = model_.mlp_width;
    }
    if (first_row > 0) {
      apply(theirs + name_of("up"), ours + "mlp.up", {model_.mlp_width, model_.width}, Form::kRows,
            first_row);
    } else {
      matrix(theirs + name_of("up"), ours + "mlp.up", model_.mlp_width, model_.width);
    }
    matrix(theirs + name_of("down"), ours + "mlp.down", model_.width, model_.mlp_width);
  }

  void attention_in(const std::string& theirs, const std::string& parameter) {
    const int64_t query_rows = model_.heads * model_.head_dim();
    const int64_t key_rows = model_.key_heads * model_.head_dim();
    if (const std::string joined = name_of("attention"); !joined.empty())
      return matrix(theirs + joined, parameter, query_rows + 2 * key_rows, model_.width);
    const std::string attention = theirs + "self_attn.";
    apply(attention + "q_proj", parameter, {query_rows, model_.width}, turned_);
    apply(attention + "k_proj", parameter, {key_rows, model_.width}, turned_, query_rows);
    apply(attention + "v_proj", parameter, {key_rows, model_.width}, Form::kRows,
          query_rows + key_rows);
  }

  const DecoderOptions& model_;
  const FamilyFacts& facts_;
  bool gpt2_;
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
