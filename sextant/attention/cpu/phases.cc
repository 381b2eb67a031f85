// Phases follow from runs of evenly spaced positions, one sine and cosine for each pair and run.
// Keys at consecutive positions share a set of phases, which later plans use again and which grows
// by half when it is too short.
#include "sextant/attention/cpu/phases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "sextant/attention/cpu/parallel.h"
#include "sextant/attention/rotary/cos_sin.h"

namespace sextant::cpu {
namespace {

// The side without its rotation if that has no pairs, and hence no gain: the identity.
SideRotation effective(const SideRotation& side) {
  return side.rotation && !side.rotation->pairs.empty() ? side : SideRotation{};
}

bool grows(const SideRotation& side) {
  return side.rotation && std::ranges::any_of(side.rotation->pairs,
                                              [](const auto& pair) { return pair.growth != 0; });
}

using Rows = PhaseRows;

bool has_one_axis(const Rotation& rotation) {
  return std::ranges::all_of(rotation.pairs, [](const auto& pair) { return pair.axis == 0; });
}

// The number of rows from `from` on that are evenly spaced.
int64_t evenly_spaced(const Rows& rows, int axis, int64_t from) {
  if (rows.of_frame()) return rows.count - from;
  int64_t to = from + 1;
  if (to == rows.count) return 1;
  const int64_t step = rows.time(axis, to) - rows.time(axis, from);
  while (to < rows.count && rows.time(axis, to) - rows.time(axis, to - 1) == step) ++to;
  return to - from;
}

PositionRun run_at(const Rows& rows, int axis, int64_t from, int64_t count) {
  const int64_t first = rows.time(axis, from);
  return {first, from + 1 < rows.count ? rows.time(axis, from + 1) - first : 0, count};
}

// Runs of evenly spaced times, one list for each axis of the pairs: phases of such a run are cheap.
// A single run, as in decoding, needs no memory.
class TimeRuns {
 public:
  explicit TimeRuns(const Rows& rows) {
    if (rows.count > 0 && has_one_axis(*rows.side->rotation) &&
        evenly_spaced(rows, 0, 0) == rows.count) {
      only_ = run_at(rows, 0, 0, rows.count);
      return;
    }
    for (const Rotation::Pair& pair : rows.side->rotation->pairs)
      axes_.resize(std::max(axes_.size(), static_cast<size_t>(pair.axis) + 1));
    for (int axis = 0; axis < static_cast<int>(axes_.size()); ++axis)
      for (int64_t from = 0, count; from < rows.count; from += count) {
        count = evenly_spaced(rows, axis, from);
        axes_[static_cast<size_t>(axis)].push_back(run_at(rows, axis, from, count));
      }
  }
  std::span<const PositionRun> of(int axis) const {
    if (axes_.empty()) return {&only_, 1};
    return axes_[static_cast<size_t>(axis)];
  }

