// A GGUF file has a divisor for each pair, not the name of a stretch. The pattern of the divisors
// tells p-RoPE, Llama 3 and LongRoPE apart; others are kept as numbers.
#include "sextant/rope_config/gguf_divisors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace sextant {
namespace {

using nlohmann::json;

// Divisors from this value on mark a pair that does not rotate; converters write 1e30.
constexpr double kStillFrom = 1e20;

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
  all.reserve(x.size());
  for (const float one : x) all.push_back(std::min(static_cast<double>(one), 1e30));
  return all;
}

// Llama 3's divisors grow from 1 to the factor, which is that of the slowest pairs.
bool look_like_llama3(const std::vector<double>& divisors) {
  return divisors.size() >= 2 && divisors.front() == 1 && divisors.back() > 1 &&
         divisors.back() < kStillFrom && divisors.back() == divisors[divisors.size() - 2] &&
         std::ranges::is_sorted(divisors);
}

// The number of unchanged pairs before the pairs that do not rotate; 0 for other kinds of divisors.
size_t pairs_of_p_rope(const std::vector<double>& divisors) {
  const auto plain = std::ranges::find_if(divisors, [](double x) { return x != 1; });
  const auto still = [](double x) { return x >= kStillFrom; };
  if (plain == divisors.end() || !std::all_of(plain, divisors.end(), still)) return 0;
  return static_cast<size_t>(plain - divisors.begin());
}

// The divisors times those of `stretch`: llama.cpp divides the angles by the tensor's numbers and
// then scales them.
std::vector<double> composed(const RopeConfig& config, const Stretch& stretch,
                             std::vector<double> divisors) {
  const Spectrum plain = rotary({.dim = config.rotary_dim, .base = config.base});
  const Spectrum slower = stretched(plain, stretch);
  divisors.resize(plain.pairs.size(), 1);
  for (size_t f = 0; f < divisors.size(); ++f) {
    const Real divisor = plain.pairs[f].frequency / slower.pairs[f].frequency;
    if (stretch != Stretch{}) divisors[f] *= static_cast<double>(divisor);
  }
  return divisors;
}

// The gain of queries and keys under `stretch`, which may be YaRN with its own gain.
double gain_beside(const Stretch& stretch, const GgufFactors& n) {
  const auto* yarn = std::get_if<Yarn>(&stretch);
  return yarn ? yarn_gain(*yarn) : n.attention;
}

// Takes p-RoPE's divisors, alone or with position interpolation; returns false for other divisors.
bool take_p_rope(const std::vector<double>& divisors, const GgufFactors& n, const Stretch& base,
                 RopeScaling& to) {
  const size_t plain = pairs_of_p_rope(divisors);
  if (plain == 0 || n.attention != 1 || std::holds_alternative<Yarn>(base)) return false;
  const auto* linear = std::get_if<Linear>(&base);
  to.type = "proportional";
  to.stretch = Stretch{
      Proportional{.part = static_cast<double>(plain) / static_cast<double>(divisors.size()),
                   .factor = linear ? linear->factor : 1}};
  return true;
}

void take_all(const std::vector<double>& divisors, const GgufFactors& n, RopeConfig& config) {
  RopeScaling& to = config.scaling;
  const Stretch base = std::get<Stretch>(to.stretch);
  to.original_length = n.original > 0 ? n.original : to.original_length;
  if (take_p_rope(divisors, n, base, to)) return;
  to.stretch = Stretch{LongRope{composed(config, base, divisors), gain_beside(base, n)}};
  if (n.scales()) {
    to.type = "divisors by pair";
    to.warnings.push_back(
        "rope.scaling of type " + n.type + ", factor " + json(decimal(n.factor)).dump() +
        ", and the divisors of rope_freqs.weight are both in the file, and llama.cpp applies both");
    return;
  }
  const bool llama3 = look_like_llama3(divisors);
  to.type = llama3 ? "llama3" : "divisors by pair";
  std::string warning = llama3 ? "rope_freqs.weight holds divisors like Llama 3's in float32; what "
                                 "they were made from is not in the file"
                               : "rope_freqs.weight holds a divisor for each pair, in float32; "
                                 "their method is not in the file";
  if (n.original == 0) {
    warning += ", nor the length that was trained on first: context_length is taken for it";
  }
  to.warnings.push_back(warning);
}

// LongRoPE. If the original length is missing, llama.cpp uses context_length.
json longrope_of(GgufKeys& keys, const GgufFactors& n, const RopeConfig& config,
                 const GgufDivisors& divisors, std::vector<std::string>& warnings) {
  const std::string key = keys.own("rope.scaling.original_context_length");
  const int64_t original = n.original > 0 ? n.original : config.max_length;
  if (original == 0) GgufKeys::bad(key, "a length, or context_length");
  if (n.original == 0) {
    warnings.push_back(
        "rope.scaling.original_context_length is missing; llama.cpp takes context_length, " +
        std::to_string(original) + ", for it, and the long list beyond that only");
  }
  const Stretch base = std::get<Stretch>(config.scaling.stretch);
  json object = {{"rope_type", "longrope"},
                 {"original_max_position_embeddings", original},
                 {"short_factor", composed(config, base, divisors.up_to)},
                 {"long_factor", composed(config, base, divisors.beyond)},
                 {"attention_factor", gain_beside(base, n)}};
  if (config.max_length < original) object["factor"] = 1;
  return object;
}

