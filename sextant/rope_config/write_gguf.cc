// Writes a configuration as GGUF metadata; read_gguf.cc reads it.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
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
  // Writes a number that determines frequencies; rounding to float32 is recorded for a warning.
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

// Writes four numbers, 0 for missing axes. The order in which pairs follow the axes is that of the
// architecture (llama_model_rope_type()).
void write_sections(Writer& to, const LlamaCppArchitecture& row, const RopeScaling& scaling) {
  if (scaling.plane_first ||
      row.axes != (scaling.interleaved_sections ? "interleaved" : "blocks")) {
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
void write_proportional(Writer& to, const LlamaCppArchitecture& row, const RopeConfig& config,
                        const Proportional& proportional) {
  if (!row.divisors_in_full_only || (row.window && row.window->scaled)) {
    fail("convert: gguf: proportional: expected another scaling for the architecture " + row.name +
         ", to which p-RoPE's divisors are not written");
  }
  if (proportional.factor != 1) {
    to.put("rope.scaling.type", std::string("linear"));
    to.put_number("rope.scaling.factor", proportional.factor);
  }
  const Spectrum slower =
      stretched(rotary({.dim = config.rotary_dim, .base = config.base}), Stretch{proportional});
  std::vector<double> divisors;
  for (const auto& pair : slower.pairs) {
    divisors.push_back(static_cast<double>(pair.frequency) == 0 ? static_cast<double>(1e30F) : 1);
  }
  to.put_vector("rope_freqs.weight", divisors);
}

// Divisors rounded to float32, as llama.cpp's converter writes them.
void write_divisors(Writer& to, const RopeConfig& config, const Stretch& stretch) {
  const Spectrum plain = rotary({.dim = config.rotary_dim, .base = config.base});
  const Spectrum slower = stretched(plain, stretch);
  for (size_t f = 0; f < plain.pairs.size(); ++f) {
    const Real divisor = plain.pairs[f].frequency / slower.pairs[f].frequency;
    to.out.vectors["rope_freqs.weight"].push_back(static_cast<float>(static_cast<double>(divisor)));
  }
}

void write_stretch(Writer& to, const LlamaCppArchitecture& row, const RopeConfig& config) {
  const RopeScaling& scaling = config.scaling;
  if (const auto* dynamic = std::get_if<DynamicStretch>(&scaling.stretch)) {
    const auto* longrope = std::get_if<LongRope>(&dynamic->stretch);
    if (!longrope) fail("convert: gguf: " + scaling.type + ": expected a fixed scaling");
    return write_longrope(to, *dynamic, *longrope);
  }
  const Stretch& stretch = std::get<Stretch>(scaling.stretch);
  if (const auto* linear = std::get_if<Linear>(&stretch)) {
    to.put("rope.scaling.type", std::string("linear"));
    to.put_number("rope.scaling.factor", linear->factor);
    if (scaling.original_length > 0) {
      to.put_length("rope.scaling.original_context_length", scaling.original_length);
    }
  } else if (const auto* yarn = std::get_if<Yarn>(&stretch)) {
    write_yarn(to, row, *yarn, scaling.score_factor);
  } else if (const auto* divisors = std::get_if<LongRope>(&stretch); divisors) {
    // Llama 3's divisors from a GGUF file.
    if (scaling.original_length > 0) {
      to.put_length("rope.scaling.original_context_length", scaling.original_length);
    }
    to.put_vector("rope_freqs.weight", divisors->factors);
    if (divisors->gain != 1) to.put("rope.scaling.attn_factor", divisors->gain);
  } else if (const auto* parts = std::get_if<ByParts>(&stretch)) {
    to.put_length("rope.scaling.original_context_length", parts->original_length);
    write_divisors(to, config, stretch);
  } else if (const auto* part = std::get_if<Proportional>(&stretch)) {
    write_proportional(to, row, config, *part);
  } else if (!std::holds_alternative<std::monostate>(stretch)) {
    fail("convert: gguf: " + scaling.type + ": expected none, linear, yarn, llama3 or longrope");
  }
}

// Llama 4's query law, if the architecture's code reads its keys.
void write_query_law(Writer& to, const LlamaCppArchitecture& row, const RopeConfig& config) {
  const QueryScale& scale = config.scaling.query_scale;
  if (scale.law == QueryLaw::kMinistral && scale.strength == 0) return;
  if (scale.law != QueryLaw::kMinistral || !row.temperature_keys) {
    return refuse_query_scale(config.scaling, "gguf");
  }
  to.put_number("attention.temperature_scale", scale.strength);
  if (row.name == "deepseek2" || row.name == "mistral4") {
    return to.put_length("attention.temperature_length", scale.length);
  }
  if (scale.length == trained_length(config)) return;
  fail("convert: gguf: llama_4_scaling_beta: expected the law to count from the original length, " +
       std::to_string(trained_length(config)) + ", as llama.cpp does, but got " +
       std::to_string(scale.length));
}

const LlamaCppArchitecture& row_of(const std::string& architecture) {
  const LlamaCppArchitecture* row = find_architecture(architecture);
  if (row && row->runs) return *row;
  fail("convert: gguf: general.architecture: expected one that " +
       (row ? llama_cpp_version() + " has a model of"
            : "the table of " + llama_cpp_version() + " has") +
       ", but got \"" + architecture + "\"");
}

bool has_window(const RopeConfig& group) {
  return group.window > 0 || group.chunk > 0 || group.layers.find("sliding") != std::string::npos ||
         group.parameters.find("sliding") != std::string::npos;
}

[[noreturn]] void refuse_groups(size_t count, const LlamaCppArchitecture& row) {
  fail(
      "convert: gguf: expected one configuration for all layers, or one for layers with a window "
      "and one for the others where " +
      llama_cpp_version() + " reads both for the architecture " + row.name + ", but got " +
      std::to_string(count));
}

// Writes layers with the window under their own keys.
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
  const double code_base = window.local_base > 0 ? window.local_base : full.base;
  if (!window.own_base && local.base != code_base) {
    fail("convert: gguf: rope.freq_base_swa: expected the base " +
         nlohmann::json(code_base).dump() + " in layers with a window, as llama.cpp's code for " +
         row.name + " reads no other one, but got " + nlohmann::json(local.base).dump());
  }
  if (window.own_base) to.put_number("rope.freq_base_swa", local.base);
  if (local.head_dim != full.head_dim) {
    to.put_length("attention.key_length_swa", local.head_dim);
  }
  if (local.rotary_dim != full.rotary_dim || local.head_dim != full.head_dim) {
    to.put_length("rope.dimension_count_swa", local.rotary_dim);
  }
}

// The configuration of each layer, null if it has no attention; empty if it is not known.
std::vector<const RopeConfig*> by_layer(const std::vector<RopeConfig>& groups, int64_t known) {
  int64_t count = known;
  for (const RopeConfig& group : groups) {
    if (group.layer_numbers.empty() && groups.size() > 1) return {};
    for (const int64_t layer : group.layer_numbers) {
      if (layer >= known) count = std::max(count, layer + 1);
    }
  }
  const bool one = groups.size() == 1 && groups[0].layer_numbers.empty();
  std::vector<const RopeConfig*> layers(static_cast<size_t>(count), one ? &groups[0] : nullptr);
  for (const RopeConfig& group : groups) {
    for (const int64_t layer : group.layer_numbers) layers[static_cast<size_t>(layer)] = &group;
  }
  return layers;
}

template <class Predicate>
GgufArray flags_of(const std::vector<const RopeConfig*>& layers, const Predicate& holds) {
  GgufArray flags{.count = layers.size()};
  for (const RopeConfig* layer : layers) flags.numbers.push_back(layer && holds(*layer) ? 1 : 0);
  return flags;
}

bool is_windowed(const RopeConfig& layer) { return layer.window > 0 || layer.chunk > 0; }

// Writes the layers that have the window or rotate, if the architecture's code reads them.
void write_layers(Writer& to, const LlamaCppArchitecture& row,
                  const std::vector<RopeConfig>& groups, const GgufModelSizes& sizes,
                  std::vector<std::string>& warnings) {
  using Rotates = LlamaCppArchitecture::Rotates;
  const std::vector<const RopeConfig*> layers = by_layer(groups, sizes.layers);
  if (!layers.empty()) to.put_length("block_count", static_cast<int64_t>(layers.size()));
  const int64_t n_swa = n_swa_of(row, groups, warnings);
  if (n_swa > 0) to.put_length("attention.sliding_window", n_swa);
  const bool some = std::ranges::any_of(groups, is_windowed);
  const bool known = !layers.empty() && std::ranges::all_of(groups, [](const RopeConfig& group) {
    return group.bounded_in.empty();
  });
  if (row.window && !row.window->everywhere && some && known) {
    to.put("attention.sliding_window_pattern", flags_of(layers, is_windowed));
  }
  const auto rotates = [](const RopeConfig& layer) { return layer.rotates; };
  if (row.rotates == Rotates::kPattern && !std::ranges::all_of(groups, rotates)) {
    to.put("attention.rope_pattern", flags_of(layers, rotates));
  }
  if (row.rotates != Rotates::kWindowsAndDense) return;
  int64_t dense = sizes.dense_layers;
  for (size_t n = 0; n < layers.size(); ++n) {
    const bool forced = layers[n] && layers[n]->rotates && !is_windowed(*layers[n]);
    if (forced) dense = std::max(dense, static_cast<int64_t>(n) + 1);
  }
  if (dense > 0) to.put_length("leading_dense_block_count", dense);
}

// Writes the factor of scores, if the architecture's code reads a key for it.
void write_scale(Writer& to, const LlamaCppArchitecture& row, const RopeConfig& config,
                 const GgufModelSizes& sizes) {
  const double plain = 1 / std::sqrt(static_cast<double>(config.head_dim));
  const double scale = config.softmax_scale > 0 ? config.softmax_scale : plain;
  if (!row.scale_key.empty()) {
    to.put(row.scale_key, scale);
  } else if (row.attention_scale && scale != plain) {
    to.put("attention.scale", scale);
  } else if (row.layers_scaled_by_width > 0 && row.layers_scaled_by_width == sizes.layers &&
             sizes.width > 0 && sizes.heads > 0) {
    to.put_length("embedding_length", sizes.width);
    to.put_length("attention.head_count", sizes.heads);
  }
}

}  // namespace

