// A setting as GGUF metadata; reading is in read_gguf.cc.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "sextant/error.h"
#include "sextant/rope_config/engines/engine_facts.h"
#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/rope_config/gguf.h"
#include "sextant/rope_config/unsupported.h"

namespace sextant {
namespace {

class Writer {
 public:
  explicit Writer(std::string arch) : arch_(std::move(arch)) {
    out.metadata["general.architecture"] = arch_;
  }

  void put(const std::string& key, GgufValue value) {
    out.metadata[arch_ + "." + key] = std::move(value);
  }
  // A number of which frequencies are made, which float32 may round: rounded() says which.
  void put_number(const std::string& key, double value) {
    note(key, value);
    put(key, value);
  }
  void put_vector(const std::string& name, const std::vector<double>& factors) {
    for (const double x : factors) {
      note(name, x);
      out.vectors[name].push_back(static_cast<float>(x));
    }
  }
  void put_length(const std::string& key, int64_t length) {
    put(key, static_cast<uint64_t>(length));
  }

  void warn_of_rounding(std::vector<std::string>& warnings) const {
    if (rounded_.empty()) return;
    std::string names;
    for (const std::string& name : rounded_) names += (names.empty() ? "" : ", ") + name;
    warnings.push_back("GGUF holds numbers in float32, which rounds " + names + " by up to " +
                       nlohmann::json(most_).dump() + " of the value");
  }

  GgufConfig out;

 private:
  void note(const std::string& key, double value) {
    const auto stored = static_cast<double>(static_cast<float>(value));
    if (!std::isfinite(stored) || stored == 0) {
      fail("convert: gguf: " + key + ": expected a number that float32 can hold, but got " +
           nlohmann::json(value).dump());
    }
    if (stored == value) return;
    if (rounded_.empty() || rounded_.back() != key) rounded_.push_back(key);
    most_ = std::max(most_, std::fabs(stored / value - 1));
  }

