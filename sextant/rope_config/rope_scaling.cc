#include "sextant/rope_config/rope_scaling.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sextant/error.h"
#include "sextant/rope_config/engines/engine_facts.h"
#include "sextant/rope_config/fields.h"

namespace sextant {
namespace {

using nlohmann::json;

constexpr double kMostFactor = 1e9;
constexpr int64_t kLongest = int64_t{1} << 40;

// One type's reader. The fields' values go to `to`.
struct Reader {
  Fields& fields;
  const RopeScalingContext& context;
  RopeScaling& to;

  double factor() { return fields.needed_number("factor", 1, kMostFactor); }

  // L: in the object, beside it, or the model's length.
  int64_t original_length(bool may_be_model_length) {
    if (const auto own = fields.integer("original_max_position_embeddings", 1, kLongest)) {
      if (context.original_length != 0 && context.original_length != *own) {
        to.warnings.push_back("original_max_position_embeddings stands in two places, " +
                              std::to_string(*own) + " in the scaling and " +
                              std::to_string(context.original_length) +
                              " beside it; the former is used");
      }
      return to.original_length = *own;
    }
    if (context.original_length != 0) return to.original_length = context.original_length;
    if (!may_be_model_length || context.max_length == 0) {
      fields.bad("original_max_position_embeddings", "the length that the model was trained with");
    }
    to.warnings.push_back(
        "original_max_position_embeddings is missing; Hugging Face takes "
        "max_position_embeddings, " +
        std::to_string(context.max_length) + ", for it, others may not; write it into the scaling");
    return to.original_length = context.max_length;
  }

  double base() const {
    if (to.base) return *to.base;
    if (context.base == 0) fields.bad("rope_theta", "the base of the frequencies");
    return context.base;
  }

  // Words of other types are no fault here, but they do nothing.
  void read_plain() {
    std::string idle;
    for (const char* name : {"factor", "original_max_position_embeddings", "beta_fast", "beta_slow",
                             "mscale", "mscale_all_dim", "attention_factor", "low_freq_factor",
                             "high_freq_factor", "truncate"}) {
      if (fields.has(name)) idle += (idle.empty() ? "" : ", ") + std::string(name);
      fields.skip(name);
    }
    if (!idle.empty()) {
      to.warnings.push_back("rope_type is " + to.type + ", so that it stretches nothing: " + idle +
                            " beside it has no effect");
    }
    read_query_scale(to.original_length);
  }

  void read_query_scale(int64_t length) {
    const auto beta = fields.number("llama_4_scaling_beta", 0, 1e6);
    if (!beta) return;
    if (length == 0) {
      length = fields.integer("original_max_position_embeddings", 1, kLongest)
                   .value_or(context.original_length);
    }
    if (length == 0) {
      fields.bad("original_max_position_embeddings",
                 "the length by which llama_4_scaling_beta goes");
    }
    to.query_scale = {QueryLaw::kMinistral, length, *beta};
  }

  Yarn yarn_shape() {
    Yarn yarn{.base = base()};
    yarn.original_length = original_length(true);
    yarn.beta_fast = fields.number("beta_fast", 1e-6, 1e9).value_or(32);
    yarn.beta_slow = fields.number("beta_slow", 1e-6, 1e9).value_or(1);
    yarn.truncate = fields.flag("truncate").value_or(true);
    yarn.attention_factor = fields.number("attention_factor", 1e-6, 1e6);
    yarn.mscale = fields.number("mscale", 0, 1e6);
    yarn.mscale_all_dim = fields.number("mscale_all_dim", 0, 1e6);
    if (const auto ramp = fields.text("ramp")) {
      if (*ramp != "pairs" && *ramp != "turns") fields.bad("ramp", "\"pairs\" or \"turns\"");
      if (*ramp == "turns") yarn.ramp = Yarn::Ramp::kTurns;
    }
    warn_of(yarn);
    return yarn;
  }

