#include "sextant/models/hugging_face/rotary.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <variant>

#include "sextant/base/error.h"
#include "sextant/rope_config/hugging_face.h"
#include "sextant/torch/method.h"

namespace sextant::hugging_face {
namespace {

using nlohmann::json;

int64_t rotary_dim(const ModelConfig& config, const json& options) {
  return options.at("dim").is_null() ? config.model.head_dim() : options.at("dim").get<int64_t>();
}

int64_t times(double factor, int64_t length) {
  return static_cast<int64_t>(std::ceil(factor * static_cast<double>(length)));
}

// The longest sequence that a fixed stretch is made for.
int64_t stretched_length(const Stretch& stretch, int64_t train_length) {
  const double factor = std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.factor; }) return kind.factor;
        return 1.0;
      },
      stretch);
  return times(factor, train_length);
}

}  // namespace

std::string rotary_obstacle(const ModelConfig& config, const json& options, bool partial) {
  const json plain = complete_options("rope", json::object());
  for (const char* option : {"columns", "sense", "axes", "query_scale", "train"}) {
    if (options.at(option) != plain.at(option)) {
      return std::string("rope's ") + option + " = " + options.at(option).dump() +
             " has no word there";
    }
  }
  const int64_t dim = rotary_dim(config, options);
  if (!partial && dim != config.model.head_dim()) {
    return "a rope of " + std::to_string(dim) + " of " + std::to_string(config.model.head_dim()) +
           " channels has no architecture there with this norm and activation";
  }
  const RopeConfig rope = rope_config_of(config, options);
  if (rope.scaling.is_dynamic() && options.at("dynamic") != "length") {
    return "stretches that go by the text go by its length there (dynamic = \"length\")";
  }
  try {
    write_hugging_face(json::object(), {rope}, 4);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

RopeConfig rope_config_of(const ModelConfig& config, const json& options) {
  RopeConfig rope{.model_type = "",
                  .head_dim = config.model.head_dim(),
                  .rotary_dim = rotary_dim(config, options),
                  .base = options.at("base").get<double>(),
                  .max_length = config.train_length};
  json stretch = options.at("stretch");
  if (stretch.is_null()) return rope;
  if (stretch.is_string()) stretch = scaling_of_words(stretch.get<std::string>(), "stretch");
  rope.scaling = read_scaling(
      stretch,
      {.base = rope.base, .pairs = rope.rotary_dim / 2, .original_length = config.train_length},
      "stretch");
  const auto* fixed = std::get_if<Stretch>(&rope.scaling.stretch);
  if (fixed == nullptr) {
    const auto& dynamic = std::get<DynamicStretch>(rope.scaling.stretch);
    // The other kinds take max_position_embeddings as the training length.
    if (dynamic.growth == Growth::kStep) {
      rope.max_length = times(dynamic.factor, config.train_length);
    }
    return rope;
  }
  rope.max_length = stretched_length(*fixed, config.train_length);
  if (const auto* ntk = std::get_if<Ntk>(fixed); ntk != nullptr && rope.rotary_dim > 2) {
    const auto dim = static_cast<double>(rope.rotary_dim);
    rope.base *= std::pow(ntk->factor, dim / (dim - 2));
    rope.scaling = {};
  }
  // ByParts and llama3 are two names of one formula.
  if (std::holds_alternative<ByParts>(*fixed)) rope.scaling.type = "llama3";
  return rope;
}

json rotary_options(const RopeConfig& rope) {
  json options = {{"base", rope.base}};
  if (rope.rotary_dim != rope.head_dim) options["dim"] = rope.rotary_dim;
  if (rope.scaling.type != "default") {
    options["stretch"] = scaling_object(rope);
    if (rope.scaling.is_dynamic()) options["dynamic"] = "length";
  }
  return options;
}

}  // namespace sextant::hugging_face
