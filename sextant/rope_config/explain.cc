// All numbers follow from the spectrum at the target length beside the one of training: each pair
// is compared with what training showed.
#include "sextant/rope_config/explain.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numbers>
#include <sstream>
#include <string_view>

#include "sextant/position/axes.h"
#include "sextant/rope_config/hugging_face.h"

namespace sextant {

extern const std::string_view kStretchNames;  // stretches.json

namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// The error of transformers' and llama.cpp's computation: an angle rounded to float32 from a
// frequency rounded to float32.
double float32_error(const Spectrum& spectrum, int64_t last) {
  constexpr int64_t kPositions = 64;
  double worst = 0;
  const Rotation exact = rotation(spectrum);
  for (int64_t position = std::max<int64_t>(last - kPositions, 0); position < last; ++position) {
    for (size_t f = 0; f < exact.pairs.size(); ++f) {
      const auto frequency = static_cast<float>(static_cast<double>(spectrum.pairs[f].frequency));
      const float angle = static_cast<float>(position) * frequency;
      const CosSin right = cos_sin(exact.pairs[f].frequency * position);
      worst = std::max({worst, std::fabs(std::cos(static_cast<double>(angle)) - right.cos),
                        std::fabs(std::sin(static_cast<double>(angle)) - right.sin)});
    }
  }
  return worst;
}

// trained_frequency: the frequency of the pair during training.
PairExplained explain_pair(double frequency, double stretched, double trained_frequency,
                           double factor, int64_t trained) {
  PairExplained pair{.frequency = frequency, .stretched = stretched};
  const auto last = static_cast<double>(trained - 1);
  pair.rotations = static_cast<double>(trained) * trained_frequency / kTurn;
  pair.kept = factor <= 1 || frequency == 0
                  ? std::numeric_limits<double>::quiet_NaN()
                  : std::clamp((stretched / frequency - 1 / factor) / (1 - 1 / factor), 0.0, 1.0);
  if (trained > 0 && stretched > 0 && trained_frequency * last < kTurn) {
    const double kept = std::floor(trained_frequency * last / stretched * (1 + 1e-12));
    pair.leaves = static_cast<int64_t>(std::min(kept, 0x1p62)) + 1;  // a divisor may be 1e30
  }
  return pair;
}

double factor_of(const RopeScaling& scaling, int64_t length) {
  const Stretch stretch = stretch_of(scaling, length);
  return std::visit(
      [&](const auto& kind) -> double {
        if constexpr (requires { kind.factor; }) return kind.factor;
        if constexpr (requires { kind.factors; }) {
          const auto* dynamic = std::get_if<DynamicStretch>(&scaling.stretch);
          if (dynamic && length > dynamic->original_length) return dynamic->factor;
          return *std::max_element(kind.factors.begin(), kind.factors.end());
        }
        return 1;
      },
      stretch);
}

Explained explain_without_rotation(const RopeConfig& config, int64_t length) {
  Explained result;
  result.target = target_length(config, length);
  result.reach = largest_distance(config);
  result.scale = result.rotated_scale = config.scaling.score_factor * plain_scale(config);
  return result;
}

// The axis of each pair.
std::vector<int> axes_of(const RopeConfig& config, const Spectrum& spectrum) {
  std::vector<int> axes(spectrum.pairs.size(), 0);
  const RopeScaling& scaling = config.scaling;
  if (scaling.sections.empty()) return axes;
  const AxisOrder order = scaling.plane_first            ? AxisOrder::kPlaneFirst
                          : scaling.interleaved_sections ? AxisOrder::kInterleaved
                                                         : AxisOrder::kBlocks;
  const Spectrum parted = follow_axes(spectrum, scaling.sections, order, config.base);
  for (size_t f = 0; f < axes.size(); ++f) axes[f] = parted.pairs[f].axis;
  return axes;
}

}  // namespace

double plain_scale(const RopeConfig& config) {
  if (config.softmax_scale > 0) return config.softmax_scale;
  return config.head_dim > 0 ? 1 / std::sqrt(static_cast<double>(config.head_dim)) : 0;
}

int64_t target_length(const RopeConfig& config, int64_t length) {
  const int64_t given = length == 0 ? config.serving_length : length;
  if (given > 0 || !config.rotates || config.trained_stretched) {
    return given > 0 ? given : config.max_length;
  }
  // If max_position_embeddings is L itself, the target is L times the factor. For divisors alone
  // their target is not known.
  const int64_t target = config.max_length;
  const auto* fixed = std::get_if<Stretch>(&config.scaling.stretch);
  const bool known =
      config.scaling.original_length > 0 || (fixed && !std::holds_alternative<LongRope>(*fixed));
  const double reached = static_cast<double>(trained_length(config)) *
                         factor_of(config.scaling, std::max<int64_t>(target, 1));
  if (!fixed || !known || reached > static_cast<double>(kLongestSequence)) return target;
  return std::max(target, static_cast<int64_t>(std::llround(reached)));
}

