// Checks that a written GGUF file describes the same layers as its source.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/rope_config/gguf.h"

namespace sextant {
namespace {

using nlohmann::json;

// The relative error of a few products of numbers rounded to float32.
constexpr double kRounded = 1e-6;

bool close(double a, double b) { return std::fabs(a - b) <= kRounded * std::fabs(b); }

double scale_of(const RopeConfig& config) {
  return plain_scale(config) * config.scaling.score_factor;
}

// Lengths that cover every case of the stretches in GGUF.
std::set<int64_t> lengths_of(const RopeConfig& a, const RopeConfig& b) {
  std::set<int64_t> lengths = {1};
  for (const RopeConfig* config : {&a, &b}) {
    const auto* dynamic = std::get_if<DynamicStretch>(&config->scaling.stretch);
    if (dynamic) lengths.insert({dynamic->original_length, dynamic->original_length + 1});
  }
  return lengths;
}

std::string pair_difference(const RopeConfig& own, const RopeConfig& read, int64_t length) {
  const Spectrum a = spectrum_of(own, length), b = spectrum_of(read, length);
  for (size_t f = 0; f < a.pairs.size(); ++f) {
    const auto right = static_cast<double>(a.pairs[f].frequency);
    const auto other = static_cast<double>(b.pairs[f].frequency);
    // A pair that does not rotate may be stored as one with a huge divisor.
    if (close(right, other) || std::max(right, other) < 1e-20) continue;
    return "frequency " + json(right).dump() + " of pair " + std::to_string(f) + ", but got " +
           json(other).dump();
  }
  if (!close(a.gain, b.gain)) {
    return "queries and keys times " + json(a.gain).dump() + ", but got " + json(b.gain).dump();
  }
  return "";
}

bool same_law(const QueryScale& a, const QueryScale& b) {
  const auto idle = [](const QueryScale& scale) {
    const bool by_strength = scale.law == QueryLaw::kLlama4 || scale.law == QueryLaw::kMinistral;
    return scale.law == QueryLaw::kNone || (by_strength && scale.strength == 0);
  };
  if (idle(a) || idle(b)) return idle(a) == idle(b);
  return a.law == b.law && a.length == b.length && close(a.strength, b.strength);
}

// Returns the first difference as "x of own, but got y of read"; empty if there is none.
std::string difference(const RopeConfig& own, const RopeConfig& read,
                       const std::string& architecture) {
  if (own.rotates != read.rotates) {
    return own.rotates ? "rotation, but got none" : "no rotation, but got one";
  }
  if (!same_law(own.scaling.query_scale, read.scaling.query_scale)) {
    return "the same law by which queries grow with their position, but got another";
  }
  const LlamaCppArchitecture* row = find_architecture(architecture);
  const bool by_keys = !row || !row->scale_in_weights;
  if (by_keys && own.head_dim > 0 && read.head_dim > 0 && !close(scale_of(own), scale_of(read))) {
    return "scores times " + json(scale_of(own)).dump() + ", but got " +
           json(scale_of(read)).dump();
  }
  if (!own.rotates) return "";
  if (own.rotary_dim != read.rotary_dim) {
    return std::to_string(own.rotary_dim) + " channels that rotate, but got " +
           std::to_string(read.rotary_dim);
  }
  if (own.scaling.sections != read.scaling.sections ||
      own.scaling.interleaved_sections != read.scaling.interleaved_sections) {
    return "pairs that follow the same axes, but got others";
  }
  for (const int64_t length : lengths_of(own, read)) {
    std::string pairs = pair_difference(own, read, length);
    if (!pairs.empty()) return pairs;
  }
  return "";
}

// The configuration of each layer with a known index; a single configuration for all layers covers
// every index.
class ByLayer {
 public:
  explicit ByLayer(const std::vector<RopeConfig>& groups) {
    if (groups.size() == 1 && groups[0].layer_numbers.empty()) all_ = &groups[0];
    for (const RopeConfig& group : groups) {
      for (const int64_t layer : group.layer_numbers) known_[layer] = &group;
    }
  }
  // Null if it is not known.
  const RopeConfig* at(int64_t layer) const {
    const auto found = known_.find(layer);
    return found == known_.end() ? all_ : found->second;
  }

 private:
  const RopeConfig* all_ = nullptr;
  std::map<int64_t, const RopeConfig*> known_;
};

[[noreturn]] void refuse(const std::string& layers, const std::string& difference,
                         const std::string& architecture) {
  fail("convert: gguf: " + layers + ": expected " + difference + " by " + llama_cpp_version() +
       "'s code for the architecture " + architecture + ", for which the file has no key");
}

std::string name_of(const RopeConfig& group) {
  return group.layers.empty() ? "all layers" : "layers " + group.layers;
}

// If a group's layers are not known, each group must also be in the other list.
void check_groups(const std::vector<RopeConfig>& groups, const std::vector<RopeConfig>& read,
                  const std::string& architecture) {
  const auto found = [&](const RopeConfig& group, const std::vector<RopeConfig>& among) {
    return std::ranges::any_of(among, [&](const RopeConfig& other) {
      return difference(group, other, architecture).empty();
    });
  };
  for (const RopeConfig& group : groups) {
    if (!found(group, read)) {
      refuse(name_of(group), difference(group, read.at(0), architecture), architecture);
    }
  }
  for (const RopeConfig& group : read) {
    if (!found(group, groups)) {
      refuse(name_of(group), difference(groups.at(0), group, architecture), architecture);
    }
  }
}

}  // namespace

void check_same_layers(const std::vector<RopeConfig>& groups, const std::vector<RopeConfig>& read,
                       const std::string& architecture) {
  const ByLayer there(read);
  std::set<std::pair<const RopeConfig*, const RopeConfig*>> alike;
  for (const RopeConfig& group : groups) {
    for (const int64_t layer : group.layer_numbers) {
      const RopeConfig* other = there.at(layer);
      if (!other) return check_groups(groups, read, architecture);
      if (!alike.insert({&group, other}).second) continue;
      const std::string found = difference(group, *other, architecture);
      if (!found.empty()) refuse("layer " + std::to_string(layer), found, architecture);
    }
  }
  if (alike.empty()) check_groups(groups, read, architecture);
}

}  // namespace sextant
