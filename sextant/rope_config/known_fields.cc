#include "sextant/rope_config/known_fields.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "sextant/base/edit_distance.h"
#include "sextant/base/error.h"
#include "sextant/rope_config/shown.h"

namespace sextant {
namespace {

using nlohmann::json;

bool about_positions(const std::string& key) {
  return key.starts_with("rope_") || key.starts_with("rotary") ||
         key.find("_rope") != std::string::npos || key.find("rotary_") != std::string::npos ||
         key.find("head_dim") != std::string::npos;
}

const std::set<std::string>& known() {
  static const std::set<std::string> all = {
      "rope_theta", "rope_scaling", "rope_parameters", "rope_local_base_freq", "rope_interleave",
      "rope_interleaved", "rope_traditional", "rope_pct", "rope_embedding_base",
      "global_rope_theta", "local_rope_theta", "swa_rope_theta", "qk_rope_head_dim",
      "no_rope_layers", "no_rope_layer_interval", "layer_rope_theta", "use_mrope", "use_rope",
      "rotary_emb_base", "rotary_pct", "rotary_dim", "rotary_emb_fraction", "partial_rotary_factor",
      "partial_rotary_factors", "rotary_emb_interleaved", "rotary_scaling_factor",
      // sizes: of values, of unrotated channels, of indexers and linear attention
      "head_dim", "attention_head_dim", "global_head_dim", "swa_head_dim", "qk_nope_head_dim",
      "qk_head_dim", "v_head_dim", "swa_v_head_dim", "index_head_dim", "linear_key_head_dim",
      "linear_value_head_dim", "linear_head_dim", "mamba_head_dim", "cross_head_dim",
      // FastDeploy's: positions have three numbers each, which are equal in a text
      "rope_3d",
      // fields of parts other than the language model's attention
      "indexer_rope_interleave", "rotary_emb_scale_base"};
  return all;
}

bool mentions(const std::vector<std::string>& expressions, const std::string& key) {
  return std::ranges::any_of(expressions, [&](const std::string& expression) {
    return expression.find(key) != std::string::npos;
  });
}

// A switch of precision or of a kernel, which changes no frequency: OLMo's and LLaDA's
// rope_full_precision, rope_dtype, fused_rotary.
bool only_rounds(const std::string& key, const json& value) {
  if (!value.is_boolean() && !value.is_string()) return false;
  constexpr std::array kWords = {"precision", "fp32",  "fp16",   "bf16",  "float32", "float16",
                                 "dtype",     "fused", "fusion", "flash", "upcast"};
  return std::ranges::any_of(kWords,
                             [&](const char* word) { return key.find(word) != std::string::npos; });
}

bool known_to(const Family& family, const std::string& key) {
  for (const auto* list : {&family.ignores, &family.unrelated}) {
    if (std::ranges::find(*list, key) != list->end()) return true;
  }
  if (family.defaults.contains(key)) return true;
  for (const auto& [canonical, own] : family.names) {
    if (own == key) return true;
  }
  for (const auto* remarks : {&family.notes, &family.warnings}) {
    for (const FamilyRemark& remark : *remarks) {
      if (mentions({remark.when}, key)) return true;
    }
  }
  return mentions(
      {family.rotates, family.layer_types, family.kind, family.base, family.part, family.head_dim,
       family.rotary_dim, family.scaled, family.window, family.chunk, family.both_sides,
       family.softmax_scale, family.scales_scores, family.pairing, family.first_channel},
      key);
}

// Numbers that multiply or replace a base or a part rank first, switches last.
int rank(const std::string& key, const json& value) {
  int points = 0;
  for (const char* word : {"ratio", "theta", "base", "factor", "scal", "freq"}) {
    if (key.find(word) != std::string::npos) points -= 4;
  }
  if (value.is_number()) points -= 2;
  if (value.is_boolean() || value.is_string()) points += 2;
  if (key.find("rope") == std::string::npos && key.find("rotary") == std::string::npos) points += 8;
  return points;
}

// The known name that a key may misspell; empty if there is none.
std::string resembled(const std::string& key) {
  constexpr size_t kMostEdits = 2;
  const std::string start = key.substr(0, 40);
  const auto nearest = std::ranges::min_element(
      known(), {}, [&](const std::string& name) { return edit_distance(start, name); });
  return edit_distance(start, *nearest) <= kMostEdits ? *nearest : "";
}

}  // namespace

void refuse_unknown_fields(const json& config, const Family* family, const std::string& where) {
  constexpr size_t kMost = 12;
  std::vector<std::string> unknown;
  for (const auto& item : config.items()) {
    const std::string& key = item.key();
    if (!about_positions(key) || item.value().is_null() || known().contains(key)) continue;
    if (only_rounds(key, item.value())) continue;
    if (family != nullptr && known_to(*family, key)) continue;
    if (key == "rope_type" && item.value() == json("original")) continue;  // Grok-2: no scaling
    unknown.push_back(key);
  }
  if (unknown.empty()) return;
  std::ranges::stable_sort(unknown, [&](const std::string& a, const std::string& b) {
    return rank(a, config.at(a)) < rank(b, config.at(b));
  });
  std::string all;
  for (size_t k = 0; k < std::min(unknown.size(), kMost); ++k) {
    all += (k == 0 ? "" : ", ") + shown(unknown[k], 40) + ": " + shown(config.at(unknown[k]), 40);
    const std::string name = resembled(unknown[k]);
    if (!name.empty()) all += " (or is it " + name + "?)";
  }
  fail(where + ": " + shown(unknown[0]) +
       ": expected no field about rotary positions that sextant does not know, but got " +
       (unknown.size() == 1 ? "one: " : std::to_string(unknown.size()) + ": ") + all);
}

}  // namespace sextant
