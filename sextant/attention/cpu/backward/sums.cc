// The last step of the backward pass: adds partial sums in their order and writes gradients.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "sextant/attention/cpu/backward/backward.h"
#include "sextant/attention/cpu/parallel.h"

namespace sextant::cpu {
namespace {

void write_queries(const Backward& b, const BackwardTask& task, std::span<const float* const> sums,
                   int64_t at, const HostView<float>& to) {
  const Problem& p = b.problem;
  const int64_t columns16 = round_up(to.columns, kLanes);
  for (int64_t g = 0; g < p.group; ++g)
    for (int64_t i = 0; i < to.rows; ++i) {
      const int64_t row = at + (g * to.rows + i) * columns16;
      float* out = to.at(task.batch, task.key_head * p.group + g, i);
      for (int64_t c = 0; c < to.columns; ++c) out[c * to.column_stride] = sums[0][row + c];
      for (const float* more : sums.subspan(1))
        for (int64_t c = 0; c < to.columns; ++c) out[c * to.column_stride] += more[row + c];
    }
}

// The lanes that have all sums of the gradients of their heads.
struct Heads {
  const Backward& backward;
  std::span<const TableTasks> lanes;

  // Calls f(head, its sums in the order of the lanes) for each head of a table.
  template <class Entry, class F>
  void each(Entry operand, F&& f) const {
    const auto& table = operand.of(backward.problem);
    const bool shared = table.heads == 1;
    const int64_t first = shared ? 0 : lanes.front().sums.first_head;
    const int64_t last = shared ? 1 : lanes.back().sums.first_head + lanes.back().sums.heads;
    for (int64_t head = first; head < last; ++head) {
      std::vector<const float*> sums;
      for (const TableTasks& lane : lanes) {
        const int64_t h = head - lane.sums.first_head;
        if (shared)
          sums.push_back(operand.of(lane.sums));
        else if (h >= 0 && h < lane.sums.heads)
          sums.push_back(operand.of(lane.sums) + h * table.size());
      }
      f(head, sums);
    }
  }
};

void zero(const HostView<float>& x) {
  for (int64_t h = 0; h < x.heads; ++h)
    for (int64_t i = 0; i < x.rows; ++i)
      for (int64_t c = 0; c < x.columns; ++c) x(0, h, i, c) = 0;
}

// Writes the gradient of a table of one column.
template <class Entry>
void write_gradient(Entry operand, const Heads& heads, const PackedBias&, const Executor&) {
  const HostView<float>& to = operand.of(heads.backward.grad);
  const std::span<const int32_t> row_at = operand.of(heads.backward.problem.score).row_at;
  std::vector<double> rows;
  heads.each(operand, [&](int64_t h, std::span<const float* const> sums) {
    rows.assign(static_cast<size_t>(to.rows), 0);
    for (int64_t d = 0; d < heads.backward.problem.score.diagonals.count; ++d) {
      const auto n = static_cast<size_t>(d);
      double& row = rows[row_at.empty() ? n : static_cast<size_t>(row_at[n])];
      for (const float* sum : sums) row += static_cast<double>(sum[RowMap::kMargin + d]);
    }
    for (int64_t r = 0; r < to.rows; ++r)
      to(0, h, r, 0) = static_cast<float>(rows[static_cast<size_t>(r)]);
  });
}

// The same for that of axes, of which each maps its distances to rows of one table.
template <class Entry>
void write_gradient(Entry operand, const Heads& heads, const AxisBias&, const Executor&) {
  const HostView<float>& to = operand.of(heads.backward.grad);
  std::vector<double> rows;
  heads.each(operand, [&](int64_t h, std::span<const float* const> sums) {
    rows.assign(static_cast<size_t>(to.rows), 0);
    for (const PackedAxis& axis : heads.backward.problem.axes)
      axis.each_value([&](int32_t row, int64_t at) {
        for (const float* sum : sums)
          rows[static_cast<size_t>(row)] += static_cast<double>(sum[at]);
      });
    for (int64_t r = 0; r < to.rows; ++r)
      to(0, h, r, 0) = static_cast<float>(rows[static_cast<size_t>(r)]);
  });
}

// The same for a table of vectors.
template <class Entry>
void write_gradient(Entry operand, const Heads& heads, const PackedTable& table,
                    const Executor& executor) {
  const HostView<float>& to = operand.of(heads.backward.grad);
  constexpr double kSecondsOfFloat = 1e-9;
  heads.each(operand, [&](int64_t h, std::span<const float* const> sums) {
    share_out(
        executor, table.count,
        kSecondsOfFloat * static_cast<double>(table.size()) * static_cast<double>(sums.size()),
        [&](int64_t n, int) {
          const int64_t row = table.map.rows_reversed() ? table.count - 1 - n : n;
          for (int64_t c = 0; c < table.columns; c += kLanes) {
            float sum[kLanes] = {};
            for (const float* part : sums)
              for (int64_t lane = 0; lane < kLanes; ++lane)
                sum[lane] += part[n * table.columns16 + c + lane];
            for (int64_t lane = 0; lane < std::min(kLanes, table.columns - c); ++lane)
              to(0, h, row, c + lane) = table.factor * sum[lane];
          }
        });
  });
}

int64_t greatest_size(const std::vector<TableTasks>& lanes) {
  int64_t size = 0;
  for (const TableTasks& lane : lanes) size = std::max(size, lane.size);
  return size;
}

}  // namespace

float* SumsPool::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    all_.emplace_back(size_);
    return all_.back().data();
  }
  float* const sums = free_.back();
  free_.pop_back();
  return sums;
}

