// The part of a plan that the CPU backends make of it: frames by batch entry, and cos and sin of
// the rows that are rotated. It serves every layer of a layout.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sextant/attention/cpu/phases.h"
#include "sextant/attention/plan.h"
#include "sextant/base/executor.h"

namespace sextant::cpu {

// A frame of one batch entry. Inside it queries and keys are counted from its first ones.
struct BatchFrame {
  Frame frame;           // batch is a batch entry
  int64_t phases = 0;    // index of its FramePhases
  int64_t diagonal = 0;  // of its first query and first key
};

// Query rows of a batch entry that lie in no frame.
struct RowsOutside {
  int64_t batch = 0, first = 0, last = 0;
};

struct PassPlan {
  int64_t unit = 0;                     // keys that are scored at once; a power of two, >= kLanes
  std::vector<BatchFrame> blocks;       // by batch entry; every one has queries
  std::vector<size_t> blocks_of_batch;  // [batch + 1]: where each entry's start
  std::vector<RowsOutside> outside;
  Rotations rotations;
  Phases phases;  // with growth, their origins follow the unit

  // Sets all of it, in the memory of the plan before.
  void renew(std::span<const Frame> frames, std::span<const Sweep> sweeps,
             const Diagonals& diagonals, const PlanShape& shape, int64_t longest_unit,
             const Executor& executor);

 private:
  std::vector<Frame> stands_;  // the frames whose phases differ
};

bool any_growth(const Rotations& rotations);

}  // namespace sextant::cpu
