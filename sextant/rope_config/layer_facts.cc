// The facts of a layer are read in the order of their dependencies: kind of attention, whether it
// rotates, base, rotated part, scaling, window.
#include "sextant/rope_config/layer_facts.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "sextant/base/error.h"
#include "sextant/rope_config/families/expression.h"
#include "sextant/rope_config/foreign_fields.h"
#include "sextant/rope_config/layer_values.h"

namespace sextant {
namespace {

using nlohmann::json;

const std::string kFull = "full_attention", kSliding = "sliding_attention";

bool has_attention(const std::string& kind) {
  static const std::set<std::string> without = {
      "mamba", "mamba2", "linear_attention", "conv", "short_conv", "recurrent", "moe", "mlp"};
  return !without.contains(kind);
}

// Reads the facts of one layer in the order of their dependencies.
class LayerReader {
 public:
  LayerReader(ModelFields& fields, const RopeParameters& parameters, int64_t layer,
              std::string kind, std::vector<std::string>& missing)
      : fields_(fields),
        parameters_(parameters),
        layer_(layer),
        given_kind_(std::move(kind)),
        missing_(missing),
        values_(fields, parameters, layer, facts_) {}

  LayerFacts read() {
    read_kind();
    facts_.has_attention = has_attention(facts_.kind);
    if (!facts_.has_attention) return facts_;
    read_object();
    read_rotates();
    read_sizes();
    if (facts_.rotates) {
      read_channels();
      read_base();
      read_pairs();
    } else {
      facts_.object = {{"rope_type", "default"}};
      facts_.parameters.clear();
    }
    read_bounds();
    read_scores();
    return facts_;
  }

 private:
  const Family* family() const { return fields_.family(); }
  std::optional<json> of_family(std::string Family::*expression) const {
    return values_.of_family(expression);
  }
  std::optional<double> number_of_family(std::string Family::*expression, const std::string& name,
                                         double low, double high) const {
    return values_.number_of_family(expression, name, low, high);
  }
  std::optional<int64_t> integer(const std::string& name, int64_t low, int64_t high) const {
    return values_.integer(name, low, high);
  }
  json evaluated_field(const std::string& expression) const {
    return values_.of_expression(expression);
  }

  bool is_list(const std::string& name) const {
    const Value value = fields_.find_value(name);
    return value.get().is_array() && !value.get().empty();
  }

  void read_kind() {
    const Value all = fields_.find_value("layer_types");
    const json& types = all.get();
    if (!given_kind_.empty()) {
      facts_.kind = given_kind_;
    } else if (types.is_array() && !types.empty()) {
      const json& own = types.at(static_cast<size_t>(layer_));
      if (!own.is_string()) fields_.bad("layer_types", "names of kinds of layers", own);
      facts_.kind = own.get<std::string>();
    } else if (const auto kind = of_family(&Family::layer_types)) {
      if (kind->is_string()) facts_.kind = kind->get<std::string>();
    } else if (family() == nullptr) {
      read_kind_by_pattern();
    }
    const auto key = of_family(&Family::kind);
    facts_.parameters = key && key->is_string() ? key->get<std::string>() : facts_.kind;
  }

  // Every nth layer has no window, all others have it, by a field that many models share.
  void read_kind_by_pattern() {
    for (const char* name : {"sliding_window_pattern", "_sliding_window_pattern"}) {
      const json pattern = fields_.value(name);
      if (!pattern.is_number_integer() || pattern.get<int64_t>() < 2) continue;
      facts_.kind = (layer_ + 1) % pattern.get<int64_t>() == 0 ? kFull : kSliding;
    }
  }

