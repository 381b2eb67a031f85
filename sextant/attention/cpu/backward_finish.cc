// The last step of the backward pass: adds partial sums in their order and gives gradients out.
#include <cmath>
#include <limits>
#include <vector>

#include "sextant/attention/cpu/backward.h"
#include "sextant/attention/cpu/parallel.h"

namespace sextant::cpu {
namespace {

void write_queries(const Backward& b, const BackwardTask& task, std::span<const float* const> sums,
                   int64_t at, const View<float>& to) {
  const Problem& p = b.problem;
  for (int64_t g = 0; g < p.group; ++g)
    for (int64_t i = 0; i < to.rows; ++i) {
      const int64_t row = at + (g * to.rows + i) * p.depth16;
      float* out = to.at(task.batch, task.key_head * p.group + g, i);
      for (int64_t c = 0; c < p.depth; ++c) out[c * to.column_stride] = sums[0][row + c];
      for (const float* more : sums.subspan(1))
        for (int64_t c = 0; c < p.depth; ++c) out[c * to.column_stride] += more[row + c];
    }
}

// The lanes' sums of one head, in their order.
template <class Table>
std::vector<const float*> sums_of(const Backward& b, const Table& table, float* TableSums::*which,
                                  int64_t head, int64_t size) {
  std::vector<const float*> sums;
  for (const Lane& lane : b.lanes) {
    const int64_t h = head - lane.sums.first_head;
    if (table.heads == 1)
      sums.push_back(lane.sums.*which);
    else if (h >= 0 && h < lane.sums.heads)
      sums.push_back(lane.sums.*which + h * size);
  }
  return sums;
}

void zero(const View<float>& x) {
  for (int64_t h = 0; h < x.heads; ++h)
    for (int64_t i = 0; i < x.rows; ++i)
      for (int64_t c = 0; c < x.columns; ++c) x(0, h, i, c) = 0;
}

void write_numbers(const Backward& b, const Table<float>& operand, const Numbers& table,
                   float* TableSums::*which, const View<float>& to) {
  if (!to) return;
  if (!table || b.lanes.empty()) return zero(to);
  std::vector<double> rows;
  for (int64_t h = 0; h < table.heads; ++h) {
    rows.assign(static_cast<size_t>(to.rows), 0);
    const auto sums = sums_of(b, table, which, h, table.stride);
    for (int64_t d = 0; d < b.problem.score.diagonals.count; ++d) {
      const auto n = static_cast<size_t>(d);
      double& row = rows[operand.row_at.empty() ? n : static_cast<size_t>(operand.row_at[n])];
      for (const float* sum : sums) row += static_cast<double>(sum[RowMap::kMargin + d]);
    }
    for (int64_t r = 0; r < to.rows; ++r)
      to(0, h, r, 0) = static_cast<float>(rows[static_cast<size_t>(r)]);
  }
}

void write_vectors(const Backward& b, const Vectors& table, float factor, float* TableSums::*which,
                   const View<float>& to, const Executor& executor) {
  if (!to) return;
  if (!table || b.lanes.empty()) return zero(to);
  constexpr double kSecondsOfFloat = 1e-9;
  const int64_t size = table.count16 * table.columns16;
  for (int64_t h = 0; h < table.heads; ++h) {
    const auto sums = sums_of(b, table, which, h, size);
    share_out(executor, table.count,
              kSecondsOfFloat * static_cast<double>(size) * static_cast<double>(sums.size()),
              [&](int64_t n, int) {
                const int64_t row = table.map.rows_turned() ? table.count - 1 - n : n;
                for (int64_t c = 0; c < table.columns; c += kLanes) {
                  float sum[kLanes] = {};
                  for (const float* part : sums)
                    for (int64_t lane = 0; lane < kLanes; ++lane)
                      sum[lane] += part[n * table.columns16 + c + lane];
                  for (int64_t lane = 0; lane < std::min(kLanes, table.columns - c); ++lane)
                    to(0, h, row, c + lane) = factor * sum[lane];
                }
              });
  }
}

}  // namespace

SplitSums::SplitSums(const Backward& backward)
    : backward_(backward),
      heads_(backward.tasks.size() / static_cast<size_t>(backward.splits),
             Head{std::vector<float*>(static_cast<size_t>(backward.splits)), backward.splits}) {}

float* SplitSums::take() {
  const std::lock_guard lock(mutex_);
  if (free_.empty()) {
    blocks_.emplace_back(backward_.query_sums_size());
    return blocks_.back().data();
  }
  float* const sums = free_.back();
  free_.pop_back();
  return sums;
}

void SplitSums::put(int64_t task, float* sums) {
  const int64_t splits = backward_.splits;
  Head& head = heads_[static_cast<size_t>(task / splits)];
  {
    const std::lock_guard lock(mutex_);
    head.sums[static_cast<size_t>(task % splits)] = sums;
    if (--head.missing > 0) return;
  }
  const std::vector<const float*> all(head.sums.begin(), head.sums.end());
  write_query_grads(backward_, backward_.tasks[static_cast<size_t>(task)], all);
  const std::lock_guard lock(mutex_);
  free_.insert(free_.end(), head.sums.begin(), head.sums.end());
}

void write_query_grads(const Backward& b, const BackwardTask& task,
                       std::span<const float* const> sums) {
  if (b.grad.q) write_queries(b, task, sums, 0, b.grad.q);
  if (b.grad.q_imag) write_queries(b, task, sums, b.queries_size(), b.grad.q_imag);
}

void write_table_grads(const Backward& b, const Executor& executor) {
  const Problem& p = b.problem;
  write_numbers(b, p.score.weight, p.weight, &TableSums::weight, b.grad.weight);
  write_numbers(b, p.score.bias, p.bias, &TableSums::bias, b.grad.bias);
  write_vectors(b, p.on_query, 1, &TableSums::on_query, b.grad.on_query, executor);
  write_vectors(b, p.on_key, p.scale, &TableSums::on_key, b.grad.on_key, executor);
  write_vectors(b, p.on_value, 1, &TableSums::on_value, b.grad.on_value, executor);
}

// The sink has no value: ds = p (0 - sum_j p dp).
void write_sink_grads(const Backward& b) {
  const Score<float>& s = b.problem.score;
  for (size_t h = 0; h < b.grad.sink.size(); ++h) {
    const double sink = s.sink[h];
    double sum = 0;
    for (int64_t batch = 0; batch < s.q.batch; ++batch) {
      const auto head = static_cast<int64_t>(h);
      const float* mean = b.mean_of(batch, head);
      for (int64_t i = 0; i < s.q.rows; ++i) {
        const double lse = b.result.lse(batch, head, i, 0);
        if (lse == -std::numeric_limits<double>::infinity()) continue;
        sum -= std::exp(sink - lse) * static_cast<double>(mean[i]);
      }
    }
    b.grad.sink[h] = static_cast<float>(sum);
  }
}

}  // namespace sextant::cpu
