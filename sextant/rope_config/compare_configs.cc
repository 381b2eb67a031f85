// Layers are compared by number where both sides have numbers, otherwise by the name of their kind.
// Equal findings of layers are merged.
#include "sextant/rope_config/compare_configs.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "sextant/rope_config/doubts.h"
#include "sextant/rope_config/engines/engine_facts.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/families/llama_cpp.h"

namespace sextant {
namespace {

constexpr double kRounded = 1e-6;  // relative error of a few products in float32
constexpr double kStill = 1e-20;   // a frequency that p-RoPE's divisors of 1e30 leave

bool near(double a, double b) { return std::fabs(a - b) <= kRounded * std::fabs(b); }

// With six significant digits.
std::string shown(double x) {
  std::ostringstream text;
  text << x;
  return text.str();
}

bool is_gguf(const ReadRopeConfig& read) { return read.dialect == "GGUF"; }

// The two sides of a layer, and their findings.
class LayerPair {
 public:
  LayerPair(const ReadRopeConfig& a, const ReadRopeConfig& b, const RopeConfig& own,
            const RopeConfig& other)
      : from_(a), to_(b), own_(own), other_(other) {
    compare();
  }
  std::vector<ConfigFinding> findings;
  std::vector<std::string> notes;

 private:
  void find(const std::string& field, const std::string& expected, const std::string& got,
            const std::string& cause = "") {
    findings.push_back({{}, "", field, expected, got, cause, false});
  }

  void compare() {
    compare_window();
    compare_law();
    compare_scale();
    if (own_.rotates != other_.rotates) {
      const auto named = [](const RopeConfig& x) {
        return x.rotates ? std::string("rotates") : "does not rotate";
      };
      return find("rotates", named(own_), named(other_),
                  is_gguf(to_) ? engine_fact("llama.cpp.nope") : "");
    }
    if (!own_.rotates) return compare_methods();
    compare_pairing();
    if (!same_channels()) return;
    compare_frequencies();
  }

  // A window of all positions that the model supports is none.
  static int64_t effective(const RopeConfig& config) {
    const bool all = config.max_length > 0 && config.window >= config.max_length;
    return all ? 0 : config.window;
  }

  void compare_window() {
    if (from_.dialect == "flags" || to_.dialect == "flags") return;
    // A group that a file bounds only in some of its layers has layers with and without the window.
    const bool some = !own_.bounded_in.empty() || !other_.bounded_in.empty();
    const int64_t own = effective(own_), other = effective(other_);
    const bool sides = own > 0 && other > 0 && own_.both_sides != other_.both_sides;
    if (sides || (own != other && !(some && (own == 0 || other == 0)))) {
      find("window", window_words(own, own_.both_sides), window_words(other, other_.both_sides),
           is_gguf(to_) && other == 0
               ? llama_cpp_version() + "'s code for this architecture has no window"
               : "");
    }
    if (own_.chunk != other_.chunk) {
      find("chunk", chunk_words(own_.chunk), chunk_words(other_.chunk));
    }
    if (own_.dual_chunk != other_.dual_chunk) {
      find("chunk", own_.dual_chunk > 0 ? "dual chunks" : "no dual chunks",
           other_.dual_chunk > 0 ? "dual chunks" : "no dual chunks",
           is_gguf(to_) ? engine_fact("llama.cpp.dual_chunk") : "");
    }
  }

  // ALiBi, learned vectors, or none.
  void compare_methods() {
    const std::string own = method_of(own_), other = method_of(other_);
    const std::vector<std::string>& said = other_.scaling.warnings;
    if (own != other) find("positions", own, other, said.empty() ? "" : said.front());
  }

  void compare_law() {
    const std::string own = query_law_of(own_), other = query_law_of(other_);
    if (own == other) return;
    find("query law", own.empty() ? "none" : own, other.empty() ? "none" : other,
         is_gguf(to_) ? engine_fact("llama.cpp.temperature") : "");
  }

  static bool scale_in_weights(const ReadRopeConfig& read) {
    const LlamaCppArchitecture* row =
        is_gguf(read) ? find_architecture(read.configs.front().model_type) : nullptr;
    return row != nullptr && row->scale_in_weights;
  }

