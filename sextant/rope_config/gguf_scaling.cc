#include "sextant/rope_config/gguf_scaling.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/error.h"
#include "sextant/rope_config/engines/engine_facts.h"

namespace sextant {
namespace {

using nlohmann::json;

// A divisor from here on stands for a pair that does not rotate: converters write 1e30.
constexpr double kStill = 1e20;

const std::vector<float>* vector_of(const Gguf& gguf, const char* name, int64_t pairs) {
  if (!gguf.tensors.contains(name)) return nullptr;
  const auto found = gguf.vectors.find(name);
  if (found == gguf.vectors.end()) {
    GgufKeys::bad(name, "a float32 vector within the file's first 64 MiB");
  }
  if (static_cast<int64_t>(found->second.size()) != pairs) {
    GgufKeys::bad(name, "a number for each of " + std::to_string(pairs) + " pairs, but got " +
                            std::to_string(found->second.size()));
  }
  for (const float x : found->second) {
    if (!(x > 0)) GgufKeys::bad(name, "numbers above 0");
  }
  return &found->second;
}

std::vector<double> doubles(const std::vector<float>& x) {
  std::vector<double> all;
  for (const float one : x) all.push_back(std::min(static_cast<double>(one), 1e30));
  return all;
}

// mscale and mscale_all_dim, as the architecture's code makes them of the key.
void take_log_multiplier(double log, const LlamaCppArchitecture* row, double attention,
                         double factor, json& object, std::vector<std::string>& warnings) {
  if (!row || row->log_unit == 0) {
    warnings.push_back(
        "rope.scaling.yarn_log_multiplier means different things in different architectures, and " +
        (row ? "llama.cpp's code of this one does not read it"
             : std::string("what it means in this one is not known")) +
        ": it is left out");
    return;
  }
  const double all = log / row->log_unit;
  const double own = row->mscale_is_all_dim ? all : 1;
  object["scale_scores"] = row->scales_scores;
  if (attention == 1) {
    object["mscale"] = own;
    object["mscale_all_dim"] = all;
  } else {
    object["attention_factor"] =
        attention * yarn_temperature(factor, own) / yarn_temperature(factor, all);
    if (row->scales_scores) object["mscale_all_dim"] = all;
  }
}

struct YarnNumbers {
  double factor = 1, attention = 1;
  int64_t original = 0;
};

json yarn_of(GgufKeys& keys, const LlamaCppArchitecture* row, const YarnNumbers& n,
             std::vector<std::string>& warnings) {
  json object = {{"rope_type", "yarn"}, {"factor", n.factor}};
  const auto ext = keys.number(keys.own("rope.scaling.yarn_ext_factor"), -1, 1e6);
  if (ext && *ext != 1 && *ext != -1) {
    GgufKeys::bad(keys.own("rope.scaling.yarn_ext_factor"), "1, the whole ramp");
  }
  if (n.original > 0) object["original_max_position_embeddings"] = n.original;
  const auto fast = keys.number(keys.own("rope.scaling.yarn_beta_fast"), 1e-6, 1e9);
  const auto slow = keys.number(keys.own("rope.scaling.yarn_beta_slow"), 1e-6, 1e9);
  if (fast) object["beta_fast"] = *fast;
  if (slow) object["beta_slow"] = *slow;
  if (row && !row->betas && (fast.value_or(32) != 32 || slow.value_or(1) != 1)) {
    warnings.push_back(engine_fact("llama.cpp.betas"));
  }
  const auto log = keys.number(keys.own("rope.scaling.yarn_log_multiplier"), 0, 1e6);
  if (log && *log != 0) {
    take_log_multiplier(*log, row, n.attention, n.factor, object, warnings);
  } else if (n.attention != 1) {
    object["attention_factor"] = n.attention * yarn_temperature(n.factor);
  }
  return object;
}

json scaling_of(GgufKeys& keys, const LlamaCppArchitecture* row, const YarnNumbers& n,
                std::vector<std::string>& warnings) {
  const std::string type =
      keys.text(keys.own("rope.scaling.type")).value_or(n.factor == 1 ? "none" : "linear");
  const auto unread = keys.number(keys.own("rope.scaling.yarn_attn_factor"), 1e-6, 1e6);
  if (unread && *unread != 1) warnings.push_back(engine_fact("llama.cpp.yarn_attn_factor"));
  if (type == "yarn") return yarn_of(keys, row, n, warnings);
  for (const char* name :
       {"yarn_beta_fast", "yarn_beta_slow", "yarn_ext_factor", "yarn_log_multiplier"}) {
    keys.skip(keys.own(std::string("rope.scaling.") + name));
  }
  json object = {{"rope_type", type == "none" ? "default" : type}};
  if (type == "linear") object["factor"] = n.factor;
  return object;
}

// Llama 3's divisors grow from 1 to the factor, which the slowest pairs share.
bool look_like_llama3(const std::vector<double>& divisors) {
  return divisors.size() >= 2 && divisors.front() == 1 && divisors.back() > 1 &&
         divisors.back() < kStill && divisors.back() == divisors[divisors.size() - 2] &&
         std::ranges::is_sorted(divisors);
}

// How many pairs rotate unchanged before those that do not rotate; 0: the divisors are of
// another kind.
size_t pairs_of_p_rope(const std::vector<double>& divisors) {
  const auto plain = std::ranges::find_if(divisors, [](double x) { return x != 1; });
  const auto still = [](double x) { return x >= kStill; };
  if (plain == divisors.end() || !std::all_of(plain, divisors.end(), still)) return 0;
  return static_cast<size_t>(plain - divisors.begin());
}

void take_divisors(const std::vector<double>& divisors, int64_t original, RopeScaling& to) {
  to.original_length = original;
  if (const size_t plain = pairs_of_p_rope(divisors); plain > 0) {
    to.type = "proportional";
    to.stretch = Stretch{
        Proportional{.part = static_cast<double>(plain) / static_cast<double>(divisors.size())}};
    return;
  }
  const bool llama3 = look_like_llama3(divisors);
  to.type = llama3 ? "llama3" : "divisors by pair";
  to.stretch = Stretch{LongRope{.factors = divisors}};
  std::string warning =
      llama3
          ? "rope_freqs.weight holds divisors like Llama 3's in float32; what they were made from "
            "is not in the file"
          : "rope_freqs.weight holds a divisor for each pair, in float32; their method is not in "
            "the file";
  if (original == 0) {
    warning += ", nor the length that was trained on first: context_length is taken for it";
  }
  to.warnings.push_back(warning);
}

// Llama 4's law for queries under Mistral's keys.
void read_temperature(GgufKeys& keys, const LlamaCppArchitecture* row, int64_t original,
                      RopeConfig& setting) {
  const auto scale = keys.number(keys.own("attention.temperature_scale"), 0, 1e6);
  const int64_t length = keys.length(keys.own("attention.temperature_length"));
  if (!scale || *scale == 0) return;
  if (row && !row->temperature_keys) {
    setting.scaling.warnings.push_back("attention.temperature_scale is in the file, but " +
                                       llama_cpp_version() + " does not read it for " +
                                       keys.arch());
    return;
  }
  const int64_t known = length > 0 ? length : original > 0 ? original : setting.max_length;
  if (known == 0) {
    GgufKeys::bad(keys.own("attention.temperature_length"),
                  "a length, or rope.scaling.original_context_length, beside temperature_scale");
  }
  setting.scaling.query_scale = {QueryLaw::kMinistral, known, *scale};
}

}  // namespace

void read_gguf_scaling(GgufKeys& keys, const LlamaCppArchitecture* row, RopeConfig& setting) {
  YarnNumbers n{.factor = keys.number(keys.own("rope.scaling.factor"), 0, 1e9).value_or(1)};
  const auto old = keys.number(keys.own("rope.scale_linear"), 0, 1e9);
  if (old && !keys.has(keys.own("rope.scaling.factor"))) n.factor = *old;
  if (n.factor == 0) n.factor = 1;  // llama.cpp's word for none
  n.original = keys.length(keys.own("rope.scaling.original_context_length"));
  const auto attention = keys.number(keys.own("rope.scaling.attn_factor"), 1e-6, 1e6);
  n.attention = attention.value_or(1);
  const int64_t pairs = setting.rotary_dim / 2;
  std::vector<std::string> warnings;
  json object = scaling_of(keys, row, n, warnings);
  const auto* short_factors = vector_of(keys.gguf(), "rope_factors_short.weight", pairs);
  const auto* long_factors = vector_of(keys.gguf(), "rope_factors_long.weight", pairs);
  if (short_factors && long_factors) {
    object = {{"rope_type", "longrope"},
              {"short_factor", doubles(*short_factors)},
              {"long_factor", doubles(*long_factors)}};
    if (n.original > 0) object["original_max_position_embeddings"] = n.original;
    if (attention) object["attention_factor"] = *attention;
  }
  setting.scaling = read_scaling(object,
                                 {.base = setting.base,
                                  .pairs = pairs,
                                  .max_length = setting.max_length,
                                  .original_length = 0},
                                 "gguf: " + keys.own("rope.scaling"));
  if (const auto* divisors = vector_of(keys.gguf(), "rope_freqs.weight", pairs)) {
    take_divisors(doubles(*divisors), n.original, setting.scaling);
  }
  std::ranges::copy(warnings, std::back_inserter(setting.scaling.warnings));
  read_temperature(keys, row, n.original, setting);
}

}  // namespace sextant