  std::vector<std::string> rounded_;
  double most_ = 0;
  std::string arch_;
};

// Four numbers, 0 for axes that are not there. The order in which pairs follow the axes is the
// architecture's (llama_model_rope_type()).
void write_sections(Writer& to, const LlamaCppArchitecture& row, const RopeScaling& scaling) {
  if (row.axes != (scaling.interleaved_sections ? "interleaved" : "blocks")) {
    fail("convert: gguf: mrope_section: expected none for the architecture " + row.name +
         ", whose pairs llama.cpp does not have follow axes in that order");
  }
  if (scaling.sections.size() > 4) {
    fail("convert: gguf: mrope_section: expected at most 4 axes, but got " +
         std::to_string(scaling.sections.size()));
  }
  GgufArray sections{.numbers = {scaling.sections.begin(), scaling.sections.end()}, .count = 4};
  sections.numbers.resize(4);
  to.put("rope.dimension_sections", std::move(sections));
}

void write_longrope(Writer& to, const DynamicStretch& dynamic, const LongRope& longrope) {
  to.put("rope.scaling.type", std::string("longrope"));
  to.put_length("rope.scaling.original_context_length", dynamic.original_length);
  to.put("rope.scaling.attn_factor", longrope.gain);
  to.put_vector("rope_factors_short.weight", dynamic.short_factors);
  to.put_vector("rope_factors_long.weight", longrope.factors);
}

void write_yarn_gain(Writer& to, const LlamaCppArchitecture& row, const Yarn& yarn,
                     double score_factor) {
  const double all = yarn.mscale_all_dim.value_or(0), own = yarn.mscale.value_or(1);
  const bool said = !yarn.attention_factor && all != 0 && row.log_unit > 0 &&
                    own == (row.mscale_is_all_dim ? all : 1) &&
                    row.scales_scores == (score_factor != 1);
  if (said) return to.put("rope.scaling.yarn_log_multiplier", row.log_unit * all);
  if (score_factor != 1) {
    fail("convert: gguf: mscale_all_dim: expected none for the architecture " + row.name +
         (row.scales_scores ? ", or the mscale that llama.cpp takes beside it"
                            : ", whose scores llama.cpp does not scale"));
  }
  const double attention = yarn_gain(yarn) / yarn_temperature(yarn.factor);
  if (attention != 1) to.put("rope.scaling.attn_factor", attention);
}

void write_yarn(Writer& to, const LlamaCppArchitecture& row, const Yarn& yarn,
                double score_factor) {
  if (!yarn.truncate || yarn.ramp == Yarn::Ramp::kTurns) {
    fail("convert: gguf: truncate: expected true, as llama.cpp's ramp has whole ends");
  }
  to.put("rope.scaling.type", std::string("yarn"));
  to.put_number("rope.scaling.factor", yarn.factor);
  to.put_length("rope.scaling.original_context_length", yarn.original_length);
  to.put_number("rope.scaling.yarn_beta_fast", yarn.beta_fast);
  to.put_number("rope.scaling.yarn_beta_slow", yarn.beta_slow);
  write_yarn_gain(to, row, yarn, score_factor);
}

// p-RoPE: a pair with such a divisor does not rotate.
void write_proportional(Writer& to, const LlamaCppArchitecture& row, const RopeConfig& setting,
                        const Proportional& proportional) {
  if (!row.divisors_in_full_only || proportional.factor != 1) {
    fail("convert: gguf: proportional: expected another scaling for the architecture " + row.name +
         ", to which p-RoPE's divisors are not written");
  }
  const Spectrum slower =
      stretched(rotary({.dim = setting.rotary_dim, .base = setting.base}), Stretch{proportional});
  std::vector<double> divisors;
  for (const auto& pair : slower.pairs) {
    divisors.push_back(static_cast<double>(pair.speed) == 0 ? static_cast<double>(1e30F) : 1);
  }
  to.put_vector("rope_freqs.weight", divisors);
}

// llama.cpp's converter does so too: divisors, rounded to float32.
void write_divisors(Writer& to, const RopeConfig& setting, const Stretch& stretch) {
  const Spectrum plain = rotary({.dim = setting.rotary_dim, .base = setting.base});
  const Spectrum slower = stretched(plain, stretch);
  for (size_t f = 0; f < plain.pairs.size(); ++f) {
    const Real divisor = plain.pairs[f].speed / slower.pairs[f].speed;
    to.out.vectors["rope_freqs.weight"].push_back(static_cast<float>(static_cast<double>(divisor)));
  }
}

void write_stretch(Writer& to, const LlamaCppArchitecture& row, const RopeConfig& setting) {
  const RopeScaling& scaling = setting.scaling;
  if (const auto* dynamic = std::get_if<DynamicStretch>(&scaling.stretch)) {
    const auto* longrope = std::get_if<LongRope>(&dynamic->stretch);
    if (!longrope) fail("convert: gguf: " + scaling.type + ": expected a fixed scaling");
    return write_longrope(to, *dynamic, *longrope);
  }
  const Stretch& stretch = std::get<Stretch>(scaling.stretch);
  if (const auto* linear = std::get_if<Linear>(&stretch)) {
    to.put("rope.scaling.type", std::string("linear"));
    to.put_number("rope.scaling.factor", linear->factor);
  } else if (const auto* yarn = std::get_if<Yarn>(&stretch)) {
    write_yarn(to, row, *yarn, scaling.score_factor);
  } else if (const auto* divisors = std::get_if<LongRope>(&stretch); divisors) {
    // Llama 3's, read from a GGUF file.
    if (scaling.original_length > 0) {
      to.put_length("rope.scaling.original_context_length", scaling.original_length);
    }
    to.put_vector("rope_freqs.weight", divisors->factors);
  } else if (const auto* parts = std::get_if<ByParts>(&stretch)) {
    to.put_length("rope.scaling.original_context_length", parts->original_length);
    write_divisors(to, setting, stretch);
  } else if (const auto* part = std::get_if<Proportional>(&stretch)) {
    write_proportional(to, row, setting, *part);
  } else if (!std::holds_alternative<std::monostate>(stretch)) {
    fail("convert: gguf: " + scaling.type + ": expected none, linear, yarn, llama3 or longrope");
  }
}

// Llama 4's law for queries, where the architecture's code reads its keys.
void write_query_law(Writer& to, const LlamaCppArchitecture& row, const RopeConfig& setting) {
  const QueryScale& scale = setting.scaling.query_scale;
  if (scale.law != QueryLaw::kMinistral || !row.temperature_keys) {
    return refuse_query_scale(setting.scaling, "gguf");
  }
  to.put_number("attention.temperature_scale", scale.strength);
  if (row.name == "deepseek2" || row.name == "mistral4") {
    return to.put_length("attention.temperature_length", scale.length);
  }
  if (scale.length == trained_length(setting)) return;
  fail("convert: gguf: llama_4_scaling_beta: expected the law to count from the original length, " +
       std::to_string(trained_length(setting)) + ", as llama.cpp does, but got " +
       std::to_string(scale.length));
}

const LlamaCppArchitecture& row_of(const std::string& architecture) {
  if (const LlamaCppArchitecture* row = find_architecture(architecture)) return *row;
  fail("convert: gguf: general.architecture: expected one that the table of " +
       llama_cpp_version() + " has, but got \"" + architecture + "\"");
}

bool has_window(const RopeConfig& group) {
  return group.window > 0 || group.chunk > 0 || group.layers.find("sliding") != std::string::npos ||
         group.parameters.find("sliding") != std::string::npos;
}

// Weights, which the metadata accompanies, stand in the order of the pairs that rotate.
void warn_of_pairs(const RopeConfig& setting, const LlamaCppArchitecture& row,
                   std::vector<std::string>& warnings) {
  if (!setting.pairing || !row.pairing) return;
  const Pairing there = setting.scaling.sections.empty() ? *row.pairing : Pairing::kHalfSplit;
  if (*setting.pairing == there) return;
  warnings.push_back("this model rotates " + order_of(*setting.pairing) + " pairs, and llama.cpp " +
                     order_of(there) + " ones in the architecture " + row.name +
                     ": beside this metadata the weights of queries and keys must be permuted to "
                     "that order. " +
                     engine_fact("llama.cpp.pairs"));
}

void warn_of_betas(const RopeConfig& setting, const LlamaCppArchitecture& row,
                   std::vector<std::string>& warnings) {
  const auto* fixed = std::get_if<Stretch>(&setting.scaling.stretch);
  const auto* yarn = fixed ? std::get_if<Yarn>(fixed) : nullptr;
  if (!yarn || row.betas || (yarn->beta_fast == 32 && yarn->beta_slow == 1)) return;
  warnings.push_back("llama.cpp takes the beta_fast and beta_slow of this file only from flags, " +
                     std::string("--yarn-beta-fast ") + nlohmann::json(yarn->beta_fast).dump() +
                     " --yarn-beta-slow " + nlohmann::json(yarn->beta_slow).dump() + ". " +
                     engine_fact("llama.cpp.betas"));
}

[[noreturn]] void refuse_groups(size_t count, const LlamaCppArchitecture& row) {
  fail(
      "convert: gguf: expected one setting for all layers, or one for layers with a window and one "
      "for the others where " +
      llama_cpp_version() + " reads both for the architecture " + row.name + ", but got " +
      std::to_string(count));
}

// Layers with the window, in keys of their own.
void write_local(Writer& to, const LlamaCppArchitecture& row, const RopeConfig& full,
                 const RopeConfig& local) {
  const auto& window = *row.window;
  const bool plain = local.scaling.stretch == RopeScaling{}.stretch;
  const bool alike = local.scaling.stretch == full.scaling.stretch;
  if (!(window.scaled ? alike : plain) || local.scaling.sections != full.scaling.sections) {
    fail("convert: gguf: " + local.scaling.type + ": expected " +
         (window.scaled ? "the scaling of the other layers" : "no scaling") +
         " in layers with a window, as llama.cpp's code for " + row.name + " has it");
  }
  to.put_number("rope.freq_base_swa", local.base);
  if (local.head_dim != full.head_dim) {
    to.put_length("attention.key_length_swa", local.head_dim);
  }
  if (local.rotary_dim != full.rotary_dim || local.head_dim != full.head_dim) {
    to.put_length("rope.dimension_count_swa", local.rotary_dim);
  }
  if (local.window > 0) to.put_length("attention.sliding_window", local.window);
}

}  // namespace

std::string gguf_architecture(const std::string& model_type) {
  if (model_type.empty()) return "llama";
  if (const LlamaCppArchitecture* row = architecture_of(model_type)) return row->name;
  fail("convert: gguf: model_type: expected a model that " + llama_cpp_version() +
       " has an architecture for, but got \"" + model_type + "\", for which none is known here");
}

GgufConfig write_gguf_config(const std::vector<RopeConfig>& groups, const std::string& architecture,
                             std::vector<std::string>& warnings) {
  const LlamaCppArchitecture& row = row_of(architecture);
  const auto local = std::ranges::find_if(groups, has_window);
  const auto full = std::ranges::find_if_not(groups, has_window);
  const bool two = groups.size() == 2 && local != groups.end() && full != groups.end() &&
                   row.window && row.window->own_base;
  if (groups.size() != 1 && !two) refuse_groups(groups.size(), row);
  const RopeConfig& setting = two ? *full : groups.at(0);
  refuse_dual_chunks(setting, "gguf");
  Writer to(architecture);
  write_query_law(to, row, setting);
  to.put_length("attention.key_length", setting.head_dim);
  to.put_length("rope.dimension_count", setting.rotary_dim);
  to.put_number("rope.freq_base", setting.base);
  if (const int64_t most = declared_length(setting)) to.put_length("context_length", most);
  if (!setting.scaling.sections.empty()) write_sections(to, row, setting.scaling);
  write_stretch(to, row, setting);
  if (two) write_local(to, row, *full, *local);
  // llama.cpp would take another base for layers with the window.
  if (!two && row.window && row.window->own_base && row.window->local_base > 0) {
    to.put_number("rope.freq_base_swa", setting.base);
  }
  to.warn_of_rounding(warnings);
  warn_of_pairs(setting, row, warnings);
  warn_of_betas(setting, row, warnings);
  return std::move(to.out);
}

}  // namespace sextant