  void warn_of(const Yarn& yarn) {
    if (yarn.attention_factor && (yarn.mscale || yarn.mscale_all_dim)) {
      to.warnings.push_back(
          "attention_factor and mscale are both given, and engines take different ones: keep the "
          "one that the model was trained with. " +
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

  void read_yarn() {
    Yarn yarn = yarn_shape();
    if (const auto factor = fields.number("factor", 1, kMostFactor)) {
      yarn.factor = *factor;
      if (context.max_length > 0 && static_cast<double>(context.max_length) >
                                        *factor * static_cast<double>(yarn.original_length)) {
        to.warnings.push_back(
            "max_position_embeddings is more than factor times the original "
            "length; positions beyond it were not planned for");
      }
    } else {
      if (context.max_length <= yarn.original_length) fields.bad("factor", "a number above 1");
      yarn.factor =
          static_cast<double>(context.max_length) / static_cast<double>(yarn.original_length);
      to.warnings.push_back(
          "factor is missing; max_position_embeddings / "
          "original_max_position_embeddings is taken for it, as in Hugging Face");
    }
    // The name of vLLM below 0.30, for what is left beside its temperature.
    const auto rest = fields.number("attn_factor", 1e-6, 1e6);
    if (rest && !yarn.attention_factor) {
      yarn.attention_factor = *rest * yarn_temperature(yarn.factor);
      to.warnings.push_back(engine_fact("vllm.attention_factor"));
    }
    const bool scores = fields.flag("scale_scores").value_or(context.scales_scores);
    if (scores && yarn.mscale_all_dim.value_or(0) != 0) {
      to.score_factor = yarn_score_factor(yarn);
      to.warnings.push_back(
          "mscale_all_dim also scales all scores in DeepSeek's own code; an engine that leaves "
          "that out attends too flatly. " +
          engine_fact("transformers.score_scale"));
    }
    read_query_scale(yarn.original_length);
    to.stretch = yarn;
  }

  // vLLM's name for YaRN with DeepSeek's factor of scores.
  void read_deepseek_yarn() {
    read_yarn();
    to.type = "yarn";
  }

  ByParts parts() {
    return {.original_length = original_length(true),
            .slow = fields.number("beta_slow", 1e-6, 1e9).value_or(1),
            .fast = fields.number("beta_fast", 1e-6, 1e9).value_or(32)};
  }

  void read_llama3() {
    ByParts parts{.factor = factor(), .original_length = original_length(false)};
    parts.slow = fields.needed_number("low_freq_factor", 1e-6, 1e9);
    parts.fast = fields.needed_number("high_freq_factor", 1e-6, 1e9);
    if (parts.fast < parts.slow) {
      fields.bad("high_freq_factor", "at least low_freq_factor, " + std::to_string(parts.slow));
    }
    if (parts.fast == parts.slow) {
      to.warnings.push_back(
          "low_freq_factor equals high_freq_factor: code that does not look out divides by zero");
    }
    to.stretch = parts;
  }

  std::vector<double> list(const char* name) {
    std::vector<double> factors = fields.numbers(name, 1e-6, 1e9);
    const auto size = static_cast<int64_t>(factors.size());
    if (size == 0 || (context.pairs > 0 && size != context.pairs)) {
      fields.bad(name, "a number for each of " + std::to_string(context.pairs) + " pairs");
    }
    return factors;
  }

  void read_longrope() {
    DynamicStretch dynamic{.growth = Growth::kStep};
    dynamic.original_length = original_length(false);
    dynamic.short_factors = list("short_factor");
    LongRope longrope{.factors = list("long_factor")};
    const auto given = fields.number("factor", 1, kMostFactor);
    const double times = context.max_length == 0 ? 0
                                                 : static_cast<double>(context.max_length) /
                                                       static_cast<double>(dynamic.original_length);
    if (!given && times < 1) fields.bad("factor", "a number from 1 on");
    dynamic.factor = given.value_or(times);
    auto gain = fields.number("attention_factor", 1e-6, 1e6);
    const auto short_gain = fields.number("short_mscale", 1e-6, 1e6);
    const auto long_gain = fields.number("long_mscale", 1e-6, 1e6);
    if (short_gain.has_value() != long_gain.has_value()) {
      fields.bad(short_gain ? "long_mscale" : "short_mscale",
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
        " tokens, with keys already cached under the other; llama.cpp chooses once by context "
        "size. Up to that length nothing changes; a longer text should be read by the long list "
        "from "
        "its start");
  }

  DynamicStretch grown(Stretch stretch, Growth growth) {
    DynamicStretch dynamic{.stretch = std::move(stretch), .growth = growth};
    dynamic.original_length = original_length(true);
    return dynamic;
  }

  void read_dynamic() {
    if (const auto alpha = fields.number("alpha", 1, 1e12)) {  // HunYuan
      to.stretch = Ntk{*alpha};
      for (const char* unread : {"factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim"}) {
        fields.skip(unread);
      }
      to.warnings.push_back(
          "alpha makes this a fixed NTK scaling (HunYuan); its other fields "
          "have no effect");
      return;
    }
    DynamicStretch dynamic = grown(Ntk{}, Growth::kHuggingFace);
    dynamic.factor = factor();
    to.warnings.erase(  // that it goes by max_position_embeddings is what this type means
        std::remove_if(to.warnings.begin(), to.warnings.end(),
                       [](const std::string& w) { return w.starts_with("original_max"); }),
        to.warnings.end());
    to.stretch = dynamic;
    to.warnings.push_back(
        "the frequencies change as a text grows past " + std::to_string(dynamic.original_length) +
        " tokens: an engine that caches turned keys then compares them with queries turned "
        "otherwise, and Hugging Face keeps the changed ones for shorter texts that follow. Up to "
        "that length nothing changes; beyond, cache plain keys, as sextant does, or take a fixed "
        "scaling");
  }

  void read_proportional() {
    to.stretch = Proportional{.part = to.partial.value_or(1),
                              .factor = fields.number("factor", 1, kMostFactor).value_or(1)};
    to.partial.reset();  // of the ladder, and not of the channels
  }
};

const std::map<std::string, std::function<void(Reader&)>>& readers() {
  static const std::map<std::string, std::function<void(Reader&)>> all = {
      {"default", &Reader::read_plain},
      {"mrope", &Reader::read_plain},  // Qwen2-VL's name for default with sections
      {"linear", [](Reader& r) { r.to.stretch = Linear{r.factor()}; }},
      {"ntk", [](Reader& r) { r.to.stretch = Ntk{r.factor()}; }},
      {"ntk-mixed",
       [](Reader& r) {
         r.to.stretch = NtkMixed{r.factor(), r.fields.number("exponent", 0, 100).value_or(0.75)};
       }},
      {"by-parts",
       [](Reader& r) {
         ByParts parts = r.parts();
         parts.factor = r.factor();
         r.to.stretch = parts;
       }},
      {"part-ntk",
       [](Reader& r) {
         r.to.stretch = PartNtk{
             .factor = r.factor(), .original_length = r.original_length(true), .base = r.base()};
       }},
      {"yarn", &Reader::read_yarn},
      {"deepseek_yarn", &Reader::read_deepseek_yarn},
      {"llama3", &Reader::read_llama3},
      {"longrope", &Reader::read_longrope},
      {"su", &Reader::read_longrope},
      {"proportional", &Reader::read_proportional},
      {"dynamic", &Reader::read_dynamic},
      {"dynamic-linear", [](Reader& r) { r.to.stretch = r.grown(Linear{}, Growth::kRatio); }},
      {"dynamic-ntk", [](Reader& r) { r.to.stretch = r.grown(Ntk{}, Growth::kRatio); }},
      {"qwen-ntk", [](Reader& r) { r.to.stretch = r.grown(Ntk{}, Growth::kDoubling); }},
      {"dynamic-by-parts", [](Reader& r) { r.to.stretch = r.grown(r.parts(), Growth::kRatio); }},
      {"dynamic-yarn", [](Reader& r) { r.to.stretch = r.grown(r.yarn_shape(), Growth::kRatio); }},
  };
  return all;
}

std::string type_of(Fields& fields, RopeScaling& to) {
  const auto type = fields.text("rope_type"), old = fields.text("type");
  if (type && old && *type != *old && *old != "mrope") {
    to.warnings.push_back("rope_type and type differ, and rope_type is used");
  }
  if (!type && !old) fields.bad("rope_type", "the name of a scaling");
  return type ? *type : *old;
}

void read_common(Fields& fields, RopeScaling& to) {
  to.base = fields.number("rope_theta", 1e-3, 1e30);
  to.partial = fields.number("partial_rotary_factor", 1e-6, 1);
  to.sections = fields.integers("mrope_section", 1, 1 << 20);
  to.interleaved_sections = fields.flag("mrope_interleaved").value_or(false);
  // Saved beside the others by some models' code, which then does not read them from here.
  for (const char* unread : {"interleaved", "max_position_embeddings", "finetuned"}) {
    fields.skip(unread);
  }
}

}  // namespace

RopeScaling read_scaling(const json& object, const RopeScalingContext& context,
                         const std::string& where) {
  Fields fields(object, where);
  RopeScaling scaling;
  scaling.type = type_of(fields, scaling);
  const auto reader = readers().find(scaling.type);
  if (reader == readers().end()) {
    std::string known;
    for (const auto& [name, unused] : readers()) known += (known.empty() ? "" : ", ") + name;
    fields.bad(fields.has("rope_type") ? "rope_type" : "type", "one of " + known);
  }
  read_common(fields, scaling);
  if (scaling.type == "mrope" && scaling.sections.empty()) {
    fields.bad("mrope_section", "the pairs of each axis");
  }
  const auto sum = std::accumulate(scaling.sections.begin(), scaling.sections.end(), int64_t{0});
  if (!scaling.sections.empty() && context.pairs > 0 && sum != context.pairs) {
    fields.bad("mrope_section", "pairs of each axis, " + std::to_string(context.pairs) + " in all");
  }
  Reader state{fields, context, scaling};
  reader->second(state);
  if (!fields.was_asked("attention_factor")) {
    const auto idle = fields.number("attention_factor", 1e-6, 1e6);
    if (idle.value_or(1) != 1) {
      scaling.warnings.push_back("attention_factor has no effect with rope_type " + scaling.type);
    }
  }
  fields.finish();
  return scaling;
}

json scaling_of_words(const std::string& words, const std::string& where) {
  const size_t star = words.find('*');
  json object = {{"rope_type", words.substr(0, star)}};
  if (star == std::string::npos) return object;
  double factor = 0;
  const char* end = words.data() + words.size();
  const auto [stop, error] = std::from_chars(words.data() + star + 1, end, factor);
  if (error != std::errc{} || stop != end || !std::isfinite(factor)) {
    fail(where + ": expected a type and a factor as in yarn*8, but got \"" + words + "\"");
  }
  object["factor"] = factor;
  return object;
}

Stretch stretch_of(const RopeScaling& scaling, int64_t length) {
  if (const auto* dynamic = std::get_if<DynamicStretch>(&scaling.stretch)) {
    return stretch_at(*dynamic, length);
  }
  return std::get<Stretch>(scaling.stretch);
}

}  // namespace sextant
