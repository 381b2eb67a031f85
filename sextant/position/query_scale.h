// Factors on queries by position, which keep attention over a longer sequence from becoming
// flatter.
//
// Each factor is a function of the query's position alone (or of the number of keys that it sees).
// Positions count from 0.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sextant/base/export.h"

namespace sextant {

enum class QueryLaw {
  kNone,
  // max(1, ln(i + 1) / ln L): Su (kexue.fm 8823; bojone/rerope), Qwen's use_logn_attn.
  kLogn,
  // ln(i + 1) / ln L, below 1 within the training length, 0 at the first query.
  kLognUnclipped,
  // ln(i + 1), where i + 1 is the number of keys that a causal query sees: Scalable-Softmax, which
  // multiplies it by a learned parameter per head (Nakanishi 2025, arXiv 2501.19399).
  kLog,
  // 1 + strength ln(1 + floor((i + 1) / L)): Llama 4's layers without position encoding
  // (attn_scale, floor_scale).
  kLlama4,
  // 1 + strength ln(1 + floor(i / L)): Ministral 3 (llama_4_scaling_beta).
  kMinistral,
};

struct QueryScale {
  QueryLaw law = QueryLaw::kNone;
  int64_t length = 0;   // L, if the law has one: at least 1, and at least 2 for logn
  double strength = 0;  // if the law has one: finite, at least 0

  bool operator==(const QueryScale&) const = default;
};

// Returns the factor at each position; a position below 0 counts as 0. Throws Error if the length
// or the strength is out of range.
SEXTANT_API std::vector<double> query_factors(const QueryScale& scale,
                                              std::span<const int64_t> positions);

}  // namespace sextant
