// Layers with and without a window become groups, each with a configuration of its own, by the keys
// of the file and the facts of llama.cpp's architecture.
#include "sextant/rope_config/gguf_parts.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace sextant {
namespace {

using nlohmann::json;
using Rotates = LlamaCppArchitecture::Rotates;

// The assumed number of layers if the file does not give it.
constexpr int64_t kAssumedLayers = 48;

struct Layers {
  int64_t count = 0;   // 0: not known
  int64_t window = 0;  // as llama.cpp's n_swa; 0: none
  std::string note;    // the file's key has another value, or no effect
  bool where_known = true;
  std::vector<bool> windowed, rotate;  // one per layer
};

bool rotates_at(GgufKeys& keys, Rotates rotates, bool window, bool windowed, int64_t layer,
                const std::vector<int64_t>& pattern) {
  switch (rotates) {
    case Rotates::kAll:
      return true;
    case Rotates::kAllButEvery4th:
      return layer % 4 != 3;
    case Rotates::kAllButEvery4thFrom0:
      return !window || layer % 4 != 0;
    case Rotates::kWindows:
      return windowed;
    case Rotates::kWindowsOrAll:
      return !window || windowed;
    case Rotates::kWindowsAndDense:
      return windowed || layer < keys.length(keys.own("leading_dense_block_count"));
    case Rotates::kFinetuned:
      return keys.flag(keys.own("rope.scaling.finetuned")).value_or(true);
    case Rotates::kPattern:
      return static_cast<size_t>(layer) >= pattern.size() ||
             pattern[static_cast<size_t>(layer)] != 0;
  }
  return true;
}

void read_window(GgufKeys& keys, const LlamaCppArchitecture* row, Layers& to) {
  const std::string key = keys.own("attention.sliding_window");
  const int64_t own = keys.length(key), count = keys.length(keys.own("block_count"));
  const auto* code = row && row->window ? &*row->window : nullptr;
  const bool none =
      row && (!code || (code->if_layers > 0 && count > 0 && count != code->if_layers));
  if (!none) to.window = keys.has(key) || !code ? own : code->size;
  if (code && code->fixed > 0 && to.window > 0) to.window = code->fixed;
  if (own == 0 || to.window == own) return;
  to.note = key + " is " + std::to_string(own) + " in the file, and " + llama_cpp_version() + ", " +
            row->source + ", has " + (none ? std::string("no window") : std::to_string(to.window)) +
            " there";
}

std::vector<bool> windowed_of(GgufKeys& keys, const LlamaCppArchitecture* row, Layers& layers) {
  const auto count = static_cast<size_t>(layers.count > 0 ? layers.count : kAssumedLayers);
  const std::vector<int64_t> own = keys.integers(keys.own("attention.sliding_window_pattern"));
  std::vector<bool> windowed(count, false);
  if (layers.window == 0) return windowed;
  if (row && row->window && row->window->everywhere) return std::vector<bool>(count, true);
  if (own.size() > 1) {
    for (size_t n = 0; n < count && n < own.size(); ++n) windowed[n] = own[n] != 0;
    return windowed;
  }
  const int64_t pattern = own.size() == 1 ? own[0] : row && row->window ? row->window->pattern : 0;
  const bool full_first = row && row->window && row->window->full_first;
  layers.where_known = pattern > 0;
  for (size_t n = 0; n < count; ++n) {
    const auto place = static_cast<int64_t>(n) % std::max<int64_t>(pattern, 1);
    // If the pattern is not known, every other layer stands for both kinds.
    windowed[n] = pattern == 0 ? n % 2 == 0 : full_first ? place != 0 : place != pattern - 1;
  }
  return windowed;
}

Layers layers_of(GgufKeys& keys, const LlamaCppArchitecture* row) {
  Layers layers{.count = std::min<int64_t>(keys.length(keys.own("block_count")), 65536)};
  read_window(keys, row, layers);
  layers.windowed = windowed_of(keys, row, layers);
  const bool always = row && row->window && row->window->chunks && layers.window == 0;
  const Rotates rotates = row && !always ? row->rotates : Rotates::kAll;
  const std::vector<int64_t> pattern = keys.integers(keys.own("attention.rope_pattern"));
  for (size_t n = 0; n < layers.windowed.size(); ++n) {
    layers.rotate.push_back(rotates_at(keys, rotates, layers.window > 0, layers.windowed[n],
                                       static_cast<int64_t>(n), pattern));
  }
  return layers;
}

// A gain alone is stored with a divisor of 1 for each pair.
void fit_gain(RopeConfig& local) {
  auto* stretch = std::get_if<Stretch>(&local.scaling.stretch);
  auto* divisors = stretch ? std::get_if<LongRope>(stretch) : nullptr;
  if (!divisors || std::ranges::any_of(divisors->factors, [](double x) { return x != 1; })) return;
  divisors->factors.assign(static_cast<size_t>(local.rotary_dim / 2), 1);
}

// The configuration of layers with the window.
RopeConfig local_of(GgufKeys& keys, const LlamaCppArchitecture* row, const RopeConfig& config,
                    const RopeScaling& unscaled, const Overrides& overrides, const Layers& layers) {
  RopeConfig local = config;
  const LlamaCppArchitecture::Window as_most{.own_base = true};
  const auto& code = row && row->window ? *row->window : as_most;
  auto base = keys.number(keys.own("rope.freq_base_swa"), 1e-3, 1e30);
  const int64_t width = keys.length(keys.own("attention.key_length_swa"));
  const int64_t rotated = keys.length(keys.own("rope.dimension_count_swa"));
  keys.skip(keys.own("attention.key_length_mla_swa"));
  if (layers.window == 0 && !base && width == 0 && rotated == 0) return local;
  if (base && !code.own_base) {
    local.scaling.warnings.push_back("rope.freq_base_swa is in the file, but " +
                                     llama_cpp_version() + " does not read it for " + keys.arch());
    base.reset();
  }
  if (overrides.local_base > 0) base = overrides.local_base;
  if (!base && code.local_base > 0) {
    base = code.local_base;
    local.notes.push_back("the base " + json(code.local_base).dump() +
                          " is from the code: " + llama_cpp_version() + ", " + row->source);
  }
  local.base = base.value_or(config.base);
  const bool another = base.has_value() || width > 0 || rotated > 0;
  if (!(row ? code.scaled && !row->divisors_in_full_only : !another)) {
    const QueryScale law = local.scaling.query_scale;
    local.scaling = unscaled;
    local.scaling.sections = config.scaling.sections;
    local.scaling.interleaved_sections = config.scaling.interleaved_sections;
    local.scaling.query_scale = law;
  }
  if (width > 0) local.head_dim = local.rotary_dim = width;
  if (rotated > 0) local.rotary_dim = rotated;
  if (local.rotary_dim % 2 != 0 || local.rotary_dim > local.head_dim ||
      local.head_dim > kWidestHead) {
    GgufKeys::bad(keys.own("rope.dimension_count_swa"),
                  "an even number of at most " + std::to_string(local.head_dim) + ", but got " +
                      std::to_string(local.rotary_dim));
  }
  fit_gain(local);
  return local;
}

void set_window(RopeConfig& config, int64_t window, const LlamaCppArchitecture* row) {
  const bool chunks = row && row->window && row->window->chunks;
  (chunks ? config.chunk : config.window) = window;
  if (!row || !row->window || !row->window->both_sides) return;
  config.window = window / 2 + 1;
  config.both_sides = true;
  config.notes.push_back("half of attention.sliding_window " + std::to_string(window) +
                         " lies to each side of a query: " + llama_cpp_version() + ", " +
                         row->source);
}

RopeConfig still(RopeConfig config, const LlamaCppArchitecture& row) {
  config.rotates = false;
  config.instead = "none";
  config.rotary_dim = 0;
  config.first_channel = 0;
  RopeScaling plain;
  plain.query_scale = config.scaling.query_scale;
  if (row.law_strength > 0) {
    plain.query_scale = {QueryLaw::kLlama4, row.law_length, row.law_strength};
  }
  config.scaling = plain;
  config.notes.push_back("these layers do not rotate (NoPE), from the code: " +
                         llama_cpp_version() + ", " + row.source);
  return config;
}

struct Group {
  bool windowed = false, rotates = true;
  std::vector<int64_t> numbers = {};
};

std::vector<Group> groups_of(const Layers& layers, bool by_window) {
  std::vector<Group> groups = {{false, true}, {true, true}, {false, false}, {true, false}};
  for (size_t n = 0; n < layers.windowed.size(); ++n) {
    const bool windowed = by_window && layers.windowed[n];
    const size_t group = (layers.rotate[n] ? 0U : 2U) + (windowed ? 1U : 0U);
    groups[group].numbers.push_back(static_cast<int64_t>(n));
  }
  std::erase_if(groups, [](const Group& group) { return group.numbers.empty(); });
  return groups;
}

void name(RopeConfig& config, const Group& group, const std::vector<Group>& all,
          const Layers& layers) {
  if (all.size() == 1) return;
  const bool by_window = std::ranges::any_of(
      all, [&](const Group& other) { return other.windowed != all[0].windowed; });
  const std::string kind = group.windowed ? "sliding_attention" : "full_attention";
  config.layers = by_window ? kind : group.rotates ? "rotating" : "without_positions";
  if (by_window && all.size() > 2 && !group.rotates) config.layers += "_without_positions";
  if (layers.count > 0 && layers.where_known) config.layer_numbers = group.numbers;
}

}  // namespace