  void read_object() {
    const json& all = parameters_.object;
    if (!parameters_.nested) {
      facts_.object = all;
      const auto scaled = of_family(&Family::scaled);
      const Value kinds = fields_.find_value("yarn_only_types");
      const json& only = kinds.get();
      const bool left_out = only.is_array() && !only.empty() &&
                            std::ranges::find(only, json(facts_.kind)) == only.end();
      if ((scaled && !is_true(*scaled)) || left_out) keep_only_base();
      return;
    }
    const auto found = all.find(facts_.parameters);
    if (found == all.end()) {
      absent_ = true;
    } else if (found->is_null()) {
      none_ = true;  // null marks layers that do not rotate
    } else {
      facts_.object = *found;
    }
    if (!facts_.object.is_object()) facts_.object = json::object();
    for (const char* shared : {"rope_theta", "partial_rotary_factor"}) {
      if (all.contains(shared) && !facts_.object.contains(shared)) {
        facts_.object[shared] = all[shared];
      }
    }
    if (!facts_.object.contains("rope_type") && !facts_.object.contains("type")) {
      facts_.object["rope_type"] = "default";
    }
  }

  // For a layer that the scaling does not affect.
  void keep_only_base() {
    json object = {{"rope_type", "default"}};
    for (const char* kept : {"rope_theta", "partial_rotary_factor"}) {
      if (facts_.object.contains(kept)) object[kept] = facts_.object[kept];
    }
    facts_.object = object;
  }

  void read_rotates() {
    if (const auto rotates = of_family(&Family::rotates)) {
      facts_.rotates = is_true(*rotates);
    } else {
      facts_.rotates = rotates_by_list();
    }
    if (none_) facts_.rotates = false;
    if (absent_ && facts_.rotates) {
      fail(parameters_.where + ": " + shown(facts_.parameters) +
           ": expected parameters of the layers of this kind (layer " + std::to_string(layer_) +
           "), but got none");
    }
  }

  // no_rope_layers has 1 for layers that DO rotate, layer_rope_theta has 0 for layers that do not.
  bool rotates_by_list() {
    if (is_list("layer_rope_theta")) {
      return is_true(evaluated_field("layer_rope_theta[i]"));
    }
    const Value by_layer = fields_.find_value("no_rope_layers");
    const json& list = by_layer.get();
    if (!list.is_array()) return true;
    if (!list.empty()) {
      const json own = evaluated_field("no_rope_layers[i]");
      if (own != json(0) && own != json(1)) fields_.bad("no_rope_layers", "0 or 1", own);
      return is_true(own);
    }
    const int64_t interval = fields_.integer("no_rope_layer_interval", 1, 1 << 20).value_or(4);
    return (layer_ + 1) % interval != 0;
  }
  void read_sizes() {
    auto rope = integer("qk_rope_head_dim", 0, kWidestHead);
    if (rope == 0) rope.reset();  // heads are not split
    const auto nope = integer("qk_nope_head_dim", 0, kWidestHead);
    facts_.latent = rope.has_value();
    if (fields_.overrides().head_dim > 0) {
      facts_.head_dim = fields_.overrides().head_dim;
    } else if (const auto own =
                   number_of_family(&Family::head_dim, "head_dim", 2, double(kWidestHead))) {
      facts_.head_dim = static_cast<int64_t>(*own);
      const bool said = fields_.says("head_dim") || fields_.says("hidden_size") || rope;
      if (!said) take_from_code("head_dim", *own);
    } else if (rope && nope) {
      facts_.head_dim = *rope + *nope;
    } else {
      facts_.head_dim = plain_head_dim();
    }
    if (facts_.head_dim > kWidestHead) {
      fields_.bad("head_dim", "at most " + std::to_string(kWidestHead) + " channels of a head",
                  facts_.head_dim);
    }
    if (rope) facts_.rotary_dim = *rope;
  }

