#include "sextant/rope_config/gguf.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>

#include "sextant/error.h"
#include "sextant/rope_config/hugging_face.h"

namespace sextant {
namespace {

using nlohmann::json;

class Keys {
 public:
  explicit Keys(const Gguf& gguf) : gguf_(gguf), arch_(text("general.architecture").value_or("")) {
    if (arch_.empty()) bad("general.architecture", "the name of an architecture");
  }

  const std::string& arch() const { return arch_; }
  std::string own(const std::string& key) const { return arch_ + "." + key; }

  [[noreturn]] static void bad(const std::string& key, const std::string& expected) {
    fail("gguf: " + key + ": expected " + expected);
  }

  std::optional<std::string> text(const std::string& key) {
    const GgufValue* value = find(key);
    if (!value) return {};
    if (!std::holds_alternative<std::string>(*value)) bad(key, "a text");
    return std::get<std::string>(*value);
  }

  std::optional<double> number(const std::string& key, double low, double high) {
    const GgufValue* value = find(key);
    if (!value) return {};
    double got = NAN;
    if (const auto* real = std::get_if<double>(value)) got = *real;
    if (const auto* whole = std::get_if<uint64_t>(value)) got = static_cast<double>(*whole);
    if (const auto* whole = std::get_if<int64_t>(value)) got = static_cast<double>(*whole);
    if (!(got >= low && got <= high)) {
      bad(key, "a number from " + json(low).dump() + " to " + json(high).dump() + ", but got " +
                   json(got).dump());
    }
    return got;
  }

  int64_t length(const std::string& key) {
    return static_cast<int64_t>(number(key, 0, static_cast<double>(kLongestSequence)).value_or(0));
  }

  std::vector<int64_t> integers(const std::string& key) {
    const GgufValue* value = find(key);
    if (!value) return {};
    const auto* array = std::get_if<GgufArray>(value);
    if (!array || array->numbers.size() != array->count) bad(key, "an array of numbers");
    std::vector<int64_t> result;
    for (const double x : array->numbers) {
      if (!(x >= 0 && x <= 65536 && x == std::floor(x))) bad(key, "whole numbers from 0 to 65536");
      result.push_back(static_cast<int64_t>(x));
    }
    return result;
  }

  void skip(const std::string& key) { seen_.insert(key); }

  // Keys about rotary positions that nobody asked for.
  void finish() const {
    const std::string start = arch_ + ".rope.";
    for (const auto& [key, value] : gguf_.metadata) {
      if (key.starts_with(start) && !seen_.contains(key)) {
        fail("gguf: " + json(key).dump(-1, ' ', true, json::error_handler_t::replace) +
             ": expected no key about rotary positions that sextant does not know, but got one");
      }
    }
  }

 private:
  const GgufValue* find(const std::string& key) {
    seen_.insert(key);
    const auto found = gguf_.metadata.find(key);
    return found == gguf_.metadata.end() ? nullptr : &found->second;
  }

