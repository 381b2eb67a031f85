// Reads YaRN, whose gain engines take from different fields.
#include <nlohmann/json.hpp>

#include "sextant/rope_config/engines/engine_facts.h"
#include "sextant/rope_config/scaling_reader.h"

namespace sextant {
namespace {

using nlohmann::json;

}  // namespace

Yarn ScalingReader::yarn_shape() {
  Yarn yarn{.base = base()};
  yarn.original_length = original_length(true);
  yarn.beta_fast = fields.optional_number("beta_fast", 1e-6, 1e9).value_or(32);
  yarn.beta_slow = fields.optional_number("beta_slow", 1e-6, 1e9).value_or(1);
  yarn.truncate = fields.optional_flag("truncate").value_or(true);
  yarn.attention_factor = fields.optional_number("attention_factor", 1e-6, 1e6);
  yarn.mscale = fields.optional_number("mscale", 0, 1e6);
  yarn.mscale_all_dim = fields.optional_number("mscale_all_dim", 0, 1e6);
  if (const auto ramp = fields.optional_string("ramp")) {
    if (*ramp != "pairs" && *ramp != "turns") fields.refuse("ramp", "\"pairs\" or \"turns\"");
    if (*ramp == "turns") yarn.ramp = Yarn::Ramp::kTurns;
  }
  warn_of(yarn);
  return yarn;
}

void ScalingReader::warn_of(const Yarn& yarn) {
  if (yarn.attention_factor && (yarn.mscale || yarn.mscale_all_dim)) {
    to.warnings.push_back(
        "attention_factor and mscale are both given, and engines take different ones: keep the "
        "one "
        "that the model was trained with. " +
        engine_fact("transformers.attention_factor"));
  }
  if (yarn.beta_fast < yarn.beta_slow) {
    to.warnings.push_back(
        "beta_fast is below beta_slow: they are swapped, and fast pairs are interpolated while "
        "slow ones are kept, which is YaRN backwards; swap them, unless the model was trained "
        "so");
  }
  if (!yarn.truncate) {
    to.warnings.push_back(
        "truncate is false, and an engine that truncates the ramp to whole pairs all the same "
        "changes single frequencies by up to 76 percent: it runs another model. " +
        engine_fact("llama.cpp.truncate"));
  }
  if (yarn.mscale.value_or(0) != 0 && yarn.mscale_all_dim.value_or(0) == 0) {
    to.warnings.push_back(
        "mscale stands without mscale_all_dim, which engines read differently; attention_factor "
        "says the same to all. " +
        engine_fact("transformers.mscale_alone"));
  }
}

// Reads fields that transformers ignores and other engines use or used.
void ScalingReader::read_other_engines() {
  if (!context.from_file) return;
  const double rest = fields.optional_number("attn_factor", 1e-6, 1e6).value_or(1);
  if (rest != 1 && !fields.has("attention_factor")) {
    to.warnings.push_back(
        "attn_factor is not transformers' word for YaRN's gain, and has no "
        "effect in the numbers here; attention_factor says the gain. " +
        engine_fact("sglang.mscale"));
  }
  const bool extrapolates = fields.optional_number("extrapolation_factor", 0, 1e6).value_or(1) == 1;
  if (!extrapolates || !fields.optional_flag("apply_yarn_scaling").value_or(true)) {
    to.warnings.push_back(
        std::string(extrapolates ? "apply_yarn_scaling" : "extrapolation_factor") +
        " has no effect in transformers, and so none in the numbers here. " +
        engine_fact("vllm.yarn_words"));
  }
}

void ScalingReader::read_yarn() {
  Yarn yarn = yarn_shape();
  if (const auto factor = fields.optional_number("factor", 1, kMostFactor)) {
    yarn.factor = *factor;
    if (context.max_length > 0 && static_cast<double>(context.max_length) >
                                      *factor * static_cast<double>(yarn.original_length)) {
      to.warnings.push_back(
          "max_position_embeddings is more than factor times the original "
          "length; positions beyond it were not planned for");
    }
  } else {
    if (context.max_length <= yarn.original_length) fields.refuse("factor", "a number above 1");
    yarn.factor =
        static_cast<double>(context.max_length) / static_cast<double>(yarn.original_length);
    to.warnings.push_back(
        "factor is missing; max_position_embeddings / "
        "original_max_position_embeddings is taken for it, as in Hugging Face");
  }
  read_other_engines();
  const bool scores = fields.optional_flag("scale_scores").value_or(context.scales_scores);
  if (scores && yarn.mscale_all_dim.value_or(0) != 0) {
    to.score_factor = yarn_score_factor(yarn);
    to.warnings.push_back(
        "mscale_all_dim also scales all scores in this model's code, as in DeepSeek's; an engine "
        "that leaves "
        "that "
        "out attends too flatly. " +
        engine_fact("transformers.score_scale"));
  }
  read_query_scale(yarn.original_length);
  to.stretch = yarn;
}

// vLLM's name for YaRN with DeepSeek's factor of scores.
void ScalingReader::read_deepseek_yarn() {
  read_yarn();
  to.type = "yarn";
}

}  // namespace sextant
