// The steps of plain attention forward, each alone, on numbers that lie where they lie in the kernel:
// strips of kStrip queries in turn meet one unit of keys.
#pragma once

#include <cstdint>
#include <vector>

#include "sextant/attention/cpu/forward.h"
#include "sextant/attention/cpu/workspace.h"

namespace sextant::bench {

class Steps {
 public:
  static constexpr int64_t kQueries = 512;  // that share a unit of keys

  explicit Steps(int64_t columns);  // of q, k and v, a multiple of cpu::kLanes

  // Each does one strip's work.
  void score();   // scores = q k
  void soften();  // weights = e^(scores - most)
  void mix();     // out = weights v, and the sum of the weights
  void merge();   // with what was mixed of earlier units
  void next();    // goes to the next strip

  double operations_of_product()
      const;  // of score() or mix(): a multiplication and an addition are two

 private:
  int64_t columns_, row_ = 0;
  cpu::Floats numbers_;
  float *queries_ = nullptr, *keys_ = nullptr, *values_ = nullptr, *scores_ = nullptr;
  cpu::Partial strip_, all_;
};

}  // namespace sextant::bench
