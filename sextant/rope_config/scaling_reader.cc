// One member for each type of rope_scaling takes the fields of that type.
//
// Reads YaRN, whose gain engines take from different fields.
#include "sextant/rope_config/scaling_reader.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/rope_config/engines/engine_facts.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {
namespace {

using nlohmann::json;

bool goes_by_outer(const std::string& type) {
  return type == "yarn" || type == "llama3" || type == "longrope" || type == "su";
}

}  // namespace

double ScalingReader::factor() { return fields.number("factor", 1, kMostFactor); }

// L: from the object, from beside it, or the model's length.
int64_t ScalingReader::original_length(bool may_be_model_length) {
  const auto own = fields.optional_integer("original_max_position_embeddings", 1, kLongestSequence);
  const int64_t beside = context.original_length;
  if (own && beside != 0 && beside != *own) {
    const bool takes_outer = context.outer_first && goes_by_outer(to.type);
    to.warnings.push_back(
        "original_max_position_embeddings is " + std::to_string(*own) + " in the scaling and " +
        std::to_string(beside) + " " + context.original_from + "; " +
        (takes_outer ? "the latter is taken. " + engine_fact("transformers.outer_original")
                     : std::string("the former is taken: write the same into both")));
    return to.original_length = takes_outer ? beside : *own;
  }
  if (own || beside != 0) return to.original_length = own.value_or(beside);
  if (!may_be_model_length || context.max_length == 0) {
    fields.refuse("original_max_position_embeddings", "the length that the model was trained with");
  }
  to.warnings.push_back(
      "original_max_position_embeddings is missing; Hugging Face takes max_position_embeddings, " +
      std::to_string(context.max_length) + ", for it, others may not; write it into the scaling");
  return to.original_length = context.max_length;
}

double ScalingReader::base() const {
  if (to.base) return *to.base;
  if (context.base == 0) fields.refuse("rope_theta", "the base of the frequencies");
  return context.base;
}

void ScalingReader::read_plain() { read_query_scale(to.original_length); }

// Interpolation does not use the original length, but a file that has it means the training length.
void ScalingReader::read_linear() {
  to.stretch = Linear{factor()};
  if (!context.from_file) return;
  to.original_length =
      fields.optional_integer("original_max_position_embeddings", 1, kLongestSequence).value_or(0);
  if (to.original_length == 0) return;
  to.warnings.push_back(
      "original_max_position_embeddings has no effect on frequencies with rope_type linear; it is "
      "taken here for the length that was trained");
}

void ScalingReader::read_ntk() {
  const auto exponent = fields.optional_number("mixed_b", 0, 100);  // vLLM's name
  if (!exponent) {
    to.stretch = Ntk{factor()};
    return;
  }
  to.stretch = NtkMixed{factor(), *exponent};
  to.type = "ntk-mixed";
}

void ScalingReader::read_query_scale(int64_t length) {
  const auto beta = fields.optional_number("llama_4_scaling_beta", 0, 1e6);
  if (!beta) return;
  if (length == 0) {
    length = fields.optional_integer("original_max_position_embeddings", 1, kLongestSequence)
                 .value_or(context.original_length);
  }
  if (length == 0) {
    fields.refuse("original_max_position_embeddings",
                  "the length by which llama_4_scaling_beta goes");
  }
  to.query_scale = {QueryLaw::kMinistral, length, *beta};
}

ByParts ScalingReader::parts() {
  return {.original_length = original_length(true),
          .slow = fields.optional_number("beta_slow", 1e-6, 1e9).value_or(1),
          .fast = fields.optional_number("beta_fast", 1e-6, 1e9).value_or(32)};
}

void ScalingReader::read_llama3() {
  ByParts parts{.factor = factor(), .original_length = original_length(true)};
  parts.slow = fields.number("low_freq_factor", 1e-6, 1e9);
  parts.fast = fields.number("high_freq_factor", 1e-6, 1e9);
  if (parts.fast < parts.slow) {
    fields.refuse("high_freq_factor", "at least low_freq_factor, " + std::to_string(parts.slow));
  }
  if (parts.fast == parts.slow) {
    to.warnings.push_back(
        "low_freq_factor equals high_freq_factor: code that does not look out divides by zero");
  }
  to.stretch = parts;
}

std::vector<double> ScalingReader::list(const char* name) {
  std::vector<double> factors = fields.optional_numbers(name, 1e-6, 1e9);
  const auto size = static_cast<int64_t>(factors.size());
  if (size == 0 || (context.pairs > 0 && size != context.pairs)) {
    fields.refuse(name, "a number for each of " + std::to_string(context.pairs) + " pairs");
  }
  return factors;
}