std::vector<RopeConfig> gguf_layers(GgufKeys& keys, const LlamaCppArchitecture* row,
                                    RopeConfig config, const RopeScaling& unscaled,
                                    const Overrides& overrides) {
  keys.skip(keys.own("rope.scaling.finetuned"));
  const Layers layers = layers_of(keys, row);
  if (!layers.note.empty()) config.notes.push_back(layers.note);
  const RopeConfig local = local_of(keys, row, config, unscaled, overrides, layers);
  // Without a window, the keys for windowed layers still show that there are two kinds.
  const bool differ = !rotate_alike(config, local);
  const bool some_still = std::ranges::find(layers.rotate, false) != layers.rotate.end();
  if (differ && layers.window == 0) {
    std::vector<RopeConfig> both = {config, local};
    both[0].layers = "full_attention";
    both[1].layers = "sliding_attention";
    return both;
  }
  const std::vector<Group> groups = groups_of(layers, differ || (some_still && layers.window > 0));
  std::vector<RopeConfig> configs;
  for (const Group& group : groups) {
    RopeConfig own = group.windowed ? local : config;
    if (group.windowed) set_window(own, layers.window, row);
    if (!group.rotates) own = still(own, *row);
    name(own, group, groups, layers);
    configs.push_back(own);
  }
  const auto with = std::ranges::count(layers.windowed, true);
  if (configs.size() == 1 && !groups[0].windowed && with > 0) {
    const auto all = static_cast<int64_t>(layers.windowed.size());
    configs[0].notes = local.notes;
    set_window(configs[0], layers.window, row);
    if (!layers.where_known) {
      configs[0].bounded_in = "the layers that its architecture says";
    } else if (layers.count == 0) {
      configs[0].bounded_in = "most layers";
    } else if (with < all) {
      configs[0].bounded_in = std::to_string(with) + " of " + std::to_string(all) + " layers";
    }
  }
  return configs;
}

}  // namespace sextant
