// Distances in logarithmic buckets: each near distance has a bucket of its own, farther ones share.
//
// Papers and codes write the bucket as floor or ceil of a quotient of two logarithms. At its jumps
// that quotient is an integer, and the last bit of a float32 logarithm moves a distance into
// another bucket: a logarithm one ulp low breaks standard T5 at distances 16, 32 and 64. Here every
// jump is an integer, found exactly once, and a lookup compares integers.
#pragma once

#include <cstdint>
#include <vector>

namespace sextant {

// T5 (Raffel et al. 2019, arXiv 1910.10683), mT5, umT5, TUPE-R. Of the n buckets of one side (all
// of them, or half if bidirectional) the first e = floor(n / 2) hold one distance each; farther
// ones, a, go to
//
//   e + floor( ln(a / e) / ln(max_distance / e) * (n - e) ),  at most n - 1
//
// Keys at or before the query take the first n buckets; keys after it the second n, or, if not
// bidirectional, bucket 0. (So bucket n of a bidirectional table is never used.)
class T5Buckets {
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

  // [n]: the least distance of each bucket of one side; equal to the next if the bucket is empty.
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
class DebertaBuckets {
 public:
  // What lies beyond max_positions - 1 to the right: Hugging Face lets the bucket grow, to row 0;
  // Microsoft clips the distance first, to row 1. Released checkpoints never met such a distance.
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
  std::vector<int64_t> starts_;  // [buckets + 1 or buckets]: the least |distance| of each |bucket|
  int64_t buckets_;
};

}  // namespace sextant
