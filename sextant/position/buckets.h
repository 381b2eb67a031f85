// Logarithmic buckets of distances: each small distance has its own bucket, larger ones share.
//
// Papers and implementations define the bucket as floor or ceil of a quotient of two logarithms.
// Where the bucket changes, this quotient is an integer, and the last bit of a float32 logarithm
// can move a distance into another bucket: a logarithm one ulp low changes standard T5 at distances
// 16, 32 and 64. Here every bucket's start is an integer that is computed exactly, once, and a
// lookup compares integers.
#pragma once

#include <cstdint>
#include <vector>

#include "sextant/base/export.h"

namespace sextant {

// T5 (Raffel et al. 2019, arXiv 1910.10683), mT5, umT5, TUPE-R. One side has n buckets (all of
// them, or half if bidirectional). The first e = floor(n / 2) hold one distance each; a larger
// distance a has bucket
//
//   e + floor( ln(a / e) / ln(max_distance / e) * (n - e) ),  at most n - 1
//
// Keys at or before the query use the first n buckets; keys after it use the second n, or bucket 0
// if not bidirectional. (So bucket n of a bidirectional table is never used.)
class SEXTANT_API T5Buckets {
 public:
  struct Options {
    int64_t buckets = 32;
    int64_t max_distance = 128;
    bool bidirectional = true;
  };

  // Throws Error if bidirectional buckets are odd, a side has fewer than two, or max_distance is
  // not above floor(n / 2) and below 2^31.
  explicit T5Buckets(const Options& options);

  // distance = query position - key position.
  int64_t bucket(int64_t distance) const;
  int64_t buckets() const { return bidirectional_ ? 2 * side() : side(); }

  // [n]: the smallest distance of each bucket of one side; equal to the next one if the bucket is
  // empty.
  const std::vector<int64_t>& starts() const { return starts_; }

 private:
  int64_t side() const { return static_cast<int64_t>(starts_.size()); }

  std::vector<int64_t> starts_;
  bool bidirectional_;
};

// DeBERTa v2 and v3 (He, Liu, Gao and Chen 2020, arXiv 2006.03654). With m = floor(buckets / 2) and
// distance d = query position - key position
//
//   bucket(d) = d                                                                    for |d| <= m
//             = sign(d) ( m + ceil( ln(|d| / m) / ln((max_positions - 1) / m) * (m - 1) ) )  beyond
//   row(d)    = clip(bucket(d) + buckets, 0, 2 buckets - 1)
class SEXTANT_API DebertaBuckets {
 public:
  // Rows of keys that are more than max_positions - 1 after the query: Hugging Face lets the bucket
  // grow, to row 0; Microsoft clips the distance first, to row 1. Released checkpoints were never
  // trained on such distances.
  enum class Flavour { kHuggingFace, kMicrosoft };
  struct Options {
    int64_t buckets = 256;
    int64_t max_positions = 512;
    Flavour flavour = Flavour::kHuggingFace;
  };

  // Throws Error if buckets is odd or below 4, or max_positions - 1 is not above m and below 2^31.
  explicit DebertaBuckets(const Options& options);

  int64_t bucket(int64_t distance) const;  // in [-buckets, buckets]
  int64_t row(int64_t distance) const;     // in [0, rows())
  int64_t rows() const { return 2 * buckets_; }

 private:
  std::vector<int64_t> starts_;  // [buckets + 1 or buckets]: first |distance| of each |bucket|
  int64_t buckets_;
};

}  // namespace sextant