  void compare_scale() {
    if (own_.head_dim == 0 || other_.head_dim == 0) return;
    if (scale_in_weights(from_) || scale_in_weights(to_)) return;
    const double own = plain_scale(own_) * own_.scaling.score_factor;
    const double other = plain_scale(other_) * other_.scaling.score_factor;
    if (near(own, other)) return;
    std::string cause = shown(other / own) + " times the first";
    if (own_.scaling.score_factor != other_.scaling.score_factor) {
      cause += ": the factor on all scores (mscale_all_dim) is " +
               shown(own_.scaling.score_factor) + " and " + shown(other_.scaling.score_factor);
    }
    find("softmax scale", shown(own), shown(other), cause);
  }

  void compare_pairing() {
    if (!own_.pairing || !other_.pairing || *own_.pairing == *other_.pairing) return;
    if (is_gguf(from_) != is_gguf(to_)) {
      notes.push_back("pairs are " + order_of(*own_.pairing) + " in the first and " +
                      order_of(*other_.pairing) +
                      " in the second: the same, if the conversion permuted the weights of "
                      "queries and keys as llama.cpp's converter does");
    } else {
      find("pairing", order_of(*own_.pairing), order_of(*other_.pairing),
           "other channels of the same weights are paired");
    }
  }

  bool same_channels() {
    const auto range = [](const RopeConfig& x) {
      return "channels " + std::to_string(x.first_channel) + "-" +
             std::to_string(x.first_channel + x.rotary_dim - 1) + " of " +
             std::to_string(x.head_dim);
    };
    const bool same = own_.rotary_dim == other_.rotary_dim &&
                      (own_.latent || other_.latent || own_.head_dim == other_.head_dim);
    if (same && !same_axes(own_.scaling, other_.scaling)) {
      find("rotated channels", "the axes of the first", "other axes (mrope_section)");
      return false;
    }
    if (!same) {
      find("rotated channels", range(own_), range(other_),
           own_.head_dim == other_.head_dim ? "partial_rotary_factor or rope.dimension_count" : "");
    }
    return same;
  }

  static const DynamicStretch* dynamic_of(const RopeConfig& config) {
    return std::get_if<DynamicStretch>(&config.scaling.stretch);
  }

  // Two dynamic factors can differ by less than rounding just beyond the original length.
  std::set<int64_t> lengths() const {
    std::set<int64_t> all = {1};
    for (const DynamicStretch* dynamic : {dynamic_of(own_), dynamic_of(other_)}) {
      if (!dynamic) continue;
      const int64_t length = dynamic->original_length;
      const double stretched = dynamic->factor * static_cast<double>(length);
      all.insert({length, length + 1, std::min(2 * length, kLongestSequence)});
      if (stretched > 1 && stretched < static_cast<double>(kLongestSequence)) {
        all.insert(static_cast<int64_t>(stretched));
      }
    }
    return all;
  }

  void compare_frequencies() {
    const size_t before = findings.size();
    for (const int64_t length : lengths()) {
      const Spectrum a = spectrum_of(own_, length), b = spectrum_of(other_, length);
      size_t worst = 0;
      double most = 0;
      for (size_t f = 0; f < a.pairs.size(); ++f) {
        const auto x = static_cast<double>(a.pairs[f].frequency);
        const auto y = static_cast<double>(b.pairs[f].frequency);
        const double off = std::fabs(x - y) / std::max({x, y, kStill});
        if (off > most + kRounded) worst = f, most = off;
      }
      const std::string at = length > 1 ? " at a length of " + std::to_string(length) : "";
      if (most > kRounded) {
        find("frequencies",
             "pair " + std::to_string(worst) + " of " + std::to_string(a.pairs.size()) + ": " +
                 shown(static_cast<double>(a.pairs[worst].frequency)) + " rad a position" + at,
             shown(static_cast<double>(b.pairs[worst].frequency)), cause_of_frequencies());
      }
      if (!near(a.gain, b.gain)) {
        find("attention factor", shown(a.gain) + at, shown(b.gain), cause_of_gain(b.gain));
      }
      if (findings.size() > before) return;
    }
  }

