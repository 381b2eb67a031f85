// How each row is turned: cos and sin of its phase for every pair, computed once for all heads.
//
// They hold the gain and the growth too, so that turning a pair costs four multiplications whatever
// the method. Growth (XPOS) cannot be held as it stands, for e^(growth * time) overflows at long
// times; it is counted from an origin near by, and what the origins leave out,
//
//   e^(growth * (tq - tk)) = e^(growth * (tq - oq)) * e^(growth * (oq - ok)) * e^(growth * (ok -
//   tk))
//                            in the query's phases    for each tile            in the key's phases
//
// never overflows unless the score itself does. Queries have an origin for each kLanes of them,
// keys for each unit.
#pragma once

#include <cstdint>
#include <vector>

#include "sextant/attention/cpu/arena.h"
#include "sextant/attention/score.h"
#include "sextant/base/executor.h"

namespace sextant::cpu {

// One way of turning; sweeps that turn alike share it. Without a rotation: as the rows are.
struct RotationPair {
  SideRotation query, key;
  bool grows = false;
};

// The different turns among the sweeps, and which of them each sweep has.
struct Rotations {
  std::vector<RotationPair> list;
  std::vector<size_t> of_sweep;
};
Rotations rotations_of(const std::vector<Sweep>& sweeps);

// The longest unit, at most `unit` keys, over which growth stays within what float32 holds.
int64_t unit_of_growth(const Rotations& rotations, int64_t keys, int64_t batch, int64_t unit);

// The rows of one side of one frame, turned one way.
struct SidePhases {
  const Rotation* rotation = nullptr;  // null: not turned
  // cos of kLanes rows, then their sin, for each pair in turn, as panels are turned: [rows /
  // kLanes][pairs][2][kLanes].
  const float* data = nullptr;
  // Only with growth: the time from which it is counted, [origins][axes].
  std::vector<int64_t> origins;
  int64_t axes = 0;

  // Of rows from `row` on, a multiple of kLanes: [pairs][2][kLanes].
  const float* of_panel(int64_t row) const {
    return data + row * 2 * static_cast<int64_t>(rotation->pairs.size());
  }
};

struct FramePhases {
  SidePhases query, key;
};

// cos and sin of rows of one side, times the rotation's gain: of pair f and the i-th of the rows,
// at [f * stride + i]. Without growth.
void fill_phases(const SideRotation& side, int64_t batch, KeyRange rows, int64_t stride, float* cos,
                 float* sin);

class Phases {
 public:
  Phases() = default;
  // One set for each of `frames` (with the batch entry that its times are read from) and way.
  Phases(const Rotations& rotations, const std::vector<Frame>& frames, int64_t unit,
         const Executor& executor);

  const FramePhases& at(int64_t frame, size_t sides) const {
    return list_[static_cast<size_t>(frame) * rotations_ + sides];
  }

 private:
  size_t rotations_ = 0;
  std::vector<FramePhases> list_;
  AlignedFloats data_;
};

}  // namespace sextant::cpu