std::string gguf_architecture(const std::string& model_type, bool both_sides) {
  if (model_type.empty()) return "llama";
  if (const LlamaCppArchitecture* row = architecture_of(model_type, both_sides)) return row->name;
  fail("convert: gguf: model_type: expected a model that " + llama_cpp_version() +
       " has an architecture for, but got \"" + model_type + "\", for which none is known here");
}

GgufConfig write_gguf_config(const std::vector<RopeConfig>& groups, const std::string& architecture,
                             const GgufModelSizes& sizes, std::vector<std::string>& warnings) {
  const LlamaCppArchitecture& row = row_of(architecture);
  const std::vector<RopeConfig> rotations = distinct_rotations(groups);
  const auto local = std::ranges::find_if(rotations, has_window);
  const auto full = std::ranges::find_if_not(rotations, has_window);
  const bool two = rotations.size() == 2 && local != rotations.end() && full != rotations.end() &&
                   row.window.has_value();
  if (rotations.size() != 1 && !two) refuse_groups(rotations.size(), row);
  const RopeConfig& config = two ? *full : rotations.at(0);
  refuse_dual_chunks(config, "gguf");
  Writer to(architecture);
  write_query_law(to, row, config);
  write_layers(to, row, groups, sizes, warnings);
  write_scale(to, row, config, sizes);
  to.put_length("attention.key_length", config.head_dim);
  to.put_length("rope.dimension_count", config.rotary_dim);
  to.put_number("rope.freq_base", config.base);
  if (const int64_t most = declared_length(config)) to.put_length("context_length", most);
  if (!config.scaling.sections.empty()) {
    write_sections(to, row, config.scaling);
  } else if (row.needs_axes) {
    fail("convert: gguf: mrope_section: expected the pairs of each axis, as " +
         llama_cpp_version() + " runs no file of the architecture " + row.name + " without them");
  }
  write_stretch(to, row, config);
  if (two) write_local(to, row, *full, *local);
  // llama.cpp would use another base for layers with the window.
  if (!two && row.window && row.window->own_base && row.window->local_base > 0) {
    to.put_number("rope.freq_base_swa", config.base);
  }
  to.warn_of_rounding(warnings);
  warn_of_pairs(config, row, warnings);
  warn_of_betas(config, row, warnings);
  return std::move(to.out);
}

}  // namespace sextant
