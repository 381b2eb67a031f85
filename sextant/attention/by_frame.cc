// Each frame becomes a score of its own: the rows of its queries and keys, of every operand that
// has them, and its own key ranges and rotations.
#include "sextant/attention/by_frame.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include "sextant/base/packed.h"

namespace sextant {
namespace {

// Rows [first, first + rows) of some batch entries.
template <class AView>
AView part(AView view, int64_t batch, int64_t batches, int64_t first, int64_t rows) {
  if (!view) return view;
  view.data = view.at(batch, 0, first);
  view.batch = batches;
  view.rows = rows;
  return view;
}

template <class T>
void fill(const HostView<T>& view, std::type_identity_t<T> value) {
  for (int64_t b = 0; view && b < view.batch; ++b)
    for (int64_t h = 0; h < view.heads; ++h)
      for (int64_t i = 0; i < view.rows; ++i)
        for (int64_t c = 0; c < view.columns; ++c) view(b, h, i, c) = value;
}

// The rows and batch entries of a frame.
struct Extent {
  Frame frame;
  int64_t batch, batches;

  template <class AView>
  AView of_queries(const AView& view) const {
    return part(view, batch, batches, frame.query_row, frame.queries);
  }
};

template <class T>
Extent extent(const HostScore<T>& s, size_t n) {
  const Frame& frame = s.frames[n];
  const bool every = frame.batch == kEveryBatch;
  return {frame, every ? 0 : frame.batch, every ? s.q.batch : 1};
}

SideRotation side_of(SideRotation side, size_t n, int64_t batch, int64_t row) {
  if (!side.rotation) return side;
  side.rotation += static_cast<int64_t>(n) * side.frame_stride;
  side.frame_stride = 0;
  if (side.rotary_positions)
    side.rotary_positions += batch * side.batch_stride + row * side.row_stride;
  return side;
}

// One frame as a score of its own. It owns its key ranges, which count rows from the start of its
// k.
template <class T>
class FrameScore {
 public:
  FrameScore(const HostScore<T>& s, size_t n)
      : extent_(extent(s, n)),
        first_key_(s.pages ? 0 : s.frames[n].key_row),
        score_(s),
        sweeps_(s.sweeps.begin(), s.sweeps.end()),
        axes_(s.axes.begin(), s.axes.end()) {
    const auto& [frame, batch, batches] = extent_;
    const int64_t keys = s.pages ? s.pages.rows : frame.keys;
    if (s.pages) score_.pages.at += batch * s.pages.batch_stride;
    each_operand([&](auto operand) {
      auto& x = operand.of(score_);
      if constexpr (operand.has(Axis::kQueries)) {
        x = extent_.of_queries(x);
        if constexpr (operand.has(Axis::kKeys))
          if (x) {
            x.data += first_key_ * x.column_stride;
            x.columns = keys;
          }
      } else if constexpr (operand.has(Axis::kKeys)) {
        if (!s.pages || !operand.has(Axis::kKeyHeads))
          x = part(x, extent_.batch, extent_.batches, first_key_, keys);
      }
    });
    frame_ = {.queries = frame.queries,
              .query_position = frame.query_position,
              .key_row = frame.key_row - first_key_,
              .keys = frame.keys,
              .key_position = frame.key_position};
    score_.frames = {&frame_, 1};
    score_.sweeps = sweeps_;
    for (PositionAxis& axis : axes_) {
      axis.query_positions += batch * axis.query_batch_stride + frame.query_row;
      axis.key_positions += batch * axis.key_batch_stride + first_key_;
    }
    score_.axes = axes_;
    score_.dropout.first_batch += batch;
    score_.dropout.first_query += frame.query_row;
    score_.dropout.first_key += first_key_;
    key_ranges_.resize(s.sweeps.size());
    for (size_t w = 0; w < s.sweeps.size(); ++w) bind_sweep(s.sweeps[w], n, w);
  }
  FrameScore(const FrameScore&) = delete;

  const HostScore<T>& score() const { return score_; }
  const Extent& rows() const { return extent_; }