double stretch_factor(const RopeConfig& config, int64_t length) {
  if (!config.rotates) return 1;
  return factor_of(config.scaling, std::max<int64_t>(target_length(config, length), 1));
}

int64_t largest_distance(const RopeConfig& config) {
  int64_t reach = 0;
  const auto bound = [&](int64_t distance) {
    reach = reach == 0 ? distance : std::min(reach, distance);
  };
  if (config.bounded_in.empty()) {
    if (config.window > 0) bound(config.window - 1);
    if (config.chunk > 0) bound(config.chunk - 1);
  }
  if (config.dual_chunk > 0) bound(config.dual_chunk);
  return reach;
}

Explained explain(const RopeConfig& config, int64_t length) {
  Explained result;
  if (!config.rotates) return explain_without_rotation(config, length);
  result.trained = trained_length(config);
  result.target = target_length(config, length);
  result.factor = stretch_factor(config, length);
  const int64_t at = std::max<int64_t>(result.target, 1);
  const Spectrum plain = rotary({.dim = config.rotary_dim, .base = config.base});
  const Spectrum stretched = spectrum_of(config, at);
  const std::vector<int> axes = axes_of(config, plain);
  result.reach = largest_distance(config);
  for (size_t f = 0; f < plain.pairs.size(); ++f) {
    const auto frequency = static_cast<double>(plain.pairs[f].frequency);
    const auto now = static_cast<double>(stretched.pairs[f].frequency);
    result.pairs.push_back(explain_pair(frequency, now, config.trained_stretched ? now : frequency,
                                        result.factor, result.trained));
    PairExplained& pair = result.pairs.back();
    pair.axis = axes[f];
    if (result.reach > 0 && pair.leaves > result.reach) pair.leaves = 0;
    const int64_t leaves = pair.leaves;
    if (leaves > 0 && (result.first_leaving == 0 || leaves < result.first_leaving)) {
      result.first_leaving = leaves;
    }
  }
  result.gain = stretched.gain;
  result.scale = config.scaling.score_factor * plain_scale(config);
  result.rotated_scale = result.scale * result.gain * result.gain;
  result.float32_error = float32_error(stretched, at);
  return result;
}

Named name_of(const RopeScaling& scaling) {
  static const nlohmann::json names = nlohmann::json::parse(kStretchNames);
  const bool plain_axes = scaling.type == "default" && !scaling.sections.empty();
  const auto found = names.find(plain_axes ? "mrope" : scaling.type);
  if (found == names.end()) return {scaling.type, "", ""};
  return {found->at("name"), found->at("source"), found->at("meaning")};
}

std::string method_of(const RopeConfig& config) {
  if (config.rotates) return name_of(config.scaling).name;
  return config.instead.empty() || config.instead == "none" ? "NoPE" : config.instead;
}

std::string pairing_of(const RopeConfig& config) {
  if (!config.rotates || !config.pairing) return "";
  return order_of(*config.pairing);
}

std::string query_law_of(const RopeConfig& config) {
  return config.query_law.empty() ? law_of(config.scaling.query_scale) : config.query_law;
}

nlohmann::json parameters_of(const RopeConfig& config) {
  const auto* fixed = std::get_if<Stretch>(&config.scaling.stretch);
  if (const auto* divisors = fixed ? std::get_if<LongRope>(fixed) : nullptr) {
    nlohmann::json object = nlohmann::json::object();
    const auto divides = [](double divisor) { return divisor != 1; };
    if (std::ranges::any_of(divisors->factors, divides)) object["divisors"] = divisors->factors;
    if (divisors->gain != 1) object["attention_factor"] = divisors->gain;
    return object;
  }
  nlohmann::json object = scaling_object(config);
  object.erase("rope_type");
  if (fixed && std::holds_alternative<Yarn>(*fixed)) {
    object["truncate"] = std::get<Yarn>(*fixed).truncate;
  }
  return object;
}

std::string law_of(const QueryScale& scale) {
  std::ostringstream out;
  const bool by_strength = scale.law == QueryLaw::kLlama4 || scale.law == QueryLaw::kMinistral;
  if (by_strength && scale.strength == 0) return "";  // 1
  switch (scale.law) {
    case QueryLaw::kNone:
      break;
    case QueryLaw::kLogn:
      out << "max(1, ln(i + 1) / ln " << scale.length << ")";
      break;
    case QueryLaw::kLognUnclipped:
      out << "ln(i + 1) / ln " << scale.length;
      break;
    case QueryLaw::kLog:
      out << "ln(i + 1)";
      break;
    case QueryLaw::kLlama4:
      out << "1 + " << scale.strength << " ln(1 + floor((i + 1) / " << scale.length << "))";
      break;
    case QueryLaw::kMinistral:
      out << "1 + " << scale.strength << " ln(1 + floor(i / " << scale.length << "))";
      break;
  }
  return out.str();
}

}  // namespace sextant
