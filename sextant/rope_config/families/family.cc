// The tables of families are parsed strictly, each key of a row taken once; two short tables become
// rows of the same kind.
#include "sextant/rope_config/families/family.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <unordered_map>

#include "sextant/base/error.h"
#include "sextant/rope_config/families/expression.h"
#include "sextant/rope_config/foreign_fields.h"
#include "sextant/rope_config/hugging_face.h"

namespace sextant {

extern const std::string_view kTransformersFamilies;

namespace {

using nlohmann::json;

bool are_numbers(const json& value) {
  return value.is_array() && !value.empty() &&
         std::ranges::all_of(value, [](const json& one) { return one.is_number(); });
}

// The keys of one row, each of which can be taken once.
class Row {
 public:
  Row(json row, std::string where) : row_(std::move(row)), where_(std::move(where)) {
    if (!row_.is_object()) fail(where_ + ": expected an object");
  }

  json take(const char* key) {
    const auto found = row_.find(key);
    if (found == row_.end()) return nullptr;
    json value = std::move(*found);
    row_.erase(found);
    return value;
  }
  std::string text(const char* key) {
    const json value = take(key);
    if (value.is_null()) return "";
    if (!value.is_string() || value.get_ref<const std::string&>().empty()) bad(key, "a text");
    return value.get<std::string>();
  }
  std::string expression(const char* key) {
    const std::string value = text(key);
    return value.empty() ? value : checked(key, value);
  }
  bool flag(const char* key) {
    const json value = take(key);
    if (!value.is_null() && !value.is_boolean()) bad(key, "true or false");
    return value.is_boolean() && value.get<bool>();
  }
  std::vector<std::string> texts(const char* key) {
    json value = take(key);
    if (value.is_null()) return {};
    if (value.is_string()) value = json::array({value});
    std::vector<std::string> all;
    if (!value.is_array()) bad(key, "a list of texts");
    for (const json& one : value) {
      if (!one.is_string() || one.get_ref<const std::string&>().empty())
        bad(key, "a list of texts");
      all.push_back(one.get<std::string>());
    }
    return all;
  }
  std::map<std::string, json> values(const char* key) {
    const json value = take(key);
    if (!value.is_null() && !value.is_object()) bad(key, "an object");
    std::map<std::string, json> all;
    for (const auto& item : value.items()) all[item.key()] = item.value();
    return all;
  }
  std::map<std::string, std::string> names(const char* key) {
    std::map<std::string, std::string> all;
    for (const auto& [canonical, own] : values(key)) {
      if (!own.is_string() || own.get_ref<const std::string&>().empty()) bad(key, "texts");
      all[canonical] = own.get<std::string>();
    }
    return all;
  }
  // Numbers, strings and expressions; rope_parameters may be an object, and mrope_section is a list
  // of numbers.
  std::map<std::string, json> defaults(const char* key) {
    std::map<std::string, json> all = values(key);
    for (const auto& [name, value] : all) {
      const bool object = value.is_object();
      if (object && value.size() == 1 && value.contains("is") && value["is"].is_string()) {
        checked(key, value["is"].get<std::string>());
      } else if (name == "mrope_section" && are_numbers(value)) {
        continue;
      } else if (object ? value.contains("is") || name != "rope_parameters"
                        : !value.is_number() && !value.is_string()) {
        bad(key + (": " + name), "a number, a text or {\"is\": expression}");
      }
    }
    return all;
  }
  std::vector<FamilyRemark> remarks(const char* key) {
    std::vector<FamilyRemark> all;
    for (Row& row : rows(key)) {
      all.push_back({row.expression("when"), row.text("say")});
      if (all.back().say.empty()) row.bad("say", "a text");
      row.finish();
    }
    return all;
  }
  std::vector<FamilyQueryLaw> laws(const char* key) {
    std::vector<FamilyQueryLaw> all;
    for (Row& row : rows(key)) {
      all.push_back({.when = row.expression("when"),
                     .law = row.text("law"),
                     .length = row.expression("length"),
                     .strength = row.expression("strength"),
                     .words = row.text("words")});
      const std::string& law = all.back().law;
      if (law.empty() == all.back().words.empty()) row.bad("law", "a law or words");
      if (!law.empty() && law != "llama4" && law != "ministral" && law != "logn") {
        row.bad("law", "llama4, ministral or logn");
      }
      if (!law.empty() && all.back().length.empty())
        row.bad("length", "an expression beside a law");
      row.finish();
    }
    return all;
  }
  void finish() const {
    if (!row_.empty()) bad(row_.begin().key(), "no such key");
  }

 private:
  [[noreturn]] void bad(const std::string& key, const std::string& expected) const {
    fail(where_ + ": " + key + ": expected " + expected);
  }
  std::string checked(const char* key, const std::string& value) const {
    try {
      check_expression(value);
    } catch (const Error& error) {
      fail(where_ + ": " + key + ": " + error.what());
    }
    return value;
  }
  std::vector<Row> rows(const char* key) {
    json value = take(key);
    if (value.is_object()) value = json::array({value});
    if (!value.is_null() && !value.is_array()) bad(key, "a list of objects");
    std::vector<Row> all;
    for (const json& one : value) all.emplace_back(one, where_ + ": " + key);
    return all;
  }