  std::string cause_of_frequencies() const {
    const std::string own = method_of(own_), other = method_of(other_);
    if (!near(own_.base, other_.base)) {
      return "the base is " + shown(own_.base) + " and " + shown(other_.base);
    }
    if (own != other) {
      std::string cause = "the stretch is " + own + " and " + other;
      if (own_.scaling.is_dynamic() && is_gguf(to_)) {
        cause += "; " + engine_fact("llama.cpp.dynamic");
      }
      return cause;
    }
    const auto *stretch = dynamic_of(own_), *other_stretch = dynamic_of(other_);
    const bool dynamic = stretch && other_stretch && stretch->growth != Growth::kStep;
    const double a = dynamic ? stretch->factor : stretch_factor(own_, 0);
    const double b = dynamic ? other_stretch->factor : stretch_factor(other_, 0);
    if (!near(a, b)) return own + " has the factor " + shown(a) + " and " + shown(b);
    if (trained_length(own_) != trained_length(other_)) {
      return own + " counts from an original length of " + std::to_string(trained_length(own_)) +
             " and " + std::to_string(trained_length(other_));
    }
    return own + " has other parameters (beta_fast, beta_slow, truncate, lists)" +
           (is_gguf(to_) ? "; " + engine_fact("llama.cpp.truncate") : "");
  }

  std::string cause_of_gain(double gain) const {
    if (near(gain, 1)) return "the gain of " + method_of(own_) + " on queries and keys is missing";
    if (is_gguf(to_)) return engine_fact("llama.cpp.gain");
    return "attention_factor, mscale or factor differs, from which the gain follows";
  }