  int64_t plain_head_dim() {
    if (facts_.kind == kFull) {  // Gemma 4
      if (const auto full = integer("global_head_dim", 2, kWidestHead)) return *full;
    }
    if (facts_.kind == kSliding) {  // MiMo 2
      if (const auto local = integer("swa_head_dim", 2, kWidestHead)) return *local;
    }
    if (const auto own = integer("head_dim", 2, kWidestHead)) return *own;
    const auto width = integer("hidden_size", 1, kWidest);
    const auto heads = integer("num_attention_heads", 1, kWidest);
    if (!width || !heads) {
      miss("head_dim: expected an integer, or hidden_size and num_attention_heads, or --head-dim");
      return 2;
    }
    if (*width % *heads != 0) round_down(*width, *heads);
    return *width / *heads;
  }

  void round_down(int64_t width, int64_t heads) {
    const int64_t size = width / heads;
    if (size < 2) {
      fields_.bad("hidden_size",
                  "2 channels or more for each of num_attention_heads " + std::to_string(heads),
                  width);
    }
    fields_.say("hidden_size " + std::to_string(width) + " is no multiple of num_attention_heads " +
                std::to_string(heads) + ", and head_dim is missing; " + std::to_string(size) +
                " channels a head are taken, rounded down as transformers does: give head_dim");
  }

  void read_channels() {
    const auto part = number_of_family(&Family::part, "partial_rotary_factor", 1e-6, 1);
    if (const auto own =
            number_of_family(&Family::rotary_dim, "rotary_dim", 2, double(kWidestHead))) {
      facts_.rotary_dim = static_cast<int64_t>(*own);
    } else if (part) {
      facts_.part = part;
      facts_.rotary_dim.reset();
      const bool said = fields_.says("partial_rotary_factor") || fields_.says("rotary_dim") ||
                        facts_.object.contains("partial_rotary_factor");
      if (!said && *part != 1) take_from_code("partial_rotary_factor", *part);
    } else if (fields_.find_value("partial_rotary_factors").get().is_array()) {
      const json listed = evaluated_field("partial_rotary_factors[i]");
      if (!listed.is_number()) fields_.bad("partial_rotary_factors", "numbers", listed);
      facts_.part = listed.get<double>();
    } else {
      facts_.part = fields_.number("partial_rotary_factor", 1e-6, 1);
    }
    if (facts_.rotary_dim || part) return;
    const auto channels = fields_.integer("rotary_dim", 2, kWidestHead);
    if (!channels) return;
    if (!facts_.part && !facts_.object.contains("partial_rotary_factor")) {
      facts_.rotary_dim = channels;
    }
  }

  void read_base() {
    const bool local = facts_.kind == kSliding;
    const bool own = facts_.object.contains("rope_theta") && parameters_.nested;
    if (own && !facts_.object.at("rope_theta").is_null()) return;  // the kind's own base wins
    if (local && fields_.overrides().local_base > 0) {
      facts_.base = fields_.overrides().local_base;
    } else if (!local && fields_.overrides().base_instead(fields_.says("rope_theta") ||
                                                          facts_.object.contains("rope_theta"))) {
      facts_.base = fields_.overrides().base;
    } else if (const auto base = number_of_family(&Family::base, "rope_theta", 1e-3, 1e30)) {
      facts_.base = base;
      if (!fields_.says("rope_theta") && !facts_.object.contains("rope_theta")) {
        take_from_code("rope_theta", *base);
      }
    } else if (is_list("layer_rope_theta")) {
      facts_.base = base_in(evaluated_field("layer_rope_theta[i]"), "layer_rope_theta");
    } else if (local && fields_.number("rope_local_base_freq", 1e-3, 1e30)) {
      facts_.base = fields_.number("rope_local_base_freq", 1e-3, 1e30);
    } else if (fields_.says("rope_theta") && fields_.find_value("rope_theta").get().is_array()) {
      facts_.base = base_in(evaluated_field("rope_theta[i]"), "rope_theta");
    } else if (!facts_.object.contains("rope_theta")) {
      facts_.base = local && fields_.overrides().base > 0
                        ? fields_.overrides().base
                        : fields_.number("rope_theta", 1e-3, 1e30);
    }
    if (facts_.base) {
      facts_.object.erase("rope_theta");
    } else if (facts_.object.value("rope_theta", json(0)).is_null()) {
      fail(parameters_.where + ": rope_theta: expected the base of the frequencies, but got null");
    } else if (!facts_.object.contains("rope_theta")) {
      miss("rope_theta: expected the base of the frequencies, or --base");
    }
  }
  double base_in(const json& value, const std::string& name) const {
    if (!value.is_number() || !(value.get<double>() >= 1e-3 && value.get<double>() <= 1e30)) {
      fields_.bad(name, "numbers from 0.001 to 1e+30", value);
    }
    return value.get<double>();
  }

