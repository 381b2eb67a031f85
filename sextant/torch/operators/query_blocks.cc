// Blocks of queries, late ones first, each a call of attend() with the rows of every operand that
// has queries; those that use the lazy bias are computed again for gradients.
#include "sextant/torch/operators/query_blocks.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/torch/operators/checkpointed.h"
#include "sextant/torch/operators/tensor_data.h"
#include "sextant/torch/operators/views.h"

namespace sextant {
namespace {

at::Tensor tensor_of_frames(const std::vector<Frame>& frames) {
  at::Tensor result = at::empty({static_cast<int64_t>(frames.size()), 7}, at::kLong);
  std::ranges::copy(frames, reinterpret_cast<Frame*>(result.data_ptr<int64_t>()));
  return result;
}

// A block has about kBiasesAtOnce biases in memory over all batch entries and heads, and gradients
// of the same number. It has at least kQueriesAtOnce queries, because every block packs its keys
// again and adds to the gradients of all keys.
constexpr int64_t kBiasesAtOnce = 1 << 23, kQueriesAtOnce = 64;

int64_t queries_at_once(const TensorOperands& o) {
  if (o.lazy_query_bias.at_once > 0) return o.lazy_query_bias.at_once;
  const int64_t of_query = o.q.size(0) * o.q.size(1) * o.lazy_query_bias.diagonals.count;
  return std::max(kQueriesAtOnce, kBiasesAtOnce / std::max<int64_t>(of_query, 1));
}

// The query rows of one call of attend().
struct Rows {
  int64_t first = 0, last = 0;
  bool biased = false;  // whether its queries use the lazy_query_bias

