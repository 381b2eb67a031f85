// The rotation of each row: cos and sin of its phase for every pair, computed once for all heads.
//
// They include the gain and the growth, so that rotating a pair costs four multiplications whatever
// the method. Growth (XPOS) is counted from an origin near by, because e^(growth * time) overflows
// at long times. The product of all factors,
//
//   e^(growth * (tq - tk)) = e^(growth * (tq - oq)) * e^(growth * (oq - ok)) * e^(growth * (ok -
//   tk))
//                            in the query's phases    for each tile            in the key's phases
//
// never overflows unless the score itself does. Queries have an origin for each kLanes of them,
// keys for each unit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sextant/attention/cpu/arena.h"
#include "sextant/attention/plan.h"
#include "sextant/base/executor.h"

namespace sextant::cpu {

// The rotations of queries and keys in a sweep; sweeps with equal rotations share it. Null
// rotations are the identity.
struct RotationPair {
  SideRotation query, key;
  bool grows = false;
};

// The distinct rotation pairs of the sweeps, and the index of each sweep's pair.
struct Rotations {
  std::vector<RotationPair> list;
  std::vector<size_t> of_sweep;
};
Rotations rotations_of(std::span<const Sweep> sweeps);

// The longest unit, at most `unit` keys, over which growth stays within what float32 holds.
int64_t unit_of_growth(const Rotations& rotations, int64_t keys, int64_t batch, int64_t unit);

// The phases of the rows of one side of one frame, in one rotation.
struct SidePhases {
  const Rotation* rotation = nullptr;  // null: the identity
  // cos of kLanes rows, then their sin, pair after pair, as rotate_panel() reads them: [rows /
  // kLanes][pairs][2][kLanes].
  const float* data = nullptr;
  // The times from which growth is counted, [origins][axes]; empty without growth.
  std::vector<int64_t> origins;
  int64_t axes = 0;

  // The phases of a panel, [pairs][2][kLanes]; `row`, its first, is a multiple of kLanes.
  const float* of_panel(int64_t row) const {
    return data + row * 2 * static_cast<int64_t>(rotation->pairs.size());
  }
};

struct FramePhases {
  SidePhases query, key;
};

// cos and sin of rows of one side, times the rotation's gain, [pairs][stride]. The rotation has no
// growth.
void fill_phases(const SideRotation& side, int64_t batch, KeyRange rows, int64_t stride, float* cos,
                 float* sin);

class Phases {
 public:
  Phases() = default;
  // One set for each rotation and each of `frames`, whose batch is the entry that its times come
  // from.
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
