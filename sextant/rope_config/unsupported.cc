#include "sextant/rope_config/unsupported.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/rope_config/engines/engine_facts.h"

namespace sextant {

void refuse_query_scale(const RopeScaling& scaling, const std::string& dialect) {
  const QueryScale& scale = scaling.query_scale;
  if (scale.law == QueryLaw::kNone) return;
  if (scale.law == QueryLaw::kMinistral && scale.strength == 0) return;  // no effect
  const std::string rest =
      ", as a factor of queries that grows with their position is not written there, but got ";
  if (scale.law == QueryLaw::kMinistral) {
    fail("convert: " + dialect + ": llama_4_scaling_beta: expected none" + rest +
         nlohmann::json(scale.strength).dump());
  }
  const bool logn = scale.law == QueryLaw::kLogn;
  fail("convert: " + dialect + ": " + (logn ? "use_logn_attn" : "query_scale") +
       ": expected false" + rest + "true");
}

void refuse_dual_chunks(const RopeConfig& config, const std::string& dialect) {
  if (config.dual_chunk == 0) return;
  fail("convert: " + dialect + ": dual_chunk_attention_config: expected none, as " + dialect +
       " does not take positions within chunks");
}

void refuse_plain_channels(const RopeConfig& config, const std::string& dialect) {
  if (config.rotary_dim == config.head_dim) return;
  fail("convert: " + dialect + ": partial_rotary_factor: expected all " +
       std::to_string(config.head_dim) + " channels to rotate, but got " +
       std::to_string(config.rotary_dim) +
       "; no flag says how many do, only the model's file (rope.dimension_count, which --as gguf "
       "writes)");
}

// Warns if the weights that accompany the metadata must be permuted to llama.cpp's order of pairs.
void warn_of_pairs(const RopeConfig& config, const LlamaCppArchitecture& row,
                   std::vector<std::string>& warnings) {
  if (!config.pairing || !row.pairing) return;
  const Pairing there = config.scaling.sections.empty() ? *row.pairing : Pairing::kHalfSplit;
  if (*config.pairing == there) return;
  warnings.push_back("this model rotates " + order_of(*config.pairing) + " pairs, and llama.cpp " +
                     order_of(there) + " ones in the architecture " + row.name +
                     ": beside this metadata the weights of queries and keys must be permuted to "
                     "that order. " +
                     engine_fact("llama.cpp.pairs"));
}

void warn_of_betas(const RopeConfig& config, const LlamaCppArchitecture& row,
                   std::vector<std::string>& warnings) {
  const auto* fixed = std::get_if<Stretch>(&config.scaling.stretch);
  const auto* yarn = fixed ? std::get_if<Yarn>(fixed) : nullptr;
  const auto& code = row.yarn_keys;
  if (!yarn || code.betas) return;
  if (yarn->beta_fast == code.beta_fast && yarn->beta_slow == code.beta_slow) return;
  warnings.push_back("llama.cpp takes the beta_fast and beta_slow of this file only from flags, " +
                     std::string("--yarn-beta-fast ") + nlohmann::json(yarn->beta_fast).dump() +
                     " --yarn-beta-slow " + nlohmann::json(yarn->beta_slow).dump() + ". " +
                     engine_fact("llama.cpp.betas"));
}

// The window as llama.cpp's n_swa; 0: none, or no key for it.
int64_t n_swa_of(const LlamaCppArchitecture& row, const std::vector<RopeConfig>& groups,
                 std::vector<std::string>& warnings) {
  int64_t window = 0, chunk = 0;
  for (const RopeConfig& group : groups) {
    window = std::max(window, group.window);
    chunk = std::max(chunk, group.chunk);
  }
  const bool both = std::ranges::any_of(groups, &RopeConfig::both_sides);
  if (window > 0 && both != (row.window && row.window->both_sides)) {
    fail("convert: gguf: window: expected one that reaches " +
         std::string(both ? "back only" : "to both sides") + ", as llama.cpp's code for " +
         row.name + " has it, but got one that reaches " + (both ? "to both sides" : "back only"));
  }
  const int64_t fixed = row.window ? row.window->fixed : 0;
  const int64_t own = row.window && row.window->chunks ? chunk : window;
  if (own > 0 && (!row.window || (fixed > 0 && own != fixed))) {
    warnings.push_back("layers of this model see " + std::to_string(own) + " keys, and " +
                       llama_cpp_version() + "'s code for " + row.name + " has " +
                       (row.window ? std::to_string(fixed) + " there" : "no window"));
  }
  return !row.window ? 0 : both ? 2 * (window - 1) : window;
}

}  // namespace sextant