 private:
  void bind_sweep(const Sweep& sweep, size_t n, size_t w) {
    const auto& [frame, batch, batches] = extent_;
    const int64_t entries = sweep.batch_stride == 0 ? 1 : batches;
    for (int64_t b = batch; b < batch + entries; ++b)
      for (int64_t i = 0; i < frame.queries; ++i) {
        const KeyRange range = sweep.key_ranges[b * sweep.batch_stride + frame.query_row + i];
        key_ranges_[w].push_back({range.first - first_key_, range.last - first_key_});
      }
    Sweep& own = sweeps_[w];
    own.key_ranges = key_ranges_[w].data();
    own.batch_stride = sweep.batch_stride == 0 ? 0 : frame.queries;
    own.query = side_of(sweep.query, n, batch, frame.query_row);
    own.key = side_of(sweep.key, n, batch, first_key_);
  }

  Extent extent_;
  int64_t first_key_;  // the key row at which the frame's k starts; 0 if k is in pages
  HostScore<T> score_;
  Frame frame_;
  std::vector<Sweep> sweeps_;
  std::vector<PositionAxis> axes_;
  std::vector<std::vector<KeyRange>> key_ranges_;
};

}  // namespace

bool differs_by_frame(std::span<const Sweep> sweeps) {
  return std::ranges::any_of(sweeps, [](const Sweep& sweep) {
    return sweep.query.frame_stride != 0 || sweep.key.frame_stride != 0;
  });
}

template <class T>
void ByFrame<T>::attend(const HostScore<T>& score, const HostAttended<T>& result,
                        const Context& context, Attend attend) {
  result.out.visit([](const auto& out) { fill(out, {}); });
  fill(result.lse, -std::numeric_limits<T>::infinity());
  for (size_t n = 0; n < score.frames.size(); ++n) {
    if (score.frames[n].queries == 0) continue;
    const FrameScore<T> one(score, n);
    attend(one.score(), {one.rows().of_queries(result.out), one.rows().of_queries(result.lse)},
           context);
  }
}

#ifndef SEXTANT_INFERENCE
template <class T>
void ByFrame<T>::backward(const HostScore<T>& score, const HostAttended<const T>& result,
                          HostAnyView<const T> d_out, const HostGrad<T>& grad,
                          const Context& context, AttendBackward backward) {
  // Totals of the gradients of keys and tables; the rows of queries belong to one frame each.
  std::array<GradientSum<T>, kDifferentiable> totals;
  std::array<std::vector<T>, kDifferentiable> shares;
  const auto each_view = [](auto&& f) {
    size_t n = 0;
    each_differentiable([&](auto operand) {
      if constexpr (operand.axis(1) != Axis::kNone) f(operand, n);
      ++n;
    });
  };
  each_view([&](auto operand, size_t n) {
    if (operand.has(Axis::kQueries))
      fill(operand.of(grad), T{0});
    else
      totals[n] = GradientSum<T>(operand.of(grad));
  });
  std::vector<T> sink(grad.sink.size());
  std::vector<double> sinks(grad.sink.size());
  for (size_t frame = 0; frame < score.frames.size(); ++frame) {
    if (score.frames[frame].queries == 0) continue;
    const FrameScore<T> one(score, frame);
    const Extent& rows = one.rows();
    HostGrad<T> own = {.sink = sink};
    each_view([&](auto operand, size_t n) {
      const HostView<T>& whole = operand.of(grad);
      if (!whole) return;
      if (operand.has(Axis::kQueries)) {
        operand.of(own) = rows.of_queries(whole);
        return;
      }
      const bool of_keys = operand.has(Axis::kKeys);
      const int64_t batches = of_keys ? rows.batches : 1;
      const int64_t count = of_keys ? rows.frame.keys : whole.rows;
      shares[n].resize(static_cast<size_t>(batches * whole.heads * count * whole.columns) + 1);
      operand.of(own) =
          HostView(packed(shares[n].data(), batches, whole.heads, count, whole.columns));
    });
    backward(one.score(), {rows.of_queries(result.out), rows.of_queries(result.lse)},
             rows.of_queries(d_out), own, context);
    each_view([&](auto operand, size_t n) {
      const bool of_keys = operand.has(Axis::kKeys);
      totals[n].add(operand.of(own), of_keys ? rows.batch : 0, 0, of_keys ? rows.frame.key_row : 0);
    });
    for (size_t h = 0; h < sink.size(); ++h) sinks[h] += static_cast<double>(sink[h]);
  }
  for (const GradientSum<T>& total : totals) total.write();
  for (size_t h = 0; h < sink.size(); ++h) grad.sink[h] = static_cast<T>(sinks[h]);
}
#endif

template struct ByFrame<float>;
template struct ByFrame<double>;

}  // namespace sextant