void SumsPool::give_back(std::span<float* const> sums) {
  const std::lock_guard lock(mutex_);
  free_.insert(free_.end(), sums.begin(), sums.end());
}

QueryGradients::QueryGradients(const Backward& backward)
    : backward_(backward),
      pool_(backward.query_sums_size()),
      heads_(backward.tasks.size() / static_cast<size_t>(backward.splits),
             Head{std::vector<float*>(static_cast<size_t>(backward.splits)), backward.splits}) {}

void QueryGradients::put(int64_t task, float* sums) {
  const int64_t splits = backward_.splits;
  Head& head = heads_[static_cast<size_t>(task / splits)];
  {
    const std::lock_guard lock(mutex_);
    head.sums[static_cast<size_t>(task % splits)] = sums;
    if (--head.missing > 0) return;
  }
  const std::vector<const float*> all(head.sums.begin(), head.sums.end());
  write_query_grads(backward_, backward_.tasks[static_cast<size_t>(task)], all);
  pool_.give_back(head.sums);
}

TableGradients::TableGradients(const Backward& backward)
    : backward_(backward),
      lanes_(backward.lanes),
      sums_(lanes_.size()),
      pool_(greatest_size(lanes_)) {
  bool shared = false;
  each_any_table([&](auto operand) {
    const HostView<float>& grad = operand.of(backward.grad);
    const auto& table = operand.of(backward.problem);
    if (grad && (!table || lanes_.empty())) zero(grad);
    shared = shared || (grad && table.heads == 1);
  });
  int64_t last_head = 0;  // end of the group's heads
  for (size_t n = 0; n < lanes_.size(); ++n) {
    const TableSums& sums = lanes_[n].sums;
    const auto lane = static_cast<int64_t>(n);
    if (n == 0 || (!shared && sums.first_head >= last_head))
      groups_.push_back({.first_lane = lane});
    groups_.back().last_lane = lane + 1;
    ++groups_.back().missing;
    last_head = sums.first_head + sums.heads;
  }
}

const TableSums& TableGradients::take(int64_t lane) {
  const auto n = static_cast<size_t>(lane);
  TableTasks& taken = lanes_[n];
  if (taken.size == 0) return taken.sums;
  sums_[n] = pool_.take();
  std::fill_n(sums_[n], taken.size, 0.0F);
  Arena arena(sums_[n]);
  lay_out(backward_, taken.sums, arena);
  return taken.sums;
}

void TableGradients::put(int64_t lane) {
  if (lanes_[static_cast<size_t>(lane)].size == 0) return;
  Group& group =
      *std::ranges::find_if(groups_, [&](const Group& some) { return lane < some.last_lane; });
  {
    const std::lock_guard lock(mutex_);
    // finish() reduces a single group, with all threads.
    if (--group.missing > 0 || groups_.size() == 1) return;
  }
  write(group, serial_executor());
  pool_.give_back(
      std::span(sums_).subspan(static_cast<size_t>(group.first_lane),
                               static_cast<size_t>(group.last_lane - group.first_lane)));
}

void TableGradients::finish(const Executor& executor) {
  if (groups_.size() == 1 && lanes_[0].size > 0) write(groups_[0], executor);
}

void TableGradients::write(const Group& group, const Executor& executor) {
  const Backward& b = backward_;
  const Heads heads = {
      b, std::span(lanes_).subspan(static_cast<size_t>(group.first_lane),
                                   static_cast<size_t>(group.last_lane - group.first_lane))};
  each_any_table([&](auto operand) {
    const auto& table = operand.of(b.problem);
    if (operand.of(b.grad) && table) write_gradient(operand, heads, table, executor);
  });
}

void write_query_grads(const Backward& b, const BackwardTask& task,
                       std::span<const float* const> sums) {
  if (b.grad.q) write_queries(b, task, sums, 0, b.grad.q);
  if (b.grad.q_imag) write_queries(b, task, sums, b.queries_size(), b.grad.q_imag);
  if (b.grad.table_query) write_queries(b, task, sums, b.table_query_sums(), b.grad.table_query);
}

// The sink has no value: ds = p (0 - sum_j p dp).
void write_sink_grads(const Backward& b) {
  const HostScore<float>& s = b.problem.score;
  const HostView<float>& of_query = b.grad.query_sink;
  if (b.grad.sink.empty() && !of_query) return;
  for (int64_t head = 0; head < s.q.heads; ++head) {
    double sum = 0;
    for (int64_t batch = 0; batch < s.q.batch; ++batch) {
      const float* mean = b.mean_of(batch, head);
      for (int64_t i = 0; i < s.q.rows; ++i) {
        const double lse = b.result.lse(batch, head, i, 0);
        if (lse == -std::numeric_limits<double>::infinity()) continue;
        const double from = b.problem.origins.at(batch, head, i);
        const double grad =
            -std::exp(sink_of(s, batch, head, i) - from - lse) * static_cast<double>(mean[i]);
        if (of_query) of_query(batch, head, i, 0) = static_cast<float>(grad);
        sum += grad;
      }
    }
    if (!b.grad.sink.empty()) b.grad.sink[static_cast<size_t>(head)] = static_cast<float>(sum);
  }
}

}  // namespace sextant::cpu