// Adds a gain to plain RoPE or to position interpolation.
void take_gain(const GgufFactors& n, RopeConfig& config) {
  const Stretch base = std::get<Stretch>(config.scaling.stretch);
  if (n.attention == 1 || std::holds_alternative<Yarn>(base)) return;
  config.scaling.stretch = Stretch{LongRope{composed(config, base, {}), n.attention}};
}

void warn_of_lost_lists(const GgufFactors& n, const RopeConfig& config,
                        std::vector<std::string>& warnings) {
  const bool stretched_enough =
      n.original == 0 || n.scales() || n.type == "yarn" || config.max_length <= n.original;
  if (n.type != "longrope" && stretched_enough) return;
  warnings.push_back(
      (n.type == "longrope"
           ? "rope.scaling.type is longrope"
           : "rope.scaling.original_context_length is " + std::to_string(n.original) +
                 " and context_length " + std::to_string(config.max_length)) +
      std::string(
          ", but the tensors rope_factors_long.weight and rope_factors_short.weight are not in the "
          "file: its frequencies are not LongRoPE's, and llama.cpp rotates by those said here"));
}

}  // namespace

double decimal(double stored) {
  std::array<char, 64> digits{};
  const auto rounded = static_cast<float>(stored);
  const auto written = std::to_chars(digits.data(), digits.data() + digits.size(), rounded);
  double value = stored;
  std::from_chars(digits.data(), written.ptr, value);
  return value;
}

double rounded_gain(double gain) { return std::fabs(gain - 1) < 1.2e-7 ? 1 : gain; }

GgufDivisors gguf_divisors(GgufKeys& keys, int64_t pairs, std::vector<std::string>& warnings) {
  if (const auto* all = vector_of(keys.gguf(), "rope_freqs.weight", pairs)) {
    return {.all = doubles(*all)};
  }
  const auto* up_to = vector_of(keys.gguf(), "rope_factors_short.weight", pairs);
  const auto* beyond = vector_of(keys.gguf(), "rope_factors_long.weight", pairs);
  if (!up_to && !beyond) return {};
  if (!up_to || !beyond) {
    warnings.push_back(std::string("rope_factors_") + (up_to ? "long" : "short") +
                       ".weight is missing: llama.cpp divides no frequency where it would be used");
  }
  const std::vector<double> ones(static_cast<size_t>(pairs), 1);
  return {.up_to = up_to ? doubles(*up_to) : ones, .beyond = beyond ? doubles(*beyond) : ones};
}

void take_divisors(GgufKeys& keys, const GgufFactors& factors, const GgufDivisors& divisors,
                   RopeConfig& config, std::vector<std::string>& warnings) {
  if (!divisors.all.empty()) return take_all(divisors.all, factors, config);
  if (divisors.beyond.empty()) {
    warn_of_lost_lists(factors, config, warnings);
    take_gain(factors, config);
    if (config.scaling.original_length == 0) config.scaling.original_length = factors.original;
    return;
  }
  const json object = longrope_of(keys, factors, config, divisors, warnings);
  config.scaling = read_scaling(object,
                                {.base = config.base,
                                 .pairs = config.rotary_dim / 2,
                                 .max_length = config.max_length,
                                 .from_file = true},
                                "gguf: " + keys.own("rope.scaling"));
}

RopeScaling unscaled_of(const LlamaCppArchitecture* row, const RopeConfig& config,
                        const GgufFactors& factors, const GgufDivisors& divisors) {
  if (!row) return {};
  RopeConfig plain = config;
  plain.scaling = {};
  GgufFactors own{.type = "none", .original = factors.original};
  const bool gain = !row->window || row->window->gain;
  if (gain) own.attention = factors.attention;
  const auto* yarn = std::get_if<Yarn>(std::get_if<Stretch>(&config.scaling.stretch));
  if (gain && yarn) {
    own.attention = rounded_gain(yarn_gain(*yarn) / yarn_temperature(yarn->factor));
  }
  const bool divided = !row->divisors_in_full_only;
  if (divided && !divisors.all.empty()) {
    take_all(divisors.all, own, plain);
  } else if (divided && !divisors.beyond.empty()) {
    const int64_t original = own.original > 0 ? own.original : config.max_length;
    plain.scaling.type = "longrope";
    plain.scaling.original_length = original;
    plain.scaling.stretch = DynamicStretch{.stretch = LongRope{divisors.beyond, own.attention},
                                           .growth = Growth::kStep,
                                           .original_length = original,
                                           .short_factors = divisors.up_to};
  } else {
    take_gain(own, plain);
  }
  return plain.scaling;
}

}  // namespace sextant
