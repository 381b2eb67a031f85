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
// Sets them in the memory of those before.
void set_rotations(std::span<const Sweep> sweeps, Rotations& rotations);

// The longest unit, at most `unit` keys, over which growth stays within what float32 holds.
int64_t unit_of_growth(const Rotations& rotations, std::span<const Frame> frames, int64_t keys,
                       int64_t batch, int64_t unit);

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
// growth, and the side has rotary positions.
void fill_phases(const SideRotation& side, int64_t batch, KeyRange rows, int64_t stride, float* cos,
                 float* sin);

// Rows of one side whose phases are computed.
struct PhaseRows {
  const SideRotation* side;
  int64_t batch, first, count;
  bool key;
  int64_t position = 0;  // of the first row; read where the side has no rotary positions

  bool of_frame() const { return !side->rotary_positions; }
  int64_t time(int axis, int64_t row) const {
    if (of_frame()) return position + row;
    return side->rotary_positions[batch * side->batch_stride + axis * side->axis_stride +
                                  (first + row) * side->row_stride];
  }
  // The rows from `row` on, at most `most`.
  PhaseRows from(int64_t row, int64_t most) const {
    PhaseRows some = *this;
    some.first += row;
    some.position += row;
    some.count = count - row < most ? count - row : most;
    return some;
  }
};

class Phases {
 public:
  // One set for each rotation and each of `frames`, whose batch is the entry that its times come
  // from. Frames whose keys have consecutive positions share a set if their rotation is the same,
  // and their positions overlap or touch and begin a multiple of kLanes apart. Later plans use it
  // again. A set that is too short grows by half and loses the rows before those that are wanted,
  // so that a step of decoding computes the phases of one key on average, also of a window that
  // moves. A plan that is first made for all rows of the longest sequences takes no memory later.
  void renew(const Rotations& rotations, std::span<const Frame> frames, int64_t unit,
             const Executor& executor);

  const FramePhases& at(int64_t frame, size_t sides) const {
    return list_[static_cast<size_t>(frame) * rotations_ + sides];
  }

 private:
  // Keys at positions first, first + 1, ...
  struct KeyRun {
    SideRotation side;  // without rotary positions
    int64_t first, count = 0;
    KeyRange wanted = {};  // positions
    SidePhases phases = {};
    AlignedFloats data = {};
  };
  struct Task {
    PhaseRows rows;
    SidePhases* side;
    int64_t group;
    float* data;
  };
  struct Piece {
    const Task* task;
    int64_t from;  // row
  };

  KeyRun* run_of(const PhaseRows& keys, bool may_grow);
  void find_runs(const Rotations& rotations, std::span<const Frame> frames);
  void extend(KeyRun& run);
  void add_tasks(const Rotations& rotations, std::span<const Frame> frames, int64_t unit);
  void add_task(const PhaseRows& rows, bool grows, int64_t group, SidePhases& side);
  void place_tasks();
  void compute(const Executor& executor);

  size_t rotations_ = 0;
  std::vector<FramePhases> list_;
  std::vector<KeyRun> runs_;
  AlignedFloats data_;
  int64_t size_ = 0;  // of data_
  // Of one call of renew(), which keeps their memory.
  std::vector<Task> tasks_;
  std::vector<Piece> pieces_;
  std::vector<FramePhases*> alike_;
};

}  // namespace sextant::cpu