 private:
  PositionRun only_;
  std::vector<std::vector<PositionRun>> axes_;
};

void fill_pair(const Rows& rows, const TimeRuns& times, size_t f, float* cos, float* sin) {
  const Rotation::Pair& pair = rows.side->rotation->pairs[f];
  const Turns offset = rows.side->offset.empty() ? Turns{} : rows.side->offset[f];
  cos_sin_of_positions(pair.frequency, offset, times.of(pair.axis), cos, sin);
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
  const Rows rows = all.from(from, kPiece);
  const TimeRuns times(rows);
  const auto pairs = static_cast<int64_t>(side.rotation->pairs.size());
  std::array<float, kPiece> cos = {}, sin = {};
  for (int64_t f = 0; f < pairs; ++f, to += 2 * kLanes) {
    const auto pair = static_cast<size_t>(f);
    fill_pair(rows, times, pair, cos.data(), sin.data());
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
  const bool consecutive = a.of_frame() && b.of_frame();
  for (int64_t i = 0; i < (consecutive ? std::min<int64_t>(a.count, 1) : a.count); ++i)
    if (a.time(0, i) != b.time(0, i)) return false;
  return true;
}

// Whether rows have consecutive positions, and phases that follow from position and rotation alone.
bool is_run(const Rows& rows) {
  if (!rows.side->rotation || rows.count == 0 || !rows.side->offset.empty()) return false;
  for (const Rotation::Pair& pair : rows.side->rotation->pairs)
    if (pair.axis > 0 || pair.growth != 0) return false;
  return evenly_spaced(rows, 0, 0) == rows.count &&
         (rows.count == 1 || rows.time(0, 1) - rows.time(0, 0) == 1);
}

int64_t floats_of(const Rows& rows) {
  return 2 * static_cast<int64_t>(rows.side->rotation->pairs.size()) * round_up(rows.count, kLanes);
}

Rows query_rows(const RotationPair& sides, const Frame& frame) {
  return {&sides.query, frame.batch, frame.query_row, frame.queries, false, frame.query_position};
}
Rows key_rows(const RotationPair& sides, const Frame& frame) {
  return {&sides.key, frame.batch, frame.key_row, frame.keys, true, frame.key_position};
}

bool keys_are_as_queries(const RotationPair& sides, const Frame& frame) {
  return sides.query.rotation && sides.key.rotation &&
         alike(query_rows(sides, frame), key_rows(sides, frame));
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

void set_rotations(std::span<const Sweep> sweeps, Rotations& rotations) {
  rotations.list.clear();
  rotations.of_sweep.clear();
  for (const Sweep& sweep : sweeps) {
    const RotationPair sides = {effective(sweep.query), effective(sweep.key), grows(sweep.query)};
    const auto found = std::ranges::find_if(rotations.list, [&](const RotationPair& other) {
      return same_side(sides.query, other.query) && same_side(sides.key, other.key);
    });
    rotations.of_sweep.push_back(static_cast<size_t>(found - rotations.list.begin()));
    if (found == rotations.list.end()) rotations.list.push_back(sides);
  }
}

int64_t unit_of_growth(const Rotations& rotations, std::span<const Frame> frames, int64_t keys,
                       int64_t batch, int64_t unit) {
  // It occurs in the phases of q and k, and once more between their origins: below e^88.
  constexpr double kMostExponent = 16;
  double fastest = 0;  // growth from one key to the next
  for (const RotationPair& sides : rotations.list) {
    if (!sides.grows) continue;
    for (int64_t b = 0; b < (sides.key.batch_stride == 0 ? 1 : batch); ++b)
      for (const Rotation::Pair& pair : sides.key.rotation->pairs) {
        const Rows rows = {&sides.key, b, 0, keys, true};
        const auto step = [&](int64_t from, int64_t to) {
          fastest =
              std::max(fastest, std::abs(pair.growth) * std::abs(static_cast<double>(to - from)));
        };
        if (rows.of_frame() && keys > 1) step(0, 1);
        for (size_t n = 1; rows.of_frame() && n < frames.size(); ++n)
          if (const Frame& last = frames[n - 1], &next = frames[n]; last.batch == next.batch)
            step(last.key_position + last.keys - 1, next.key_position);
        for (int64_t j = 1; !rows.of_frame() && j < keys; ++j)
          step(rows.time(pair.axis, j - 1), rows.time(pair.axis, j));
      }
  }
  while (unit > kLanes && fastest * static_cast<double>(unit) > 2 * kMostExponent) unit /= 2;
  return unit;
}

void fill_phases(const SideRotation& side, int64_t batch, KeyRange range, int64_t stride,
                 float* cos, float* sin) {
  const Rows rows = {&side, batch, range.first, range.last - range.first, false};
  const TimeRuns times(rows);
  for (size_t f = 0; f < side.rotation->pairs.size(); ++f, cos += stride, sin += stride) {
    fill_pair(rows, times, f, cos, sin);
    scale_pair(rows, f, {}, 1, 0, cos, sin);
  }
}

// The run that has the keys, or, if it may grow, one that can get them without a gap; or null.
Phases::KeyRun* Phases::run_of(const Rows& keys, bool may_grow) {
  const int64_t first = keys.time(0, 0);
  const auto found = std::ranges::find_if(runs_, [&](const KeyRun& run) {
    const int64_t last = run.first + run.count;
    return run.side.rotation == keys.side->rotation && run.first <= first &&
           (first - run.first) % kLanes == 0 &&
           (may_grow ? first <= std::max(last, run.wanted.last) : first + keys.count <= last);
  });
  return found == runs_.end() ? nullptr : &*found;
}

// Makes runs_ cover the keys of all frames. Runs that no frame needs remain until others are
// missing.
void Phases::find_runs(const Rotations& rotations, std::span<const Frame> frames) {
  constexpr KeyRange kNone = {std::numeric_limits<int64_t>::max(),
                              std::numeric_limits<int64_t>::min()};
  for (KeyRun& run : runs_) run.wanted = kNone;
  bool covered = true;
  for (const Frame& frame : frames)
    for (const RotationPair& sides : rotations.list) {
      const Rows keys = key_rows(sides, frame);
      if (!is_run(keys) || keys_are_as_queries(sides, frame)) continue;
      const int64_t first = keys.time(0, 0);
      KeyRun* run = run_of(keys, /*may_grow=*/false);
      covered = covered && run;
      if (!run) run = run_of(keys, /*may_grow=*/true);
      if (!run)
        run = &runs_.emplace_back(KeyRun{{.rotation = keys.side->rotation}, first, 0, kNone});
      run->wanted = {std::min(run->wanted.first, first),
                     std::max(run->wanted.last, first + keys.count)};
    }
  if (covered) return;
  std::erase_if(runs_, [](const KeyRun& run) { return run.wanted.first > run.wanted.last; });
  for (KeyRun& run : runs_)
    if (run.wanted.last > run.first + run.count) extend(run);
}

// Computes the rows that a run lacks; one that grows gets more than it lacks.
void Phases::extend(KeyRun& run) {
  const int64_t dropped = run.wanted.first - run.first, kept = run.count - dropped;
  const int64_t whole = kept / kLanes * kLanes, wanted = run.wanted.last - run.wanted.first;
  constexpr int64_t kLeast = 256;
  const int64_t count = run.count == 0 ? wanted : round_up(std::max(wanted, kept / 2 * 3), kLeast);
  const int64_t floats = 2 * static_cast<int64_t>(run.side.rotation->pairs.size());
  AlignedFloats data(floats * round_up(count, kLanes));
  std::copy_n(run.data.data() + floats * dropped, floats * whole, data.data());
  run.data = std::move(data);
  run.first = run.wanted.first;
  run.phases = {.rotation = run.side.rotation, .data = run.data.data()};
  run.count = count;
  const Rows rows = {&run.side, 0, whole, count - whole, true, run.first + whole};
  tasks_.push_back({rows, &run.phases, 0, run.data.data() + floats * whole});
}

void Phases::add_task(const Rows& rows, bool grows, int64_t group, SidePhases& side) {
  if (!rows.side->rotation || rows.count == 0) return;
  side.rotation = rows.side->rotation;
  if (grows) set_origins(rows, group, side);
  tasks_.push_back({rows, &side, group, nullptr});
}

void Phases::add_tasks(const Rotations& rotations, std::span<const Frame> frames, int64_t unit) {
  for (size_t n = 0; n < list_.size(); ++n) {
    const Frame& frame = frames[n / rotations_];
    const RotationPair& sides = rotations.list[n % rotations_];
    add_task(query_rows(sides, frame), sides.grows, kLanes, list_[n].query);
    const Rows keys = key_rows(sides, frame);
    if (keys_are_as_queries(sides, frame)) {
      alike_.push_back(&list_[n]);
    } else if (is_run(keys)) {
      const KeyRun& run = *run_of(keys, /*may_grow=*/false);
      list_[n].key = {.rotation = keys.side->rotation,
                      .data = run.phases.of_panel(keys.time(0, 0) - run.first)};
    } else {
      add_task(keys, sides.grows, unit, list_[n].key);
    }
  }
}

// Gives memory to the tasks that have none.
void Phases::place_tasks() {
  int64_t size = 0;
  for (const Task& task : tasks_) size += task.data ? 0 : floats_of(task.rows);
  if (size > size_) {
    data_ = {};
    data_ = AlignedFloats(size);
    size_ = size;
  }
  float* to = data_.data();
  for (Task& task : tasks_) {
    if (task.data) continue;
    task.side->data = task.data = to;
    to += floats_of(task.rows);
  }
}

void Phases::renew(const Rotations& rotations, std::span<const Frame> frames, int64_t unit,
                   const Executor& executor) {
  rotations_ = rotations.list.size();
  list_.clear();
  list_.resize(frames.size() * rotations_);
  tasks_.clear();
  alike_.clear();
  find_runs(rotations, frames);
  add_tasks(rotations, frames, unit);
  place_tasks();
  for (FramePhases* phases : alike_) phases->key = phases->query;
  compute(executor);
}

void Phases::compute(const Executor& executor) {
  pieces_.clear();
  int64_t work = 0;
  for (const Task& task : tasks_) {
    work += floats_of(task.rows) / 2;
    for (int64_t from = 0; from < task.rows.count; from += kPiece) pieces_.push_back({&task, from});
  }
  constexpr double kSecondsOfPhase = 0.5e-9;
  share_out(executor, static_cast<int64_t>(pieces_.size()),
            kSecondsOfPhase * static_cast<double>(work), [&](int64_t n, int) {
              const auto& [task, from] = pieces_[static_cast<size_t>(n)];
              const int64_t at = task->side->of_panel(from) - task->side->data;
              fill_piece(task->rows, *task->side, task->group, from, task->data + at);
            });
}

}  // namespace sextant::cpu