  void read_pairs() {
    const auto pairing = of_family(&Family::pairing);
    if (pairing && pairing->is_string()) {
      facts_.pairing =
          *pairing == json("interleaved") ? Pairing::kInterleaved : Pairing::kHalfSplit;
    }
    for (const char* name : {"rope_interleave", "rope_interleaved", "rotary_emb_interleaved"}) {
      if (pairing) break;
      const json interleaved = fields_.value(name);
      if (!interleaved.is_boolean()) continue;
      facts_.pairing = interleaved.get<bool>() ? Pairing::kInterleaved : Pairing::kHalfSplit;
    }
  }

  void read_bounds() {
    if (family() != nullptr && !family()->window.empty()) {
      facts_.window = static_cast<int64_t>(
          number_of_family(&Family::window, "sliding_window", 0, double(kLongestSequence))
              .value_or(0));
    } else {
      const bool has_window = facts_.kind.empty() || facts_.kind == kSliding;
      const json on = fields_.value("use_sliding_window");
      if (has_window && on != json(false)) {
        facts_.window = integer("sliding_window", 0, kLongestSequence).value_or(0);
      }
    }
    if (const auto chunk =
            number_of_family(&Family::chunk, "attention_chunk_size", 0, double(kLongestSequence))) {
      facts_.chunk = static_cast<int64_t>(*chunk);
    } else if (family() == nullptr && facts_.rotates && facts_.kind != kFull) {
      facts_.chunk = fields_.integer("attention_chunk_size", 1, kLongestSequence).value_or(0);
    }
    const auto sides = of_family(&Family::both_sides);
    facts_.both_sides = facts_.window > 0 && sides && is_true(*sides);
  }

  void read_scores() {
    if (const auto scale = number_of_family(&Family::softmax_scale, "softmax_scale", 1e-9, 1e9)) {
      const double plain = 1 / std::sqrt(static_cast<double>(facts_.head_dim));
      // A scale that equals the default is stored as the default.
      facts_.softmax_scale = std::abs(*scale / plain - 1) < 1e-12 ? 0 : *scale;
    }
    const auto scores = of_family(&Family::scales_scores);
    facts_.scales_scores = scores ? is_true(*scores) : facts_.latent && family() == nullptr;
    if (facts_.rotates) {
      const auto first =
          number_of_family(&Family::first_channel, "first channel", 0, double(kWidestHead));
      if (first) facts_.first_channel = static_cast<int64_t>(*first);
    }
    read_query_law(fields_, values_, facts_);
  }

  void take_from_code(const std::string& name, double value) {
    fields_.take_from_code(facts_.kind.empty() ? name : name + " of " + facts_.kind, value);
  }

  void miss(const std::string& what) {
    if (std::ranges::find(missing_, what) == missing_.end()) missing_.push_back(what);
  }

  ModelFields& fields_;
  const RopeParameters& parameters_;
  int64_t layer_;
  std::string given_kind_;
  std::vector<std::string>& missing_;
  LayerFacts facts_;
  LayerValues values_;
  bool absent_ = false, none_ = false;
};

}  // namespace

LayerFacts facts_of_layer(ModelFields& fields, const RopeParameters& parameters, int64_t layer,
                          const std::string& kind, std::vector<std::string>& missing) {
  return LayerReader(fields, parameters, layer, kind, missing).read();
}

}  // namespace sextant