  const ReadRopeConfig& from_;
  const ReadRopeConfig& to_;
  const RopeConfig& own_;
  const RopeConfig& other_;
};

// The configuration of each layer; a single one without numbers covers every layer.
const RopeConfig* at(const ReadRopeConfig& read, int64_t layer) {
  for (const RopeConfig& group : read.configs) {
    if (std::ranges::find(group.layer_numbers, layer) != group.layer_numbers.end()) return &group;
  }
  const bool single = read.configs.size() == 1 && read.configs[0].layer_numbers.empty();
  return single ? &read.configs[0] : nullptr;
}

std::set<int64_t> numbers_of(const ReadRopeConfig& read) {
  std::set<int64_t> numbers;
  for (const RopeConfig& group : read.configs) {
    numbers.insert(group.layer_numbers.begin(), group.layer_numbers.end());
  }
  return numbers;
}

// The findings of layers by number, or of a kind of layers.
void add(ConfigComparison& to, const LayerPair& pair, std::optional<int64_t> layer,
         const std::string& kind = "") {
  for (ConfigFinding found : pair.findings) {
    found.kind = kind;
    add_finding(to, found, layer);
  }
  for (const std::string& note : pair.notes) {
    if (std::ranges::find(to.notes, note) == to.notes.end()) to.notes.push_back(note);
  }
}

const RopeConfig* of_kind(const ReadRopeConfig& read, const std::string& kind) {
  const auto found = std::ranges::find_if(
      read.configs, [&](const RopeConfig& group) { return group.layers == kind; });
  return found == read.configs.end() ? nullptr : &*found;
}

// Groups of layers by the name of their kind. A kind that only one side has is not judged.
void compare_kinds(const ReadRopeConfig& a, const ReadRopeConfig& b, ConfigComparison& to) {
  for (const RopeConfig& own : a.configs) {
    if (const RopeConfig* other = of_kind(b, own.layers)) {
      add(to, LayerPair(a, b, own, *other), {}, own.layers);
    }
  }
  const auto miss = [&](const ReadRopeConfig& has, const ReadRopeConfig& lacks,
                        const std::string& which) {
    for (const RopeConfig& group : has.configs) {
      if (of_kind(lacks, group.layers)) continue;
      add_unjudged(to, group.layers.empty() ? "layers" : "layers " + group.layers,
                   "only the " + which +
                       " configuration has layers of this kind, and one of the two does not "
                       "number its layers",
                   {});
    }
  };
  miss(a, b, "first");
  miss(b, a, "second");
}

// Whether every layer has its configuration by at().
bool covers_layers(const ReadRopeConfig& read) {
  return read.configs.size() == 1 || std::ranges::none_of(read.configs, [](const RopeConfig& x) {
           return x.layer_numbers.empty();
         });
}

// Layers that one side has and the other lacks: in hybrid models, those that attend.
void add_missing(const std::vector<int64_t>& layers, const std::string& has,
                 const std::string& lacks, ConfigComparison& to) {
  if (layers.empty()) return;
  to.findings.push_back({layers, "", "layers", "the same layers of attention in both",
                         "the " + has + " has these layers and the " + lacks + " lacks them", "",
                         false});
}

void add_layer(std::vector<int64_t>& layers, std::optional<int64_t> layer) {
  if (!layer) return;
  const auto place = std::ranges::lower_bound(layers, *layer);
  if (place == layers.end() || *place != *layer) layers.insert(place, *layer);
}

}  // namespace

void add_finding(ConfigComparison& to, const ConfigFinding& finding, std::optional<int64_t> layer) {
  const auto is_same = [&](const ConfigFinding& x) {
    return x.field == finding.field && x.expected == finding.expected && x.got == finding.got &&
           x.cause == finding.cause && x.kind == finding.kind;
  };
  const auto same = std::ranges::find_if(to.findings, is_same);
  add_layer((same == to.findings.end() ? to.findings.emplace_back(finding) : *same).layers, layer);
}

void add_unjudged(ConfigComparison& to, const std::string& what, const std::string& why,
                  std::optional<int64_t> layer) {
  const auto same = std::ranges::find_if(
      to.unjudged, [&](const Unjudged& x) { return x.what == what && x.why == why; });
  if (same != to.unjudged.end()) return add_layer(same->layers, layer);
  add_layer(to.unjudged.emplace_back(Unjudged{{}, what, why}).layers, layer);
}

std::string window_words(int64_t window, bool both_sides) {
  if (both_sides && window > 0) return std::to_string(window - 1) + " keys to each side";
  return window > 0 ? std::to_string(window) + " keys" : "all keys";
}

std::string chunk_words(int64_t chunk) {
  return chunk > 0 ? "chunks of " + std::to_string(chunk) : "no chunks";
}

ConfigComparison compare_configs(const ReadRopeConfig& a, const ReadRopeConfig& b) {
  ConfigComparison result;
  compare_vision(a, b, result);
  std::set<int64_t> numbers = numbers_of(a);
  const std::set<int64_t> others = numbers_of(b);
  numbers.insert(others.begin(), others.end());
  if (a.configs.empty() || b.configs.empty()) {
    add_unjudged(result, "layers", "one of the configurations has no layers of attention", {});
    return result;
  }
  if (!covers_layers(a) || !covers_layers(b)) {
    compare_kinds(a, b, result);
    return result;
  }
  if (numbers.empty()) {  // one group on each side, of all layers
    add(result, LayerPair(a, b, a.configs.front(), b.configs.front()), {});
    return result;
  }
  std::vector<int64_t> missing_in_a, missing_in_b;
  for (const int64_t layer : numbers) {
    const RopeConfig *own = at(a, layer), *other = at(b, layer);
    if (own && other) {
      add(result, LayerPair(a, b, *own, *other), layer);
    } else {
      (own ? missing_in_b : missing_in_a).push_back(layer);
    }
  }
  add_missing(missing_in_b, "first", "second", result);
  add_missing(missing_in_a, "second", "first", result);
  return result;
}

ConfigComparison check_config(const ReadRopeConfig& read) {
  ConfigComparison result;
  for (const RopeConfig& group : read.configs) {
    const std::vector<std::string> doubts = doubts_of(group);
    for (const std::string& warning : group.scaling.warnings) {
      if (std::ranges::find(doubts, warning) != doubts.end()) {
        result.findings.push_back({group.layer_numbers,
                                   group.layer_numbers.empty() ? group.layers : "", "configuration",
                                   "an effect of each value", warning, "", true});
      } else if (std::ranges::find(result.notes, warning) == result.notes.end()) {
        result.notes.push_back(warning);
      }
    }
  }
  check_vision(read, result);
  return result;
}

}  // namespace sextant
