// A field is looked up by its canonical name: among the names of the family, those of other
// families, and the defaults of the family's code. Two names with different values are a
// contradiction.
#include "sextant/rope_config/model_fields.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "sextant/base/error.h"
#include "sextant/rope_config/foreign_fields.h"
#include "sextant/rope_config/language_model.h"

namespace sextant {
namespace {

using nlohmann::json;

constexpr int64_t kMostLayers = 4096;

// Adds the names in an expression, including names that are not fields.
void add_names(const std::string& expression, std::set<std::string>& names) {
  std::string name;
  bool quoted = false;
  for (const char c : expression + " ") {
    if (c == '\'') quoted = !quoted;
    if (!quoted && (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_')) {
      name += c;
    } else {
      if (!name.empty()) names.insert(name);
      name.clear();
    }
  }
}

}  // namespace

const std::map<std::string, std::vector<std::string>>& other_names() {
  static const std::map<std::string, std::vector<std::string>> all = {
      {"head_dim", {"attention_head_dim"}},
      {"hidden_size", {"n_embd", "d_model"}},
      {"num_attention_heads", {"n_head", "n_heads"}},
      {"num_hidden_layers", {"n_layer", "n_layers", "num_layers"}},
      {"max_position_embeddings", {"n_positions", "max_seq_len", "model_max_length"}},
      {"rope_theta",
       {"rotary_emb_base", "rope_embedding_base", "global_rope_theta", "attn_config.rope_theta"}},
      {"rope_local_base_freq", {"local_rope_theta", "swa_rope_theta"}},
      {"partial_rotary_factor", {"rotary_pct", "rope_pct", "rotary_emb_fraction"}},
  };
  return all;
}

ModelFields::ModelFields(const json& config, const Family* family, const Overrides& overrides,
                         std::string where)
    : config_(config), family_(family), overrides_(overrides), where_(std::move(where)) {
  if (family != nullptr) {
    for (const auto& [canonical, own] : family->names) take_names(canonical, {own});
  }
  for (const auto& [canonical, names] : other_names()) take_names(canonical, names);
}

const json* ModelFields::find(const std::string& dotted) const {
  const json* found = at_place(config_, dotted);
  return found == nullptr || found->is_null() ? nullptr : found;
}

static std::string two_names(const std::string& taken, const json& value, const std::string& name,
                             const json& other) {
  return taken + " is " + shown(value) + " and " + name + " is " + shown(other) +
         ", two names of one thing; " + taken +
         " is taken: keep the one that the model was trained with";
}

// Takes the first present of several names for one field; a second one with another value is a
// contradiction.
void ModelFields::take_names(const std::string& canonical, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    const json* own = find(name);
    if (own == nullptr) continue;
    const auto known = own_names_.find(canonical);
    const std::string before = known == own_names_.end() ? canonical : known->second;
    const json* first = before == canonical && is_unread(canonical) ? nullptr : find(before);
    if (first == nullptr) {
      own_names_[canonical] = name;
    } else if (before != name && *first != *own) {
      say(two_names(before, *first, name, *own));
    }
  }
}

void ModelFields::say(const std::string& warning) {
  if (std::ranges::find(warnings_, warning) == warnings_.end()) warnings_.push_back(warning);
}

// Whether the family's code reads a field only within the scaling.
bool ModelFields::is_unread(const std::string& name) const {
  return family_ != nullptr && std::ranges::count(family_->only_inside, name) > 0;
}

// A field by its canonical name; null if the file lacks it or the code does not read it there.
const json* ModelFields::of_file(const std::string& name) const {
  const auto own = own_names_.find(name);
  if (own != own_names_.end()) return find(own->second);
  return is_unread(name) ? nullptr : find(name);
}

bool ModelFields::says(const std::string& name) const { return of_file(name) != nullptr; }

json ModelFields::default_of(const std::string& name, std::optional<int64_t> layer) {
  if (family_ == nullptr) return nullptr;
  const auto found = family_->defaults.find(name);
  if (found == family_->defaults.end() || depth_ > 8) return nullptr;
  json result = found->second;
  if (result.is_object() && result.contains("is")) {
    ++depth_;
    result = evaluate(result["is"].get<std::string>(),
                      [&](const std::string& other) { return find_value(other, layer); });
    --depth_;
  }
  if (!result.is_null()) taken_.emplace(name, result);
  return result;
}

json ModelFields::value(const std::string& name, std::optional<int64_t> layer) {
  return find_value(name, layer).get();
}

Value ModelFields::find_value(const std::string& name, std::optional<int64_t> layer) {
  if (layer) {
    if (name == "i") return Value(*layer);
    const json& own = of_layer(*layer);
    const auto found = own.find(name);
    if (found != own.end() && !found->is_null()) return Value::borrowed(*found);
  }
  if (name == "n") return Value(layers() > 0 ? layers() : supposed_layers());
  const json* found = of_file(name);
  if (found != nullptr && name == "layer_types") return Value::borrowed(layer_types_of(*found));
  if (found != nullptr) return Value::borrowed(*found);
  return is_null(name) ? Value(nullptr) : Value(default_of(name, layer));
}

// The layer's object in per_layer_config; empty if it has none.
const json& ModelFields::of_layer(int64_t layer) {
  if (own_layer_ == layer) return own_;
  json own;
  if (const json* by_layer = find("per_layer_config")) {
    own = evaluate("per_layer_config[i]", [&](const std::string& asked) {
      return asked == "i" ? Value(layer) : Value::borrowed(*by_layer);
    });
  }
  own_ = own.is_object() ? std::move(own) : json::object();
  own_layer_ = layer;
  return own_;
}

// Some files also list parts of layers: "mlp" after each attention.
const json& ModelFields::layer_types_of(const json& listed) {
  if (!listed.is_array() || family_ == nullptr || family_->not_layers.empty()) return listed;
  if (layer_types_) return *layer_types_;
  json kept = json::array();
  for (const json& type : listed) {
    const bool part =
        type.is_string() && std::ranges::count(family_->not_layers, type.get<std::string>()) > 0;
    if (!part) kept.push_back(type);
  }
  return layer_types_.emplace(std::move(kept));
}

// A null in the file is a value: code with a default for an absent field does not use that default
// for null. These fields use their default in both cases.
bool ModelFields::is_null(const std::string& name) const {
  if (name == "rope_theta" || name == "rope_parameters" || name == "layer_types") return false;
  return config_.contains(name) && config_.at(name).is_null();
}

void ModelFields::bad(const std::string& name, const std::string& expected, const json& got) const {
  const auto own = own_names_.find(name);
  fail(where_ + ": " + (own == own_names_.end() ? name : own->second) + ": expected " + expected +
       ", but " + (got.is_null() ? "it is missing" : "got " + shown(got)));
}

std::optional<double> ModelFields::number(const std::string& name, double low, double high) {
  const json got = value(name);
  if (got.is_null()) return {};
  const bool good = got.is_number() && got.get<double>() >= low && got.get<double>() <= high;
  if (!good) {
    std::ostringstream range;
    range << "a number from " << low << " to " << high;
    bad(name, range.str(), got);
  }
  return got.get<double>();
}

std::optional<int64_t> ModelFields::integer(const std::string& name, int64_t low, int64_t high) {
  const json got = value(name);
  if (got.is_null()) return {};
  // Some writers give integers as 8192.0.
  const double x = got.is_number() ? got.get<double>() : NAN;
  if (!(x == std::floor(x) && x >= static_cast<double>(low) && x <= static_cast<double>(high))) {
    bad(name, "an integer from " + std::to_string(low) + " to " + std::to_string(high), got);
  }
  return static_cast<int64_t>(x);
}

// A list with one element per layer must not end before the last layer.
void ModelFields::check_size(const std::string& name, const json& list) const {
  const auto own = own_names_.find("num_hidden_layers");
  const json* layers = find(own == own_names_.end() ? "num_hidden_layers" : own->second);
  if (layers == nullptr || !layers->is_number_integer()) return;
  const auto all = layers->get<int64_t>();
  const auto size = static_cast<int64_t>(list.size());
  if (size == 0 || size >= all) return;
  fail(where_ + ": " + name + ": expected an element for each of num_hidden_layers " +
       std::to_string(all) + ", but got " + std::to_string(size) + ": " + shown(list));
}

// Checks the lists from which the family's expressions take one element per layer.
void ModelFields::check_lists() const {
  const auto by_layer = [&](const std::string& key) {
    if (key == "no_rope_layers" || key == "layer_rope_theta") return true;
    if (family_ == nullptr) return false;
    const auto uses = [&](const std::string& expression) {
      return (" " + expression).find(" " + key + "[i]") != std::string::npos;
    };
    return uses(family_->layer_types) || uses(family_->rotates) || uses(family_->base) ||
           uses(family_->part) || uses(family_->window) || uses(family_->head_dim);
  };
  for (const auto& item : config_.items()) {
    if (item.value().is_array() && by_layer(item.key())) check_size(item.key(), item.value());
  }
}

int64_t ModelFields::layers() {
  if (!layers_) layers_ = count_layers();
  return *layers_;
}

// The file's list must have a kind for each layer. It may have more, for layers that predict
// further tokens.
void ModelFields::check_kinds() {
  const auto count = integer("num_hidden_layers", 1, kMostLayers);
  const auto own = own_names_.find("layer_types");
  const json* listed = find(own == own_names_.end() ? "layer_types" : own->second);
  if (!says("num_hidden_layers") || !count || listed == nullptr) return;
  if (listed->size() >= static_cast<size_t>(*count)) return;
  bad("layer_types",
      "a list with a kind for each of num_hidden_layers " + std::to_string(*count) + " layers",
      *listed);
}

int64_t ModelFields::count_layers() {
  check_lists();
  const Value all = find_value("layer_types");
  const json& types = all.get();
  if (types.is_array() && !types.empty()) {
    if (types.size() > kMostLayers) bad("layer_types", "at most 4096 layers", types);
    check_kinds();
    return static_cast<int64_t>(types.size());
  }
  if (says("num_hidden_layers")) return integer("num_hidden_layers", 1, kMostLayers).value_or(0);
  // A list by layer in the family's expressions has one element per layer.
  std::set<std::string> names = {"no_rope_layers", "layer_rope_theta"};
  if (family_ != nullptr) {
    for (const std::string& expression :
         {family_->layer_types, family_->rotates, family_->base, family_->part, family_->window}) {
      add_names(expression, names);
    }
  }
  int64_t least = 0;
  for (const std::string& name : names) {
    const json* list = find(name);
    if (list == nullptr || !list->is_array() || list->empty()) continue;
    const auto size = static_cast<int64_t>(list->size());
    if (size > kMostLayers) bad(name, "at most 4096 layers", *list);
    least = least == 0 ? size : std::min(least, size);
  }
  return least;
}

void ModelFields::take_from_code(const std::string& name, const json& value) {
  taken_.emplace(name, value);
}

int64_t ModelFields::supposed_layers() const {
  constexpr int64_t kMany = 64;
  if (family_ == nullptr) return kMany;
  const auto found = family_->defaults.find("num_hidden_layers");
  const bool known = found != family_->defaults.end() && found->second.is_number_integer();
  return known ? std::clamp<int64_t>(found->second.get<int64_t>(), 1, kMostLayers) : kMany;
}

std::vector<std::string> ModelFields::taken_from_code() const {
  std::vector<std::string> all;
  for (const auto& [name, value] : taken_) all.push_back(name + " " + shown(value));
  return all;
}

}  // namespace sextant