  const Gguf& gguf_;
  std::set<std::string> seen_;
  std::string arch_;
};

int64_t head_dim_of(Keys& keys, const Overrides& overrides) {
  int64_t own = keys.length(keys.own("attention.key_length"));
  // Latent attention: key_length is that of the cache then, and this the heads'.
  if (const int64_t latent = keys.length(keys.own("attention.key_length_mla"))) own = latent;
  if (overrides.head_dim > 0) return overrides.head_dim;
  if (own > 0) return own;
  const int64_t width = keys.length(keys.own("embedding_length"));
  const int64_t heads = keys.length(keys.own("attention.head_count"));
  if (width == 0 || heads == 0 || width % heads != 0) {
    Keys::bad(keys.own("attention.key_length"),
              "a number, or embedding_length and head_count, or --head-dim");
  }
  return width / heads;
}

const std::vector<float>* vector_of(const Gguf& gguf, const char* name, int64_t pairs) {
  if (!gguf.tensors.contains(name)) return nullptr;
  const auto found = gguf.vectors.find(name);
  if (found == gguf.vectors.end()) {
    Keys::bad(name, "a float32 vector within the file's first 64 MiB");
  }
  if (static_cast<int64_t>(found->second.size()) != pairs) {
    Keys::bad(name, "a number for each of " + std::to_string(pairs) + " pairs, but got " +
                        std::to_string(found->second.size()));
  }
  for (const float x : found->second) {
    if (!(x > 0 && std::isfinite(x))) Keys::bad(name, "finite numbers above 0");
  }
  return &found->second;
}

std::vector<double> doubles(const std::vector<float>& x) { return {x.begin(), x.end()}; }

json scaling_of(Keys& keys, double factor, int64_t original) {
  const std::string type =
      keys.text(keys.own("rope.scaling.type")).value_or(factor == 1 ? "none" : "linear");
  json object = {{"rope_type", type == "none" ? "default" : type}};
  const auto attention = keys.number(keys.own("rope.scaling.attn_factor"), 1e-6, 1e6);
  const auto yarn_attention = keys.number(keys.own("rope.scaling.yarn_attn_factor"), 1e-6, 1e6);
  const auto fast = keys.number(keys.own("rope.scaling.yarn_beta_fast"), 1e-6, 1e9);
  const auto slow = keys.number(keys.own("rope.scaling.yarn_beta_slow"), 1e-6, 1e9);
  const auto ext = keys.number(keys.own("rope.scaling.yarn_ext_factor"), -1, 1e6);
  const auto log = keys.number(keys.own("rope.scaling.yarn_log_multiplier"), 0, 1e6);
  if (type == "linear") object["factor"] = factor;
  if (type == "yarn") {
    if (ext && *ext != 1 && *ext != -1) {
      Keys::bad(keys.own("rope.scaling.yarn_ext_factor"), "1, the whole ramp");
    }
    object["factor"] = factor;
    if (original > 0) object["original_max_position_embeddings"] = original;
    if (fast) object["beta_fast"] = *fast;
    if (slow) object["beta_slow"] = *slow;
    const double all = attention.value_or(1) * yarn_attention.value_or(1);
    if (log) {  // DeepSeek: 0.1 mscale_all_dim; the turned channels get no gain
      object["scale_scores"] = true;
      object["mscale"] = object["mscale_all_dim"] = *log * 10;
    } else if (all != 1) {
      object["attention_factor"] = all * yarn_temperature(factor);
    }
  }
  return object;
}

// Pairs of each axis; empty if all follow one. The file has four numbers, 0 where there is no such axis.
std::vector<int64_t> sections_of(Keys& keys, int64_t pairs) {
  const std::string key = keys.own("rope.dimension_sections");
  std::vector<int64_t> sections = keys.integers(key);
  while (!sections.empty() && sections.back() == 0) sections.pop_back();
  if (sections.size() < 2) return {};
  const auto sum = std::accumulate(sections.begin(), sections.end(), int64_t{0});
  if (sum != pairs || std::ranges::find(sections, 0) != sections.end()) {
    Keys::bad(key, "pairs of each axis, " + std::to_string(pairs) + " in all, but got " +
                       json(sections).dump());
  }
  return sections;
}

// Architectures whose layers with a window turn by 10000 in llama.cpp's code, if the file says no base.
bool has_local_base(const std::string& arch) {
  return arch == "gemma3" || arch == "gemma3n" || arch == "gemma-embedding";
}

// The settings of layers without a window and of those with one, where they differ.
std::vector<RopeConfig> with_local(Keys& keys, RopeConfig setting, const Overrides& overrides) {
  auto base = keys.number(keys.own("rope.freq_base_swa"), 1e-3, 1e30);
  if (overrides.local_base > 0) base = overrides.local_base;
  const int64_t width = keys.length(keys.own("attention.key_length_swa"));
  const int64_t turning = keys.length(keys.own("rope.dimension_count_swa"));
  const int64_t window = keys.length(keys.own("attention.sliding_window"));
  if (!base && has_local_base(keys.arch()) && window > 0) {
    Keys::bad(keys.own("rope.freq_base_swa"),
              "the base of layers with a window, but it is missing; llama.cpp takes 10000, as "
              "--local-base 10000 would");
  }
  const bool scaled = setting.scaling.type != "default";
  const bool unscaled_windows = keys.arch() == "olmo2" && window > 0 && scaled;  // OLMo 3
  if (!base && width == 0 && turning == 0 && !unscaled_windows) {
    setting.window = window;
    if (window > 0) setting.bounded_in = "the layers that its architecture says";
    return {setting};
  }
  RopeConfig local = setting;
  setting.layers = "full_attention";
  local.layers = "sliding_attention";
  local.base = base.value_or(setting.base);
  local.scaling = {};
  local.window = window;
  if (width > 0) local.head_dim = local.rotary_dim = width;
  if (turning > 0) local.rotary_dim = turning;
  if (local.rotary_dim % 2 != 0 || local.rotary_dim > local.head_dim) {
    Keys::bad(keys.own("rope.dimension_count_swa"),
              "an even number of at most " + std::to_string(local.head_dim) + ", but got " +
                  std::to_string(local.rotary_dim));
  }
  return {setting, local};
}

}  // namespace

std::vector<RopeConfig> read_gguf_config(const Gguf& gguf, const Overrides& overrides) {
  Keys keys(gguf);
  RopeConfig setting{.model_type = keys.arch(), .head_dim = head_dim_of(keys, overrides)};
  const int64_t turning = keys.length(keys.own("rope.dimension_count"));
  setting.rotary_dim = turning > 0 ? turning : setting.head_dim;
  if (setting.rotary_dim % 2 != 0 || setting.rotary_dim < 2) {
    Keys::bad(keys.own("rope.dimension_count"),
              "an even number of at least 2, but got " + std::to_string(setting.rotary_dim));
  }
  if (setting.rotary_dim > setting.head_dim) {
    Keys::bad(keys.own("rope.dimension_count"), "at most the " + std::to_string(setting.head_dim) +
                                                    " channels of a head, but got " +
                                                    std::to_string(setting.rotary_dim));
  }
  setting.latent = keys.length(keys.own("attention.kv_lora_rank")) > 0;
  auto base = keys.number(keys.own("rope.freq_base"), 1e-3, 1e30);
  if (overrides.base > 0) base = overrides.base;
  if (!base) {
    Keys::bad(keys.own("rope.freq_base"),
              "the base of the frequencies, but it is missing; llama.cpp takes 10000, as --base "
              "10000 would");
  }
  setting.base = *base;
  setting.max_length = keys.length(keys.own("context_length"));
  double factor = keys.number(keys.own("rope.scaling.factor"), 0, 1e9).value_or(1);
  if (const auto old = keys.number(keys.own("rope.scale_linear"), 0, 1e9)) factor = *old;
  if (factor == 0) factor = 1;  // llama.cpp's word for none
  const int64_t original = keys.length(keys.own("rope.scaling.original_context_length"));
  keys.skip(keys.own("rope.scaling.finetuned"));
  const int64_t pairs = setting.rotary_dim / 2;
  const std::vector<int64_t> sections = sections_of(keys, pairs);
  const auto* divisors = vector_of(gguf, "rope_freqs.weight", pairs);
  const auto* short_factors = vector_of(gguf, "rope_factors_short.weight", pairs);
  const auto* long_factors = vector_of(gguf, "rope_factors_long.weight", pairs);
  json object = scaling_of(keys, factor, original);
  const auto attention = keys.number(keys.own("rope.scaling.attn_factor"), 1e-6, 1e6);
  if (short_factors && long_factors) {
    object = {{"rope_type", "longrope"},
              {"short_factor", doubles(*short_factors)},
              {"long_factor", doubles(*long_factors)}};
    if (original > 0) object["original_max_position_embeddings"] = original;
    if (attention) object["attention_factor"] = *attention;
  }
  setting.scaling = read_scaling(object,
                                 {.base = setting.base,
                                  .pairs = pairs,
                                  .max_length = setting.max_length,
                                  .original_length = 0},
                                 "gguf: " + keys.own("rope.scaling"));
  if (divisors) {
    setting.scaling.type = "llama3";
    setting.scaling.stretch = LongRope{.factors = doubles(*divisors)};
    setting.scaling.original_length = original;
    setting.scaling.warnings.push_back(
        "rope_freqs.weight holds Llama 3's divisors in float32; what they were made from is not in "
        "the file");
    if (original == 0) {
      setting.scaling.warnings.back() +=
          ", nor the length that was trained on first: context_length is taken for it";
    }
  }
  setting.scaling.sections = sections;
  setting.scaling.interleaved_sections = !sections.empty() && keys.arch().starts_with("qwen3");
  std::vector<RopeConfig> settings = with_local(keys, setting, overrides);
  keys.finish();
  return settings;
}

}  // namespace sextant
