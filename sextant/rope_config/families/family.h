// The table of model families: facts about positions that a model's code decides and its file
// lacks.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sextant {

// A remark on a model, shown if an expression is true (always, if it is empty).
struct FamilyRemark {
  std::string when, say;
};

struct FamilyQueryLaw {
  std::string when;  // expressions
  std::string law, length, strength;
  std::string words;  // instead of a law with numbers
};

// A row of the table; README.md in this folder describes each member. Expressions are strings,
// empty if the row has none.
struct Family {
  std::vector<std::string> types;
  std::string code, version, source;
  std::vector<std::string> language_model;
  std::string instead;
  std::map<std::string, std::string> names;
  std::map<std::string, nlohmann::json> defaults;  // a value, or {"is": expression}
  std::string rotates, layer_types, kind, base, part, head_dim, rotary_dim, scaled, window, chunk;
  std::string both_sides, softmax_scale, scales_scores, pairing, first_channel;
  std::vector<FamilyQueryLaw> query_laws;
  std::map<std::string, nlohmann::json> scaling_defaults;
  std::map<std::string, std::string> scaling_types;  // rope_type in file -> in code
  std::vector<std::string> not_layers, ignores, unrelated, only_inside;
  bool trained_stretched = false;
  std::vector<FamilyRemark> notes, warnings;

  // Whether no model of this family rotates.
  bool never_rotates() const { return !instead.empty() && (rotates.empty() || rotates == "false"); }
  // "transformers 5.24.0".
  std::string origin() const { return code + " " + version; }
};

// The rows of a table. Throws an Error that names the row and the key if a row differs from
// README.md; expressions are checked too.
std::vector<Family> parse_families(std::string_view table);

// The file of a source in a table: models/NAME/modeling_NAME.py, unless the name is a path.
std::string source_of(const std::string& name);

// The row in transformers' table; null if there is none.
const Family* find_family(const std::string& model_type);

}  // namespace sextant