void ScalingReader::read_longrope() {
  DynamicStretch dynamic{.growth = Growth::kStep};
  dynamic.original_length = original_length(true);
  dynamic.short_factors = list("short_factor");
  LongRope longrope{.factors = list("long_factor")};
  const auto given = fields.optional_number("factor", 1, kMostFactor);
  const double times = context.max_length == 0 ? 0
                                               : static_cast<double>(context.max_length) /
                                                     static_cast<double>(dynamic.original_length);
  if (!given && times < 1) fields.refuse("factor", "a number from 1 on");
  dynamic.factor = given.value_or(times);
  auto gain = fields.optional_number("attention_factor", 1e-6, 1e6);
  const auto short_gain = fields.optional_number("short_mscale", 1e-6, 1e6);
  const auto long_gain = fields.optional_number("long_mscale", 1e-6, 1e6);
  if (short_gain.has_value() != long_gain.has_value()) {
    fields.refuse(short_gain ? "long_mscale" : "short_mscale",
                  "a number beside the other of the two");
  }
  if (long_gain) {  // Phi-3.5-MoE: the gains of the two lists
    gain = long_gain;
    if (*short_gain != *long_gain) dynamic.short_gain = short_gain;
  }
  if (given && !gain && times >= 1 && std::fabs(*given / times - 1) > 1e-9) {
    to.warnings.push_back("factor is " + json(*given).dump() +
                          ", and max_position_embeddings / original_max_position_embeddings is " +
                          json(times).dump() +
                          ": transformers 5 takes factor for the gain of queries and keys (" +
                          json(longrope_gain(*given, dynamic.original_length)).dump() +
                          ", said here), transformers 4 and vLLM the ratio of the lengths (" +
                          json(longrope_gain(times, dynamic.original_length)).dump() +
                          "); attention_factor says one gain to all");
  }
  longrope.gain = gain.value_or(longrope_gain(dynamic.factor, dynamic.original_length));
  dynamic.stretch = longrope;
  to.stretch = dynamic;
  to.warnings.push_back(
      "Hugging Face and vLLM choose between the two lists anew as a text grows past " +
      std::to_string(dynamic.original_length) +
      " tokens, with keys already cached under the other; llama.cpp chooses once by context size. "
      "Up to that length nothing changes; a longer text should be read by the long list from its "
      "start");
}

DynamicStretch ScalingReader::grown(Stretch stretch, Growth growth) {
  DynamicStretch dynamic{.stretch = std::move(stretch), .growth = growth};
  dynamic.original_length = original_length(true);
  return dynamic;
}

void ScalingReader::read_dynamic() {
  if (const auto alpha = fields.optional_number("alpha", 1, 1e12)) {  // HunYuan
    to.stretch = Ntk{*alpha};
    for (const char* unread : {"factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"}) {
      fields.skip(unread);
    }
    to.warnings.push_back(
        "alpha makes this a fixed NTK scaling (HunYuan); its other fields have no effect");
    return;
  }
  DynamicStretch dynamic = grown(Ntk{}, Growth::kHuggingFace);
  dynamic.factor = factor();
  to.warnings.erase(  // for this type max_position_embeddings is the regular value
      std::remove_if(to.warnings.begin(), to.warnings.end(),
                     [](const std::string& w) { return w.starts_with("original_max"); }),
      to.warnings.end());
  to.stretch = dynamic;
  to.warnings.push_back("the frequencies change as a text grows past " +
                        std::to_string(dynamic.original_length) +
                        " tokens: an engine that caches rotated keys then compares them with "
                        "queries rotated otherwise, and Hugging Face keeps the changed ones for "
                        "shorter texts that follow. Up to that length nothing changes; beyond, "
                        "cache plain keys, as sextant does, or take a fixed scaling");
}

void ScalingReader::read_proportional() {
  to.stretch = Proportional{.part = to.partial.value_or(1),
                            .factor = fields.optional_number("factor", 1, kMostFactor).value_or(1)};
  to.partial.reset();  // a part of the frequencies, not of the channels
}

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
        "attention_factor and mscale are both given, and engines take different ones: keep the one "
        "that the model was trained with. " +
        engine_fact("transformers.attention_factor"));
  }
  if (yarn.beta_fast < yarn.beta_slow) {
    to.warnings.push_back(
        "beta_fast is below beta_slow: they are swapped, and fast pairs are interpolated while "
        "slow ones are kept, which is YaRN backwards; swap them, unless the model was trained so");
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
        "attn_factor is not transformers' word for YaRN's gain, and has no effect in the numbers "
        "here; attention_factor says the gain. " +
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
          "max_position_embeddings is more than factor times the original length; positions beyond "
          "it were not planned for");
    }
  } else {
    if (context.max_length <= yarn.original_length) fields.refuse("factor", "a number above 1");
    yarn.factor =
        static_cast<double>(context.max_length) / static_cast<double>(yarn.original_length);
    to.warnings.push_back(
        "factor is missing; max_position_embeddings / original_max_position_embeddings is taken "
        "for it, as in Hugging Face");
  }
  read_other_engines();
  const bool scores = fields.optional_flag("scale_scores").value_or(context.scales_scores);
  if (scores && yarn.mscale_all_dim.value_or(0) != 0) {
    to.score_factor = yarn_score_factor(yarn);
    to.warnings.push_back(
        "mscale_all_dim also scales all scores in this model's code, as in DeepSeek's; an engine "
        "that leaves that out attends too flatly. " +
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
