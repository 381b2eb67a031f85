// llama.cpp's command line. Flags change single values of the model's file; values without a flag
// are the file's.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/rope_config/engine_flags.h"
#include "sextant/rope_config/engines/engine_facts.h"

namespace sextant {
namespace {

using nlohmann::json;

std::string kind_of(CommandLine& flags) {
  if (!flags.has("--rope-scaling")) return "";
  std::string kind = flags.take("--rope-scaling");
  if (kind != "none" && kind != "linear" && kind != "yarn") {
    fail("flags: --rope-scaling: expected none, linear or yarn, but got \"" + kind.substr(0, 60) +
         "\"");
  }
  return kind;
}

struct Factor {
  double value = 1;  // divisor of positions; 1: unchanged
  std::string flag;  // its flag; empty: no flag gives it
};

Factor factor_of(CommandLine& flags) {
  Factor factor;
  for (const std::string name : {"--rope-scale", "--rope-freq-scale"}) {
    if (!flags.has(name)) continue;
    const double number = flags.number(name, 1);
    const double value = name == "--rope-scale" ? number : 1 / number;
    if (!(value >= 1 && value <= 1e9)) {
      fail("flags: " + name +
           ": expected a number that makes frequencies 1 to 1e9 times as slow, but got " +
           json(number).dump());
    }
    if (!factor.flag.empty() && std::fabs(value / factor.value - 1) > 1e-6) {
      fail("flags: " + name + ": expected the scale that " + factor.flag +
           " says, as llama.cpp takes the later of the two, but got " + json(number).dump());
    }
    if (factor.flag.empty()) factor = {value, name};
  }
  return factor;
}

void refuse_self_extend(CommandLine& flags) {
  const double group = flags.number("--grp-attn-n", 1);
  flags.number("--grp-attn-w", 512);
  if (group == 1) return;
  fail(
      "flags: --grp-attn-n: expected 1, as Self-Extend groups positions and changes no frequency, "
      "but got " +
      json(group).dump());
}

// The original length of YaRN if no flag gives it.
double assumed_length(double length, double factor, std::vector<std::string>& warnings) {
  const double assumed = factor > 1 ? std::floor(length / factor) : 0;
  if (assumed < 1) {
    fail(
        "flags: --yarn-orig-ctx: expected the length that the model was trained on, here or as -c "
        "or --length times the factor, but got none; llama.cpp takes the file's "
        "original_context_length, else its context_length");
  }
  warnings.push_back(
      "--yarn-orig-ctx is missing: llama.cpp takes the model file's "
      "original_context_length, else its context_length, never -c. Which that is is "
      "not known here; the length to read divided by the factor, " +
      std::to_string(static_cast<int64_t>(assumed)) + ", is taken for it: --yarn-orig-ctx says it");
  return assumed;
}

// Without YaRN's ramp, this flag is llama.cpp's gain.
void refuse_gain(CommandLine& flags) {
  const double gain = flags.number("--yarn-attn-factor", -1);
  if (gain < 0 || gain == 1) return;
  fail(
      "flags: --yarn-attn-factor: expected 1 where there is no ramp of YaRN, as llama.cpp then "
      "multiplies queries and keys by it, which no scaling here says, but got " +
      json(gain).dump());
}

// Skips flags that have no effect with `kind`.
void pass_over_idle(CommandLine& flags, std::initializer_list<const char*> names,
                    const std::string& kind, std::vector<std::string>& warnings) {
  for (const char* name : names) {
    if (!flags.has(name)) continue;
    const double value = flags.number(name, -1);
    if (value < 0) continue;
    warnings.push_back(std::string(name) + " has no effect with " + kind);
  }
}

// Whether the command line selects YaRN's ramp: by --yarn-ext-factor, or by --rope-scaling if that
// is missing or below 0.
bool has_ramp(CommandLine& flags, const std::string& kind, std::vector<std::string>& warnings) {
  const double mix = flags.number("--yarn-ext-factor", -1);
  if (mix < 0) return kind == "yarn";
  if (mix != 0 && mix != 1) {
    fail(
        "flags: --yarn-ext-factor: expected 1, the whole ramp, or 0, interpolation without a ramp, "
        "but got " +
        json(mix).dump());
  }
  if (mix == 0 && kind == "yarn") {
    warnings.push_back(
        "--yarn-ext-factor 0 makes llama.cpp interpolate all pairs alike, with the gain 1: there "
        "is nothing of YaRN left");
  }
  if (mix == 1 && kind == "linear") {
    warnings.push_back(
        "--yarn-ext-factor 1 makes llama.cpp run YaRN, also with --rope-scaling linear");
  }
  return mix == 1;
}

void read_yarn(CommandLine& flags, const Factor& factor, double length, json& scaling,
               std::vector<std::string>& warnings) {
  // A value below 0 selects llama.cpp's default.
  const double fast = flags.number("--yarn-beta-fast", -1);
  const double slow = flags.number("--yarn-beta-slow", -1);
  scaling["rope_type"] = "yarn";
  scaling["beta_fast"] = fast < 0 ? 32 : fast;
  scaling["beta_slow"] = slow < 0 ? 1 : slow;
  const double attention = flags.number("--yarn-attn-factor", -1);
  if (attention >= 0 && attention != 1) {
    warnings.push_back(engine_fact("llama.cpp.yarn_attn_factor"));
    warnings.push_back(engine_fact("ik_llama.cpp.yarn_attn_factor"));
  }
  double original = flags.number_from_0("--yarn-orig-ctx");
  if (original == 0) original = assumed_length(length, factor.value, warnings);
  scaling["original_max_position_embeddings"] = std::floor(original);
}

// The scaling as in a config.json; `original` is set to the length of a --yarn-orig-ctx that has no
// effect.
json read_scaling_of(CommandLine& flags, std::string kind, const Factor& factor, double length,
                     int64_t& original, std::vector<std::string>& warnings) {
  const bool said = !kind.empty();
  if (!said) {
    kind = factor.value == 1 ? "none" : "linear";
    warnings.push_back(
        "--rope-scaling is missing: llama.cpp takes the type of the model's file, which is not "
        "known here, and linear where it has none; " +
        kind + " is taken");
  }
  if (kind == "none") {
    const std::string beside = said ? "--rope-scaling none" : "a model's file that has no YaRN";
    pass_over_idle(flags,
                   {"--yarn-orig-ctx", "--yarn-ext-factor", "--yarn-beta-slow", "--yarn-beta-fast"},
                   beside, warnings);
    refuse_gain(flags);
    if (said && factor.value != 1)
      warnings.push_back(factor.flag + " has no effect with " + beside);
    return {{"rope_type", "default"}};
  }
  if (factor.flag.empty()) {
    warnings.push_back(
        "--rope-scale is missing: llama.cpp takes rope.scaling.factor of the model's file, which "
        "is not known here, and 1 where it has none, which is taken");
  }
  json scaling = {{"rope_type", "linear"}, {"factor", factor.value}};
  if (has_ramp(flags, kind, warnings)) {
    read_yarn(flags, factor, length, scaling, warnings);
    return scaling;
  }
  refuse_gain(flags);
  original = length_of_flag(flags.number_from_0("--yarn-orig-ctx"), "--yarn-orig-ctx");
  if (original > 0) {
    warnings.push_back(
        "--yarn-orig-ctx has no effect on interpolation in llama.cpp; it is taken for the length "
        "that the model was trained on");
  }
  pass_over_idle(flags, {"--yarn-beta-slow", "--yarn-beta-fast"}, "interpolation", warnings);
  return scaling;
}

// The number of positions of one sequence, by -c and the flags of slots: llama.cpp pads both to
// multiples of 256.
int64_t length_of_slot(CommandLine& flags, EngineConfigs& read,
                       std::vector<std::string>& warnings) {
  constexpr double kMostSlots = 256;  // LLAMA_MAX_SEQ
  const int64_t context = length_of_flag(flags.number_from_0("--ctx-size"), "--ctx-size");
  const double slots = flags.number("--parallel", -1);
  const bool unified = flags.is_on("--kv-unified") || slots < 0;
  const int64_t most =
      length_of_flag(flags.number_from_0("--kv-unified-per-slot"), "--kv-unified-per-slot");
  if (slots == 0 || slots > kMostSlots || slots != std::floor(slots)) {
    fail("flags: -np: expected a number of slots from 1 to 256, or -1, but got " +
         json(slots).dump());
  }
  int64_t length = context;
  if (!unified && slots > 1) {
    const auto count = static_cast<int64_t>(slots);
    const auto padded = [](int64_t n) { return (n + 255) / 256 * 256; };
    length = padded(padded(context) / count);
    if (context > 0) read.option = "-c divided by -np";
    warnings.push_back(
        (context == 0 && most > 0 ? "-np " + std::to_string(count) + " without -kvu"
         : context == 0
             ? "a sequence has the file's context_length divided by -np " + std::to_string(count)
             : "a sequence has " + std::to_string(length) + " of the " + std::to_string(context) +
                   " positions of -c, which -np " + std::to_string(count) + " divides") +
        ". " + engine_fact("llama.cpp.slots"));
  }
  if (most > 0 && (length == 0 || most < length)) {
    length = most;
    read.option = "--kv-unified-per-slot";
  }
  return length;
}

// llama-server cuts a sequence at the context_length of the model's file, which YaRN's flags raise.
void warn_of_cut(const CommandLine& flags, const std::string& flag, int64_t length,
                 std::vector<std::string>& warnings) {
  const double raised = flags.overridden_length();
  if (flag.empty() || (raised > 0 && raised >= static_cast<double>(length))) return;
  warnings.push_back(flag + " helps nothing beyond " +
                     (raised > 0 ? "the overridden context_length, " + json(raised).dump()
                                 : "the context_length of the model's file without --override-kv "
                                   "ARCH.context_length=int:" +
                                       (length > 0 ? std::to_string(length) : "N")) +
                     ". " + engine_fact("llama.cpp.cut"));
}

// Whether a warning about a config.json does not apply to flags.
bool is_about_other_engines(const std::string& warning) {
  return warning.starts_with("not audited");
}

// Replaces the fields in a warning by llama.cpp's flags.
std::string in_flags(std::string warning) {
  constexpr std::pair<const char*, const char*> kWords[] = {
      {"original_max_position_embeddings", "--yarn-orig-ctx"},
      {"max_position_embeddings", "-c"},
      {"attention_factor", "rope.scaling.attn_factor"},
      {"beta_fast", "--yarn-beta-fast"},
      {"beta_slow", "--yarn-beta-slow"},
      {"rope_theta", "--rope-freq-base"}};
  for (const auto& [key, flag] : kWords) {
    for (size_t at = warning.find(key); at != std::string::npos;
         at = warning.find(key, at + std::string_view(flag).size())) {
      warning.replace(at, std::string_view(key).size(), flag);
    }
  }
  return warning;
}

}  // namespace

EngineConfigs read_llama_cpp_flags(CommandLine& flags, const Overrides& overrides) {
  const double base = flags.number_from_0("--rope-freq-base");
  EngineConfigs read{.option = "-c"};
  std::vector<std::string> warnings;
  read.serving_length = length_of_slot(flags, read, warnings);
  if (overrides.head_dim <= 0) {
    fail("flags: head_dim: expected --head-dim N, as flags do not say the size of heads");
  }
  if (base == 0 && overrides.base <= 0) {
    fail(
        "flags: --rope-freq-base: expected the base of the frequencies, here or as --base; the "
        "model's file has it");
  }
  refuse_self_extend(flags);
  const std::string kind = kind_of(flags);
  const Factor factor = factor_of(flags);
  const int64_t length = read.serving_length > 0 ? read.serving_length : overrides.length;
  int64_t original = 0;
  json config = config_of_flags(overrides, base);
  config["rope_scaling"] =
      read_scaling_of(flags, kind, factor, static_cast<double>(length), original, warnings);
  if (kind == "yarn") {
    const double most =
        factor.value * config["rope_scaling"].value("original_max_position_embeddings",
                                                    static_cast<double>(original));
    if (factor.value > 1 && static_cast<double>(length) > most && flags.overridden_length() == 0) {
      warnings.push_back(engine_fact("llama.cpp.cut"));
    }
  } else {
    const bool divides = factor.value != 1 && kind != "none";
    const bool ntk = base > 0 && read.serving_length > 0;
    warn_of_cut(flags,
                divides ? factor.flag
                : ntk   ? "--rope-freq-base"
                        : "",
                read.serving_length, warnings);
  }
  flags.finish();
  read.configs = read_config_of_flags(config, overrides);
  for (RopeConfig& group : read.configs) {
    if (group.scaling.original_length == 0) group.scaling.original_length = original;
    std::erase_if(group.scaling.warnings, is_about_other_engines);
    std::ranges::transform(group.scaling.warnings, group.scaling.warnings.begin(), in_flags);
    std::ranges::copy(warnings, std::back_inserter(group.scaling.warnings));
  }
  return read;
}

}  // namespace sextant