  json row_;
  std::string where_;
};

Family family_of(const json& object, const std::string& code, const std::string& version) {
  const std::string types = shown(object.is_object() ? object.value("types", json()) : object);
  Row row(object, "families: " + types);
  Family family;
  family.types = row.texts("types");
  if (family.types.empty()) fail("families: types: expected at least one model_type");
  family.source = row.text("source");
  if (family.source.empty()) fail("families: " + types + ": source: expected a file");
  family.code = row.text("code");
  family.version = row.text("version");
  if (family.code.empty()) family.code = code;
  if (family.version.empty()) family.version = version;
  family.language_model = row.texts("language_model");
  family.instead = row.text("instead");
  family.names = row.names("names");
  family.rotates = row.expression("rotates");
  family.notes = row.remarks("notes");
  family.warnings = row.remarks("warnings");
  if (!family.instead.empty() && family.rotates.empty()) {
    row.finish();  // a model that rotates in no layer has other facts only if it has windows
    return family;
  }
  family.defaults = row.defaults("defaults");
  for (const auto& [key, member] : {std::pair{"layer_types", &Family::layer_types},
                                    {"kind", &Family::kind},
                                    {"base", &Family::base},
                                    {"part", &Family::part},
                                    {"head_dim", &Family::head_dim},
                                    {"rotary_dim", &Family::rotary_dim},
                                    {"scaled", &Family::scaled},
                                    {"window", &Family::window},
                                    {"chunk", &Family::chunk},
                                    {"both_sides", &Family::both_sides},
                                    {"softmax_scale", &Family::softmax_scale},
                                    {"scales_scores", &Family::scales_scores},
                                    {"pairing", &Family::pairing},
                                    {"first_channel", &Family::first_channel}}) {
    family.*member = row.expression(key);
  }
  family.query_laws = row.laws("query_law");
  family.scaling_defaults = row.values("scaling_defaults");
  family.scaling_types = row.names("scaling_types");
  family.not_layers = row.texts("not_layers");
  family.ignores = row.texts("ignores");
  family.unrelated = row.texts("unrelated");
  family.only_inside = row.texts("only_inside");
  family.trained_stretched = row.flag("trained_stretched");
  row.finish();
  return family;
}

// The rows of a short table {key: {name of the source: value}}, each made by row(key, value).
template <class MakeRow>
void add_rows(const std::map<std::string, json>& table, json& rows, const MakeRow& row) {
  for (const auto& [key, sources] : table) {
    if (!sources.is_object()) fail("families: " + key + ": expected an object");
    for (const auto& item : sources.items()) {
      for (json& made : row(key, item.value())) {
        made["source"] = source_of(item.key());
        rows.push_back(std::move(made));
      }
    }
  }
}

std::vector<json> unrotated_rows(const std::string& instead, const json& types) {
  return {{{"types", types}, {"instead", instead}}};
}

// places: the paths of the language model, in order of preference; types: {type: that inside}.
std::vector<json> wrapper_rows(const std::string& places, const json& types) {
  std::istringstream words(places);
  const std::vector<std::string> paths{std::istream_iterator<std::string>(words), {}};
  std::vector<json> rows;
  for (const auto& type : types.items()) {
    rows.push_back({{"types", {type.key()}}, {"language_model", paths}});
    if (type.value() != nlohmann::json(""))
      rows.back()["defaults"] = {{"model_type", type.value()}};
  }
  return rows;
}

}  // namespace

std::string source_of(const std::string& name) {
  const bool is_path = name.find('/') != std::string::npos;
  return is_path ? name : "models/" + name + "/modeling_" + name + ".py";
}

std::vector<Family> parse_families(std::string_view table) {
  const json parsed = parse_json(std::string(table), "families");
  if (!parsed.is_object() || !parsed.contains("families") || !parsed["families"].is_array()) {
    fail("families: expected an object with a list of families");
  }
  Row whole(parsed, "families");
  const std::string code = whole.text("code"), version = whole.text("version");
  json rows = whole.take("families");
  add_rows(whole.values("unrotated"), rows, unrotated_rows);
  add_rows(whole.values("wrappers"), rows, wrapper_rows);
  whole.finish();
  std::vector<Family> all;
  for (const json& row : rows) {
    all.push_back(family_of(row, code, version));
    if (all.back().code.empty() || all.back().version.empty()) {
      fail("families: " + all.back().types[0] + ": expected a code and its version");
    }
  }
  return all;
}

const Family* find_family(const std::string& model_type) {
  static const std::vector<Family> all = parse_families(kTransformersFamilies);
  static const auto by_type = [] {
    std::unordered_map<std::string, const Family*> found;
    for (const Family& family : all) {
      for (const std::string& type : family.types) {
        if (!found.emplace(type, &family).second) {
          fail("families: " + type + ": expected one row, but got two");
        }
      }
    }
    return found;
  }();
  const auto found = by_type.find(model_type);
  return found == by_type.end() ? nullptr : found->second;
}

}  // namespace sextant
