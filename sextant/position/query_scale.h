// Factors by which a query at a position is multiplied, so that attention over a longer text is no
// flatter.
//
// Each is a function of the query's position (or of how many keys it sees) alone. Positions count
// from 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sextant {

enum class QueryLaw {
  kNone,
  // max(1, ln(i + 1) / ln L): Su (kexue.fm 8823; bojone/rerope), Qwen's use_logn_attn.
  kLogn,
  // ln(i + 1) / ln L, below 1 within the training length, 0 at the first query.
  kLognUnclipped,
  // ln(i + 1), i + 1 being the keys that a causal query sees: Scalable-Softmax, which multiplies it
  // by a trained number for each head (Nakanishi 2025, arXiv 2501.19399).
  kLog,
  // 1 + strength ln(1 + floor((i + 1) / L)): Llama 4's layers without positions (attn_scale,
  // floor_scale).
  kLlama4,
  // 1 + strength ln(1 + floor(i / L)): Ministral 3 (llama_4_scaling_beta).
  kMinistral,
};

struct QueryScale {
  QueryLaw law = QueryLaw::kNone;
  int64_t length = 0;   // L, where the law has one: at least 1, and for logn 2
  double strength = 0;  // where the law has one: finite, at least 0

  bool operator==(const QueryScale&) const = default;
};

// The factor at each position; one below 0 counts as 0. Throws Error if the length or the strength
// is out of range.
std::vector<double> query_factors(const QueryScale& scale, std::span<const int64_t> positions);

}  // namespace sextant
