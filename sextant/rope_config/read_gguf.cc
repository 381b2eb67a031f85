// Channels, base, scaling, scale and layers are read in turn; an architecture's own rules come from
// the table of llama.cpp's.
#include "sextant/rope_config/gguf.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sextant/rope_config/families/family.h"
#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/rope_config/gguf_keys.h"
#include "sextant/rope_config/gguf_parts.h"

namespace sextant {
namespace {

using nlohmann::json;

int64_t head_dim_of(GgufKeys& keys, const Overrides& overrides) {
  int64_t own = keys.length(keys.own("attention.key_length"));
  // In latent attention key_length is that of the cache, and this key is that of the heads.
  if (const int64_t latent = keys.length(keys.own("attention.key_length_mla"))) own = latent;
  if (overrides.head_dim > 0) return overrides.head_dim;
  if (own > 0) return own;
  const int64_t width = keys.length(keys.own("embedding_length"));
  const int64_t heads = keys.length(keys.own("attention.head_count"));
  if (width == 0 || heads == 0 || width % heads != 0) {
    GgufKeys::bad(keys.own("attention.key_length"),
                  "a number, or embedding_length and head_count, or --head-dim");
  }
  return width / heads;
}

// The number of pairs of each axis; empty if all pairs follow one axis. The file has four numbers,
// 0 for missing axes.
std::vector<int64_t> sections_of(GgufKeys& keys, int64_t pairs) {
  const std::string key = keys.own("rope.dimension_sections");
  std::vector<int64_t> sections = keys.integers(key);
  while (!sections.empty() && sections.back() == 0) sections.pop_back();
  if (sections.size() < 2) return {};
  const auto sum = std::accumulate(sections.begin(), sections.end(), int64_t{0});
  if (sum != pairs || std::ranges::find(sections, 0) != sections.end()) {
    GgufKeys::bad(key, "pairs of each axis, " + std::to_string(pairs) + " in all, but got " +
                           json(sections).dump());
  }
  return sections;
}

void read_channels(GgufKeys& keys, RopeConfig& config) {
  if (config.head_dim > kWidestHead) {
    GgufKeys::bad(keys.own("attention.key_length"), "at most " + std::to_string(kWidestHead) +
                                                        " channels in a head, but got " +
                                                        std::to_string(config.head_dim));
  }
  const std::string key = keys.own("rope.dimension_count");
  const int64_t rotated = keys.length(key);
  config.rotary_dim = rotated > 0 ? rotated : config.head_dim;
  if (config.rotary_dim % 2 != 0 || config.rotary_dim < 2) {
    GgufKeys::bad(key,
                  "an even number of at least 2, but got " + std::to_string(config.rotary_dim));
  }
  if (config.rotary_dim > config.head_dim) {
    GgufKeys::bad(key, "at most the " + std::to_string(config.head_dim) +
                           " channels of a head, but got " + std::to_string(config.rotary_dim));
  }
  config.latent = keys.length(keys.own("attention.kv_lora_rank")) > 0;
  if (config.latent) config.first_channel = config.head_dim - config.rotary_dim;
}

void read_base(GgufKeys& keys, const Overrides& overrides, RopeConfig& config) {
  constexpr double kOfCode = 10000;
  const auto base = keys.number(keys.own("rope.freq_base"), 1e-3, 1e30);
  config.base = overrides.base_instead(base.has_value()) ? overrides.base : base.value_or(kOfCode);
  if (base || overrides.base > 0) return;
  config.notes.push_back("rope.freq_base is missing, and llama.cpp takes 10000 then: " +
                         llama_cpp_version() + ", src/llama-model.cpp");
}

// HunYuan: another base, at every length.
void take_alpha(GgufKeys& keys, RopeConfig& config) {
  const auto alpha = keys.number(keys.own("rope.scaling.alpha"), 0, 1e12);
  if (!alpha || *alpha == 0 || config.rotary_dim <= 2) return;
  const auto dim = static_cast<double>(config.rotary_dim);
  config.base *= std::pow(*alpha, dim / (dim - 2));
  config.scaling.warnings.push_back("rope.scaling.alpha makes rope.freq_base the base " +
                                    json(config.base).dump() + ", at every length");
}

double softmax_scale_of(GgufKeys& keys, const LlamaCppArchitecture* row, RopeConfig& config) {
  const auto own = keys.number(keys.own("attention.scale"), 0, 1e6);
  if (own && *own > 0) {
    if (!row || row->attention_scale) return *own;
    config.scaling.warnings.push_back("attention.scale is in the file, but " + llama_cpp_version() +
                                      " does not read it for " + keys.arch());
  }
  if (!row) return 0;
  if (!row->scale_key.empty()) {
    return keys.number(keys.own(row->scale_key), 1e-9, 1e6).value_or(row->softmax_scale);
  }
  const int64_t width = keys.length(keys.own("embedding_length"));
  const int64_t heads = keys.length(keys.own("attention.head_count"));
  const int64_t layers = keys.length(keys.own("block_count"));
  if (row->layers_scaled_by_width > 0 && row->layers_scaled_by_width == layers && width >= heads &&
      heads > 0) {
    const int64_t head = width / heads;
    return 1 / std::sqrt(static_cast<double>(head));
  }
  return row->softmax_scale;
}

// Whether transformers' table has trained_stretched for models of the architecture.
bool is_trained_stretched(const LlamaCppArchitecture* row, const RopeScaling& scaling) {
  const auto* fixed = std::get_if<Stretch>(&scaling.stretch);
  if (row == nullptr || fixed == nullptr || !std::holds_alternative<Linear>(*fixed)) return false;
  return std::ranges::any_of(row->types, [](const std::string& type) {
    const Family* family = find_family(type);
    return family != nullptr && family->trained_stretched;
  });
}

// The method of the file's positions; empty if it rotates. Reasons are added to `config`.
std::string method_of_file(GgufKeys& keys, const LlamaCppArchitecture& row, RopeConfig& config) {
  const int64_t layers = keys.length(keys.own("block_count"));
  if (!row.by_layers.empty() && layers > 0) {
    const auto found = row.by_layers.find(layers);
    const std::string& method = found != row.by_layers.end() ? found->second : row.by_layers.at(0);
    config.notes.push_back("positions are by the number of layers: with " + std::to_string(layers) +
                           (method == "rotates" ? " queries and keys rotate"
                            : method == "none"  ? " there are none"
                                                : " they are " + method));
    return method == "rotates" ? "" : method;
  }
  const bool learned = keys.gguf().tensors.contains(row.learned_tensor);
  if (learned) {
    config.notes.push_back("learned vectors (" + row.learned_tensor + ") are added to the input");
  }
  if (row.instead_key.empty()) return row.instead;
  const std::string key = keys.own(row.instead_key);
  const double bias = keys.number(key, 0, 1e6).value_or(0);
  const std::string said = key + (keys.has(key) ? " is " + json(bias).dump() : " is missing");
  if (bias > 0 || learned) {
    config.notes.push_back(said);
    return bias > 0 ? row.instead : "learned";
  }
  config.scaling.warnings.push_back(said +
                                    ": llama.cpp then adds nothing to scores, and without a "
                                    "tensor of learned vectors this model has no positions");
  return "none";
}

// For a file that rotates nothing.
RopeConfig without_rotation(GgufKeys& keys, const LlamaCppArchitecture& row,
                            const std::string& instead, RopeConfig config) {
  config.rotates = false;
  config.instead = instead;
  config.head_dim = keys.length(keys.own("attention.key_length"));
  config.max_length = keys.length(keys.own("context_length"));
  config.notes.push_back("from the code: " + llama_cpp_version() + ", " + row.source);
  return config;
}

// DeepSeek V4: layers with compressed keys rotate by their own base, only they are scaled, and
// YaRN's gain is removed.
std::vector<RopeConfig> compressed_layers(GgufKeys& keys, const RopeConfig& config, double base) {
  RopeConfig compressed = config, others = config;
  compressed.layers = "compress";
  compressed.window = 0;
  compressed.bounded_in.clear();
  compressed.base = base;
  if (auto* stretch = std::get_if<Stretch>(&compressed.scaling.stretch)) {
    if (auto* yarn = std::get_if<Yarn>(stretch)) {
      yarn->base = base;
      yarn->attention_factor = 1;
    }
  }
  others.layers = "main";
  others.scaling = {};
  if (others.window > 0) others.bounded_in.clear();
  const std::vector<int64_t> ratios = keys.integers(keys.own("attention.compress_ratios"));
  for (size_t n = 0; n < ratios.size(); ++n) {
    (ratios[n] != 0 ? compressed : others).layer_numbers.push_back(static_cast<int64_t>(n));
  }
  return {compressed, others};
}

}  // namespace

std::vector<RopeConfig> read_gguf_config(const Gguf& gguf, const Overrides& overrides) {
  GgufKeys keys(gguf);
  const LlamaCppArchitecture* named = find_architecture(keys.arch());
  const LlamaCppArchitecture* row = named && named->runs ? named : nullptr;
  refuse_other_programs(keys, overrides.base);
  RopeConfig config{.model_type = keys.arch()};
  const std::string instead = row ? method_of_file(keys, *row, config) : "";
  if (!instead.empty()) return {without_rotation(keys, *row, instead, std::move(config))};
  config.head_dim = head_dim_of(keys, overrides);
  if (row) config.pairing = row->pairing;
  read_channels(keys, config);
  read_base(keys, overrides, config);
  config.max_length = keys.length(keys.own("context_length"));
  const RopeScaling unscaled = read_gguf_scaling(keys, row, config);
  take_alpha(keys, config);
  config.trained_stretched = is_trained_stretched(row, config.scaling);
  config.scaling.sections = sections_of(keys, config.rotary_dim / 2);
  if (row && row->axes.empty() && !config.scaling.sections.empty()) {
    config.scaling.sections.clear();
    config.scaling.warnings.push_back("rope.dimension_sections is in the file, but " +
                                      llama_cpp_version() + " rotates all pairs of " + keys.arch() +
                                      " by one position");
  }
  config.scaling.interleaved_sections =
      !config.scaling.sections.empty() && row && row->axes == "interleaved";
  if (row && row->needs_axes && config.scaling.sections.empty()) {
    config.scaling.warnings.push_back("rope.dimension_sections is missing, and " +
                                      llama_cpp_version() + " runs no file of " + keys.arch() +
                                      " without it");
  }
  // M-RoPE's pairs are half-split even if the architecture's other pairs are not.
  if (row && !config.scaling.sections.empty()) config.pairing = Pairing::kHalfSplit;
  config.softmax_scale = softmax_scale_of(keys, row, config);
  if (row && row->scale_in_weights) {
    config.notes.push_back(
        "the converter puts the model's factor of the scores besides the softmax scale into the "
        "weights of the queries' norm: " +
        llama_cpp_version() + ", " + row->source);
  }
  if (!row) {
    config.scaling.warnings.push_back(
        (named ? llama_cpp_version() + " has no model of the architecture " + keys.arch() +
                     " and does not load the file"
               : "not audited: " + keys.arch() + ", an architecture that the table of " +
                     llama_cpp_version() + " does not have") +
        "; its keys are taken as most architectures mean them");
  }
  std::vector<RopeConfig> configs = gguf_layers(keys, row, config, unscaled, overrides);
  if (const auto base = keys.number(keys.own("attention.compress_rope_freq_base"), 1e-3, 1e30)) {
    configs = compressed_layers(keys, configs.at(0), *base);
  }
  keys.finish();
  return configs;
}

}  // namespace sextant
