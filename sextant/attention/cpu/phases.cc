#include "sextant/attention/cpu/phases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sextant/attention/cpu/parallel.h"
#include "sextant/attention/rotary/cos_sin.h"

namespace sextant::cpu {
namespace {

bool same(const SideRotation& a, const SideRotation& b) {
  return a.rotation == b.rotation && a.rotary_positions == b.rotary_positions &&
         a.batch_stride == b.batch_stride && a.axis_stride == b.axis_stride &&
         a.row_stride == b.row_stride && a.offset.data() == b.offset.data() &&
         a.offset.size() == b.offset.size();
}

// The side without its rotation if that has no pairs, and hence no gain: the identity.
SideRotation effective(const SideRotation& side) {
  return side.rotation && !side.rotation->pairs.empty() ? side : SideRotation{};
}

bool grows(const SideRotation& side) {
  return side.rotation && std::ranges::any_of(side.rotation->pairs,
                                              [](const auto& pair) { return pair.growth != 0; });
}

// Rows of one side whose phases are computed.
struct Rows {
  const SideRotation* side;
  int64_t batch, first, count;
  bool key;

  int64_t time(int axis, int64_t row) const {
    return side->rotary_positions[batch * side->batch_stride + axis * side->axis_stride +
                                  (first + row) * side->row_stride];
  }
};

// Runs of evenly spaced times, one list for each axis of the pairs: phases of such a run are cheap.
std::vector<std::vector<PositionRun>> time_runs(const Rows& rows) {
  std::vector<std::vector<PositionRun>> axes;
  for (const Rotation::Pair& pair : rows.side->rotation->pairs)
    axes.resize(std::max(axes.size(), static_cast<size_t>(pair.axis) + 1));
  for (int axis = 0; axis < static_cast<int>(axes.size()); ++axis)
    for (int64_t from = 0, to; from < rows.count; from = to) {
      to = from + 1;
      const int64_t first = rows.time(axis, from);
      const int64_t step = to < rows.count ? rows.time(axis, to) - first : 0;
      while (to < rows.count && rows.time(axis, to) - rows.time(axis, to - 1) == step) ++to;
      axes[static_cast<size_t>(axis)].push_back({first, step, to - from});
    }
  return axes;
}

void fill_pair(const Rows& rows, const std::vector<std::vector<PositionRun>>& axes, size_t f,
               float* cos, float* sin) {
  const Rotation::Pair& pair = rows.side->rotation->pairs[f];
  const Turns offset = rows.side->offset.empty() ? Turns{} : rows.side->offset[f];
  cos_sin_of_positions(pair.speed, offset, axes[static_cast<size_t>(pair.axis)], cos, sin);
}

// from: the index of the first row among all rows that have origins.
void scale_pair(const Rows& rows, size_t f, const SidePhases& side, int64_t group, int64_t from,
                float* cos, float* sin) {
  const Rotation& rotation = *rows.side->rotation;
  const Rotation::Pair& pair = rotation.pairs[f];
  if (rotation.gain == 1 && pair.growth == 0) return;
  const double growth = rows.key ? -pair.growth : pair.growth;
  for (int64_t i = 0; i < rows.count; ++i) {
    double factor = rotation.gain;
    if (growth != 0)
      factor *= std::exp(
          growth *
          static_cast<double>(
              rows.time(pair.axis, i) -
              side.origins[static_cast<size_t>((from + i) / group * side.axes + pair.axis)]));
    cos[i] = static_cast<float>(cos[i] * factor);
    sin[i] = static_cast<float>(sin[i] * factor);
  }
}

// Rows whose phases are computed one pair at a time and then interleaved: as many as stay in a near
// cache.
constexpr int64_t kPiece = 512;

// Computes the phases of at most kPiece rows from `from` (a multiple of kLanes) on. to:
// SidePhases::of_panel(from).
void fill_piece(const Rows& all, const SidePhases& side, int64_t group, int64_t from, float* to) {
  Rows rows = all;
  rows.first += from;
  rows.count = std::min(kPiece, all.count - from);
  const auto axes = time_runs(rows);
  const auto pairs = static_cast<int64_t>(side.rotation->pairs.size());
  std::array<float, kPiece> cos = {}, sin = {};
  for (int64_t f = 0; f < pairs; ++f, to += 2 * kLanes) {
    const auto pair = static_cast<size_t>(f);
    fill_pair(rows, axes, pair, cos.data(), sin.data());
    scale_pair(rows, pair, side, group, from, cos.data(), sin.data());
    for (int64_t i = 0; i < rows.count; i += kLanes) {
      std::copy_n(cos.data() + i, kLanes, to + i * 2 * pairs);
      std::copy_n(sin.data() + i, kLanes, to + i * 2 * pairs + kLanes);
    }
  }
}

// Whether both sides have the same phases, as in self-attention.
bool alike(const Rows& a, const Rows& b) {
  if (a.side->rotation != b.side->rotation || a.count != b.count ||
      !std::ranges::equal(a.side->offset, b.side->offset))
    return false;
  for (const Rotation::Pair& pair : a.side->rotation->pairs) {
    if (pair.axis > 0 || pair.growth != 0) return false;
  }
  for (int64_t i = 0; i < a.count; ++i)
    if (a.time(0, i) != b.time(0, i)) return false;
  return true;
}

// The origin of each group is the time of its middle row.
void set_origins(const Rows& rows, int64_t group, SidePhases& side) {
  for (const Rotation::Pair& pair : side.rotation->pairs)
    side.axes = std::max<int64_t>(side.axes, pair.axis + 1);
  for (int64_t from = 0; from < rows.count; from += group)
    for (int axis = 0; axis < side.axes; ++axis)
      side.origins.push_back(rows.time(axis, std::min(from + group / 2, rows.count - 1)));
}

}  // namespace

Rotations rotations_of(std::span<const Sweep> sweeps) {
  Rotations rotations;
  for (const Sweep& sweep : sweeps) {
    const RotationPair sides = {effective(sweep.query), effective(sweep.key), grows(sweep.query)};
    const auto found = std::ranges::find_if(rotations.list, [&](const RotationPair& other) {
      return same(sides.query, other.query) && same(sides.key, other.key);
    });
    rotations.of_sweep.push_back(static_cast<size_t>(found - rotations.list.begin()));
    if (found == rotations.list.end()) rotations.list.push_back(sides);
  }
  return rotations;
}

int64_t unit_of_growth(const Rotations& rotations, int64_t keys, int64_t batch, int64_t unit) {
  // It occurs in the phases of q and k, and once more between their origins: below e^88.
  constexpr double kMostExponent = 16;
  double fastest = 0;  // growth from one key to the next
  for (const RotationPair& sides : rotations.list) {
    if (!sides.grows) continue;
    for (int64_t b = 0; b < (sides.key.batch_stride == 0 ? 1 : batch); ++b)
      for (const Rotation::Pair& pair : sides.key.rotation->pairs) {
        const Rows rows = {&sides.key, b, 0, keys, true};
        for (int64_t j = 1; j < keys; ++j)
          fastest =
              std::max(fastest, std::abs(pair.growth) *
                                    std::abs(static_cast<double>(rows.time(pair.axis, j) -
                                                                 rows.time(pair.axis, j - 1))));
      }
  }
  while (unit > kLanes && fastest * static_cast<double>(unit) > 2 * kMostExponent) unit /= 2;
  return unit;
}

void fill_phases(const SideRotation& side, int64_t batch, KeyRange range, int64_t stride,
                 float* cos, float* sin) {
  const Rows rows = {&side, batch, range.first, range.last - range.first, false};
  const auto axes = time_runs(rows);
  for (size_t f = 0; f < side.rotation->pairs.size(); ++f, cos += stride, sin += stride) {
    fill_pair(rows, axes, f, cos, sin);
    scale_pair(rows, f, {}, 1, 0, cos, sin);
  }
}

Phases::Phases(const Rotations& rotations, const std::vector<Frame>& frames, int64_t unit,
               const Executor& executor)
    : rotations_(rotations.list.size()), list_(frames.size() * rotations.list.size()) {
  struct Task {
    Rows rows;
    SidePhases* side;
    int64_t group;
    int64_t at;  // in data_
  };
  struct Piece {
    const Task* task;
    int64_t from;  // row
  };
  std::vector<Task> tasks;
  std::vector<FramePhases*> shared;
  int64_t size = 0, work = 0;
  for (size_t n = 0; n < list_.size(); ++n) {
    const Frame& frame = frames[n / rotations_];
    const RotationPair& sides = rotations.list[n % rotations_];
    const auto add = [&](const Rows& rows, SidePhases& side) {
      if (!rows.side->rotation || rows.count == 0) return;
      const int64_t group = rows.key ? unit : kLanes;
      side.rotation = rows.side->rotation;
      if (sides.grows) set_origins(rows, group, side);
      tasks.push_back({rows, &side, group, size});
      const auto pairs = static_cast<int64_t>(side.rotation->pairs.size());
      size += 2 * pairs * round_up(rows.count, kLanes);
      work += pairs * rows.count;
    };
    const Rows queries = {&sides.query, frame.batch, frame.query_row, frame.queries, false};
    const Rows keys = {&sides.key, frame.batch, frame.key_row, frame.keys, true};
    add(queries, list_[n].query);
    if (sides.query.rotation && sides.key.rotation && alike(queries, keys))
      shared.push_back(&list_[n]);
    else
      add(keys, list_[n].key);
  }
  if (tasks.empty()) return;
  data_ = AlignedFloats(size);
  std::vector<Piece> pieces;
  for (const Task& task : tasks) {
    task.side->data = data_.data() + task.at;
    for (int64_t from = 0; from < task.rows.count; from += kPiece) pieces.push_back({&task, from});
  }
  for (FramePhases* phases : shared) phases->key = phases->query;
  constexpr double kSecondsOfPhase = 0.5e-9;
  share_out(executor, static_cast<int64_t>(pieces.size()),
            kSecondsOfPhase * static_cast<double>(work), [&](int64_t n, int) {
              const auto& [task, from] = pieces[static_cast<size_t>(n)];
              fill_piece(task->rows, *task->side, task->group, from,
                         data_.data() + (task->side->of_panel(from) - data_.data()));
            });
}

}  // namespace sextant::cpu
