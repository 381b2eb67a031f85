#include "sextant/attention/by_frame.h"

#include <algorithm>
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

template <class T, class F>
void each_element(const HostView<T>& view, F&& f) {
  for (int64_t b = 0; b < view.batch; ++b)
    for (int64_t h = 0; h < view.heads; ++h)
      for (int64_t i = 0; i < view.rows; ++i)
        for (int64_t c = 0; c < view.columns; ++c) f(view(b, h, i, c));
}

template <class T>
void fill(const HostView<T>& view, std::type_identity_t<T> value) {
  if (view) each_element(view, [&](T& x) { x = value; });
}

// The rows and batch entries of a frame.
struct Extent {
  Frame frame;
  int64_t batch, batches;

  template <class AView>
  AView of_queries(const AView& view) const {
    return part(view, batch, batches, frame.query_row, frame.queries);
  }
  template <class AView>
  AView of_keys(const AView& view) const {
    return part(view, batch, batches, frame.key_row, frame.keys);
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
        sweeps_(s.sweeps.begin(), s.sweeps.end()) {
    const auto& [frame, batch, batches] = extent_;
    score_.q = extent_.of_queries(s.q);
    score_.q_imag = extent_.of_queries(s.q_imag);
    if (s.pages) {
      score_.pages.at += batch * s.pages.batch_stride;
    } else {
      score_.k = extent_.of_keys(s.k);
      score_.v = extent_.of_keys(s.v);
    }
    if (s.mask) {
      score_.mask = extent_.of_queries(s.mask);
      score_.mask.data += first_key_ * s.mask.column_stride;
      score_.mask.columns = key_rows(score_);
    }
    frame_ = {.queries = frame.queries,
              .query_position = frame.query_position,
              .key_row = frame.key_row - first_key_,
              .keys = frame.keys,
              .key_position = frame.key_position};
    score_.frames = {&frame_, 1};
    score_.sweeps = sweeps_;
    score_.query_bias = extent_.of_queries(s.query_bias);
    if (s.key_bias) score_.key_bias = part(s.key_bias, batch, batches, first_key_, keys_of(s));
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
  int64_t keys_of(const HostScore<T>& s) const {
    return s.pages ? s.pages.rows : extent_.frame.keys;
  }

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
  std::vector<std::vector<KeyRange>> key_ranges_;
};

// The sum of the frames' gradients of one operand.
template <class T>
class Total {
 public:
  explicit Total(const HostView<T>& to)
      : to_(to), sum_(to ? static_cast<size_t>(to.batch * to.heads * to.rows * to.columns) : 0) {}

  // The buffer for one frame's gradient of `rows` rows, which add() adds to the sum.
  HostView<T> share(int64_t batches, int64_t rows) {
    if (!to_) return {};
    own_.resize(static_cast<size_t>(batches * to_.heads * rows * to_.columns) + 1);
    return HostView(packed(own_.data(), batches, to_.heads, rows, to_.columns));
  }

  void add(const HostView<T>& share, int64_t batch, int64_t first) {
    if (!to_) return;
    for (int64_t b = 0; b < share.batch; ++b)
      for (int64_t h = 0; h < share.heads; ++h)
        for (int64_t i = 0; i < share.rows; ++i) {
          const T* from = share.at(b, h, i);
          double* into =
              sum_.data() + (((batch + b) * to_.heads + h) * to_.rows + first + i) * to_.columns;
          for (int64_t c = 0; c < to_.columns; ++c) into[c] += static_cast<double>(from[c]);
        }
  }

  void write() const {
    size_t at = 0;
    if (to_) each_element(to_, [&](T& x) { x = static_cast<T>(sum_[at++]); });
  }

 private:
  HostView<T> to_;
  std::vector<double> sum_;
  std::vector<T> own_;
};

// The sums for tables, to which each frame contributes all rows.
template <class T>
struct TableTotals {
  Total<T> weight, bias, on_query, on_key, on_value;
  std::vector<double> sink;

  explicit TableTotals(const HostGrad<T>& grad)
      : weight(grad.weight),
        bias(grad.bias),
        on_query(grad.on_query),
        on_key(grad.on_key),
        on_value(grad.on_value),
        sink(grad.sink.size()) {}

  template <class F>
  void each(const HostGrad<T>& grad, F&& f) {
    f(weight, &HostGrad<T>::weight, grad.weight), f(bias, &HostGrad<T>::bias, grad.bias);
    f(on_query, &HostGrad<T>::on_query, grad.on_query);
    f(on_key, &HostGrad<T>::on_key, grad.on_key);
    f(on_value, &HostGrad<T>::on_value, grad.on_value);
  }
};

}  // namespace

bool differs_by_frame(std::span<const Sweep> sweeps) {
  return std::ranges::any_of(sweeps, [](const Sweep& sweep) {
    return sweep.query.frame_stride != 0 || sweep.key.frame_stride != 0;
  });
}

template <class T>
void attend_by_frame(const HostScore<T>& score, const HostAttended<T>& result,
                     const Context& context, Attend<T> attend) {
  result.out.visit([](const auto& out) { fill(out, {}); });
  fill(result.lse, -std::numeric_limits<T>::infinity());
  for (size_t n = 0; n < score.frames.size(); ++n) {
    if (score.frames[n].queries == 0) continue;
    const FrameScore<T> one(score, n);
    attend(one.score(), {one.rows().of_queries(result.out), one.rows().of_queries(result.lse)},
           context);
  }
}

template <class T>
void attend_backward_by_frame(const HostScore<T>& score, const HostAttended<const T>& result,
                              HostAnyView<const T> d_out, const HostGrad<T>& grad,
                              const Context& context, AttendBackward<T> backward) {
  fill(grad.q, T{0});
  fill(grad.q_imag, T{0});
  fill(grad.query_bias, T{0});
  Total<T> k(grad.k), v(grad.v), key_bias(grad.key_bias);
  TableTotals<T> tables(grad);
  std::vector<T> sink(grad.sink.size());
  for (size_t n = 0; n < score.frames.size(); ++n) {
    if (score.frames[n].queries == 0) continue;
    const FrameScore<T> one(score, n);
    const Extent& rows = one.rows();
    HostGrad<T> own = {.q = rows.of_queries(grad.q),
                       .k = k.share(rows.batches, rows.frame.keys),
                       .v = v.share(rows.batches, rows.frame.keys),
                       .q_imag = rows.of_queries(grad.q_imag),
                       .query_bias = rows.of_queries(grad.query_bias),
                       .key_bias = key_bias.share(rows.batches, rows.frame.keys),
                       .sink = sink};
    tables.each(grad, [&](Total<T>& total, HostView<T> HostGrad<T>::*field,
                          const HostView<T>& whole) { own.*field = total.share(1, whole.rows); });
    backward(one.score(), {rows.of_queries(result.out), rows.of_queries(result.lse)},
             rows.of_queries(d_out), own, context);
    k.add(own.k, rows.batch, rows.frame.key_row);
    v.add(own.v, rows.batch, rows.frame.key_row);
    key_bias.add(own.key_bias, rows.batch, rows.frame.key_row);
    tables.each(grad, [&](Total<T>& total, HostView<T> HostGrad<T>::*field, const HostView<T>&) {
      total.add(own.*field, 0, 0);
    });
    for (size_t h = 0; h < sink.size(); ++h) tables.sink[h] += static_cast<double>(sink[h]);
  }
  k.write();
  v.write();
  key_bias.write();
  tables.each(grad, [](Total<T>& total, auto, const HostView<T>&) { total.write(); });
  for (size_t h = 0; h < sink.size(); ++h) grad.sink[h] = static_cast<T>(tables.sink[h]);
}

template void attend_by_frame(const HostScore<float>&, const HostAttended<float>&, const Context&,
                              Attend<float>);
template void attend_by_frame(const HostScore<double>&, const HostAttended<double>&, const Context&,
                              Attend<double>);
template void attend_backward_by_frame(const HostScore<float>&, const HostAttended<const float>&,
                                       HostAnyView<const float>, const HostGrad<float>&,
                                       const Context&, AttendBackward<float>);
template void attend_backward_by_frame(const HostScore<double>&, const HostAttended<const double>&,
                                       HostAnyView<const double>, const HostGrad<double>&,
                                       const Context&, AttendBackward<double>);

}  // namespace sextant
