#include "sextant/rope_config/unsupported.h"

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"

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

}  // namespace sextant
