// The fields of one language model's config.json under the names that most files use, with what its
// family's code takes where the file is silent.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sextant/rope_config/families/family.h"
#include "sextant/rope_config/families/value.h"
#include "sextant/rope_config/rope_config.h"

namespace sextant {

inline constexpr int64_t kWidest = 1 << 20;  // the largest hidden_size, or count of heads

class ModelFields {
 public:
  // `config` and `family` (null: not audited) live as long. `where` begins each message.
  ModelFields(const nlohmann::json& config, const Family* family, const Overrides& overrides,
              std::string where);

  // A field by its canonical name, or another of the file by its own; where the file lacks it, the
  // family's default. In a layer, per_layer_config goes before all that.
  nlohmann::json value(const std::string& name, std::optional<int64_t> layer = {});
  // The same without a copy of what stands in the file.
  Value find_value(const std::string& name, std::optional<int64_t> layer = {});
  // Whether the file itself has it, under this name or another.
  bool says(const std::string& name) const;

  // As Fields has them: Error that names the field in the file's own word unless it is one in
  // range.
  std::optional<double> number(const std::string& name, double low, double high);
  std::optional<int64_t> integer(const std::string& name, int64_t low, int64_t high);
  [[noreturn]] void bad(const std::string& name, const std::string& expected,
                        const nlohmann::json& got) const;

  // How many layers; 0: not known. Lists by layer say it, too.
  int64_t layers();
  // A number for patterns by layer where it is not known: the family's usual one.
  int64_t supposed_layers() const;

  const nlohmann::json& config() const { return config_; }
  const Family* family() const { return family_; }
  const std::string& where() const { return where_; }
  const Overrides& overrides() const { return overrides_; }

  // Two names of one thing with two values, and what else is to be said once.
  const std::vector<std::string>& warnings() const { return warnings_; }
  void say(const std::string& warning);
  // Another value that the family's code decides, in words: "rope_theta 10000".
  void take_from_code(const std::string& name, const nlohmann::json& value);
  // "partial_rotary_factor 0.5": defaults of the family that were asked for, in order of names.
  std::vector<std::string> taken_from_code() const;

 private:
  const nlohmann::json* find(const std::string& dotted) const;
  bool is_null(const std::string& name) const;
  const nlohmann::json& of_layer(int64_t layer);
  const nlohmann::json& layer_types_of(const nlohmann::json& listed);
  int64_t count_layers();
  void take_names(const std::string& canonical, const std::vector<std::string>& names);
  nlohmann::json default_of(const std::string& name, std::optional<int64_t> layer);

  const nlohmann::json& config_;
  const Family* family_;
  Overrides overrides_;
  std::string where_;
  std::map<std::string, std::string> own_names_;  // canonical: in the file, where they differ
  std::vector<std::string> warnings_;
  std::map<std::string, nlohmann::json> taken_;
  int depth_ = 0;
  // What is asked for in each layer and does not change.
  std::optional<int64_t> layers_;
  std::optional<nlohmann::json> layer_types_;
  std::optional<int64_t> own_layer_;  // that own_ is of
  nlohmann::json own_;
};

// The names in the file that may stand for canonical ones.
const std::map<std::string, std::vector<std::string>>& other_names();

}  // namespace sextant