  int64_t count() const { return last - first; }
};

std::vector<Rows> blocks(const TensorOperands& o) {
  std::vector<bool> biased(static_cast<size_t>(o.q.size(2)));
  for (const Frame& f : values_of<Frame>(o.frames))
    for (int64_t i = 0; i < f.queries; ++i)
      if (f.query_position + i >= o.lazy_query_bias.from)
        biased[static_cast<size_t>(f.query_row + i)] = true;
  const int64_t at_once = queries_at_once(o);
  std::vector<Rows> result;
  for (int64_t i = 0; i < o.q.size(2); ++i) {
    const bool own = biased[static_cast<size_t>(i)];
    const bool full = !result.empty() && own && result.back().count() >= at_once;
    if (result.empty() || full || result.back().biased != own) result.push_back({i, i, own});
    ++result.back().last;
  }
  return result;
}

// The part of a frame that is in `rows`, with query rows counted from the first of `rows`.
Frame cut(Frame frame, const Rows& rows) {
  const int64_t first = std::max(frame.query_row, rows.first);
  const int64_t last = std::min(frame.query_row + frame.queries, rows.last);
  frame.query_position += first - frame.query_row;
  frame.queries = std::max<int64_t>(last - first, 0);
  frame.query_row = frame.queries > 0 ? first - rows.first : 0;
  return frame;
}

// The operands of some query rows, without the lazy_query_bias.
TensorOperands part_of(const TensorOperands& o, const Rows& rows) {
  TensorOperands part = o;
  part.lazy_query_bias = {};
  part.plans = {};  // each block has frames of its own
  part.dropout.first_query += rows.first;
  each_tensor(part, [&](auto operand, at::Tensor& x) {
    narrow_to(operand, Axis::kQueries, rows.first, rows.count(), x);
  });
  for (size_t at = kAxisQueries; at < part.axes.size(); at += kAxisTensors)
    part.axes[at] = part.axes[at].narrow(1, rows.first, rows.count());
  for (SweepOperand& sweep : part.sweeps) {
    sweep.key_ranges = sweep.key_ranges.narrow(1, rows.first, rows.count());
    if (sweep.query_rotary_positions.defined())
      sweep.query_rotary_positions =
          sweep.query_rotary_positions.narrow(2, rows.first, rows.count());
    sweep.of_frames.clear();
  }
  const std::vector<Frame> whole = values_of<Frame>(o.frames);
  std::vector<Frame> frames;
  for (size_t n = 0; n < whole.size(); ++n) {
    const Frame frame = cut(whole[n], rows);
    const bool needed = frames.empty() && n + 1 == whole.size();  // a plan has at least one
    if (frame.queries == 0 && !needed) continue;
    frames.push_back(frame);
    for (size_t s = 0; s < o.sweeps.size(); ++s)
      if (const auto& rotations = o.sweeps[s].of_frames; !rotations.empty())
        part.sweeps[s].of_frames.push_back(rotations[n]);
  }
  part.frames = tensor_of_frames(frames);
  return part;
}

std::vector<at::Tensor*> defined_tensors(TensorOperands& o) {
  const auto all = differentiable(o);
  std::vector<at::Tensor*> some(all.begin(), all.end());
  std::erase_if(some, [](const at::Tensor* x) { return !x->defined(); });
  return some;
}

// Whether there are tables beside `bias`, which a block of biased queries does not use.
bool has_other_tables(const TensorOperands& o) {
  bool has = false;
  each_tensor(o, [&](auto operand, const at::Tensor& x) {
    has = has || (operand.has(Axis::kRows) && &x != &o.bias.rows && x.defined());
  });
  return has;
}

// The positions of a block's queries, [entries, queries]; one entry if all batch entries have the
// same positions.
struct Positions {
  int64_t entries = 1, queries = 0;
  std::vector<int64_t> at = {};  // 0 for rows in no frame
  int64_t farthest = 0;          // the longest distance to a key
};

Positions positions_of(const TensorOperands& o) {
  Positions positions = {.queries = o.q.size(2)};
  const std::vector<Frame> frames = values_of<Frame>(o.frames);
  if (std::ranges::any_of(frames, [](const Frame& f) { return f.batch != kEveryBatch; }))
    positions.entries = o.q.size(0);
  positions.at.resize(static_cast<size_t>(positions.entries * positions.queries));
  for (const Frame& f : frames) {
    each_entry(f, positions.entries, [&](int64_t b) {
      for (int64_t i = 0; i < f.queries; ++i)
        positions.at[static_cast<size_t>(b * positions.queries + f.query_row + i)] =
            f.query_position + i;
    });
    positions.farthest =
        std::max(positions.farthest, f.query_position + f.queries - 1 - f.key_position);
  }
  return positions;
}

// Attends with a block of queries that use the lazy_query_bias.
std::vector<at::Tensor> attend_biased(TensorOperands part, int64_t first,
                                      const LazyQueryBias& bias) {
  const Positions positions = positions_of(part);
  const int64_t farthest =
      std::max(positions.farthest, bias.diagonals.distance(bias.diagonals.count - 1));
  Diagonals diagonals = bias.diagonals;
  // Early blocks have no long distances, so they need fewer diagonals. Other tables need the
  // diagonals as they are.
  if (!has_other_tables(part) && farthest < diagonals.farthest)
    diagonals = {farthest, diagonals.count - (diagonals.farthest - farthest)};
  part.farthest = diagonals.farthest;
  part.bias = {};

  std::vector<at::Tensor> inputs = bias.inputs;
  for (at::Tensor* x : defined_tensors(part)) inputs.push_back(*x);
  const auto run = [part, first, bias, positions,
                    diagonals](const std::vector<at::Tensor>& values) {
    TensorOperands o = part;
    const size_t of_bias = bias.inputs.size();
    const std::vector<at::Tensor*> operands = defined_tensors(o);
    for (size_t n = 0; n < operands.size(); ++n) *operands[n] = values[of_bias + n];
    const at::Tensor rows =
        bias.rows({values.begin(), values.begin() + static_cast<int64_t>(of_bias)},
                  {first, positions.at}, diagonals);
    o.query_bias =
        rows.dim() == 4
            ? rows
            : rows.reshape({rows.size(0), positions.entries, positions.queries, diagonals.count})
                  .transpose(0, 1);
    const auto [out, lse] = attend(o);
    return std::vector<at::Tensor>{out, lse};
  };
  return checkpointed(run, inputs);
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> attend_by_query(const TensorOperands& o) {
  if (o.query_bias.defined())
    fail("attend: query_bias: expected none beside a lazy_query_bias, but got a tensor");
  const std::vector<Rows> all = blocks(o);
  std::vector<at::Tensor> outs(all.size()), lses(all.size());
  // The last block is first, because late queries have the most biases: the memory that it frees is
  // large enough for the others. In the opposite order each block would leave a hole in malloc's
  // heap, between results that stay, that is too small for the next block.
  for (size_t n = all.size(); n-- > 0;) {
    const TensorOperands part = part_of(o, all[n]);
    if (all[n].biased) {
      const std::vector<at::Tensor> both = attend_biased(part, all[n].first, o.lazy_query_bias);
      outs[n] = both[0];
      lses[n] = both[1];
    } else {
      std::tie(outs[n], lses[n]) = attend(part);
    }
  }
  if (outs.size() == 1) return {outs[0], lses[0]};
  if (outs.empty()) {  // no query
    TensorOperands none = o;
    none.lazy_query_bias = {};
    return attend(none);
  }
  return {at::cat(outs, 2), at::cat(lses, 2)};
}

}  // namespace sextant
