#include "sextant/attention/cpu/pass_plan.h"

#include <algorithm>

namespace sextant::cpu {
namespace {

bool any_rotated(const Rotations& rotations) {
  return std::ranges::any_of(rotations.list, [](const RotationPair& sides) {
    return sides.query.rotation || sides.key.rotation;
  });
}

bool same_positions_for_all_batches(const Rotations& rotations) {
  return std::ranges::all_of(rotations.list, [](const RotationPair& sides) {
    return (!sides.query.rotation || sides.query.batch_stride == 0) &&
           (!sides.key.rotation || sides.key.batch_stride == 0);
  });
}

// The rows of [0, queries) that no block of the batch entry has.
void add_rows_outside(std::span<const BatchFrame> blocks, int64_t batch, int64_t queries,
                      std::vector<RowsOutside>& outside) {
  if (blocks.size() == 1) {  // as in decoding: without memory
    const Frame& only = blocks[0].frame;
    if (only.query_row > 0) outside.push_back({batch, 0, only.query_row});
    if (const int64_t last = only.query_row + only.queries; last < queries)
      outside.push_back({batch, last, queries});
    return;
  }
  std::vector<KeyRange> inside;
  for (const BatchFrame& block : blocks)
    inside.push_back({block.frame.query_row, block.frame.query_row + block.frame.queries});
  std::ranges::sort(inside, {}, &KeyRange::first);
  int64_t next = 0;
  for (const KeyRange& rows : inside) {
    if (rows.first > next) outside.push_back({batch, next, rows.first});
    next = rows.last;
  }
  if (queries > next) outside.push_back({batch, next, queries});
}

}  // namespace

bool any_growth(const Rotations& rotations) {
  return std::ranges::any_of(rotations.list, &RotationPair::grows);
}

void PassPlan::renew(std::span<const Frame> frames, std::span<const Sweep> sweeps,
                     const Diagonals& diagonals, const PlanShape& shape, int64_t longest_unit,
                     const Executor& executor) {
  set_rotations(sweeps, rotations);
  unit = unit_of_growth(rotations, frames, shape.keys, shape.batch, longest_unit);

  const bool rotated = any_rotated(rotations), shared = same_positions_for_all_batches(rotations);
  stands_.assign(rotated ? 0 : 1, {});
  blocks.clear();
  for (Frame frame : frames) {
    if (frame.queries == 0) continue;
    const bool every = frame.batch == kEveryBatch;
    const int64_t from = every ? 0 : frame.batch, to = every ? shape.batch : frame.batch + 1;
    for (frame.batch = from; frame.batch < to; ++frame.batch) {
      if (rotated && (frame.batch == from || !shared)) stands_.push_back(frame);
      blocks.push_back({.frame = frame,
                        .phases = static_cast<int64_t>(stands_.size()) - 1,
                        .diagonal = diagonals.index(frame.query_position - frame.key_position)});
    }
  }
  const auto batch = [](const BatchFrame& block) { return block.frame.batch; };
  if (!std::ranges::is_sorted(blocks, {}, batch)) std::ranges::stable_sort(blocks, {}, batch);
  blocks_of_batch.clear();
  for (int64_t b = 0; b <= shape.batch; ++b)
    blocks_of_batch.push_back(
        static_cast<size_t>(std::ranges::lower_bound(blocks, b, {}, batch) - blocks.begin()));
  outside.clear();
  outside.reserve(blocks.size() + static_cast<size_t>(shape.batch));
  for (int64_t b = 0; b < shape.batch; ++b) {
    const size_t from = blocks_of_batch[static_cast<size_t>(b)];
    const size_t to = blocks_of_batch[static_cast<size_t>(b) + 1];
    add_rows_outside(std::span(blocks).subspan(from, to - from), b, shape.queries, outside);
  }
  phases.renew(rotations, stands_, unit, executor);
}

}  // namespace sextant::cpu
