// The fields of one language model's config.json under the names that most files use, with the
// defaults of its family's code for missing fields.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sextant/rope_config/families/expression.h"
#include "sextant/rope_config/families/family.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

inline constexpr int64_t kWidest = 1 << 20;  // the largest hidden_size or number of heads

class ModelFields {
 public:
  // Keeps references to `config` and `family` (null: not audited), which must outlive it. `where`
  // begins each message.
  ModelFields(const nlohmann::json& config, const Family* family, const Overrides& overrides,
              std::string where);

  // A field by its canonical name, or any other field by its own name. If the file lacks it, the
  // family's default. With a layer, per_layer_config has priority.
  nlohmann::json value(const std::string& name, std::optional<int64_t> layer = {});
  // The same without a copy of values in the file.
  Value find_value(const std::string& name, std::optional<int64_t> layer = {});
  // Whether the file itself has the field, under this name or another.
  bool says(const std::string& name) const;

  // Like the functions of JsonFields: an Error for a value out of range names the field as the file
  // does.
  std::optional<double> number(const std::string& name, double low, double high);
  std::optional<int64_t> integer(const std::string& name, int64_t low, int64_t high);
  [[noreturn]] void bad(const std::string& name, const std::string& expected,
                        const nlohmann::json& got) const;

  // The number of layers, also from lists by layer; 0: not known.
  int64_t layers();
  // A number of layers for patterns by layer if it is not known: the family's usual one.
  int64_t supposed_layers() const;

  const nlohmann::json& config() const { return config_; }
  const Family* family() const { return family_; }
  const std::string& where() const { return where_; }
  const Overrides& overrides() const { return overrides_; }

  // Two names of one field with two values, and other warnings that are given once.
  const std::vector<std::string>& warnings() const { return warnings_; }
  void say(const std::string& warning);
  // Records a value that the family's code decides: "rope_theta 10000".
  void take_from_code(const std::string& name, const nlohmann::json& value);
  // "partial_rotary_factor 0.5": defaults of the family that were used, sorted by name.
  std::vector<std::string> taken_from_code() const;

 private:
  const nlohmann::json* find(const std::string& dotted) const;
  const nlohmann::json* of_file(const std::string& name) const;
  bool is_unread(const std::string& name) const;
  void check_size(const std::string& name, const nlohmann::json& list) const;
  void check_lists() const;
  bool is_null(const std::string& name) const;
  const nlohmann::json& of_layer(int64_t layer);
  const nlohmann::json& layer_types_of(const nlohmann::json& listed);
  void check_kinds();
  int64_t count_layers();
  void take_names(const std::string& canonical, const std::vector<std::string>& names);
  nlohmann::json default_of(const std::string& name, std::optional<int64_t> layer);

  const nlohmann::json& config_;
  const Family* family_;
  Overrides overrides_;
  std::string where_;
  std::map<std::string, std::string> own_names_;  // canonical name -> name in the file
  std::vector<std::string> warnings_;
  std::map<std::string, nlohmann::json> taken_;
  int depth_ = 0;
  // Cached values: each layer requests them, and they do not change.
  std::optional<int64_t> layers_;
  std::optional<nlohmann::json> layer_types_;
  std::optional<int64_t> own_layer_;  // the layer of own_
  nlohmann::json own_;
};

// The names in files for each canonical name.
const std::map<std::string, std::vector<std::string>>& other_names();

}  // namespace sextant
