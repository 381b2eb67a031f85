// The float32 backend: SIMD, tiled, threaded. sizes.h shows the tiles of the score matrix.
#include <algorithm>
#include <limits>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/attention/cpu/backward/backward.h"
#include "sextant/attention/cpu/forward/forward.h"
#include "sextant/attention/cpu/parallel.h"
#include "sextant/attention/cpu/problem.h"
#include "sextant/base/simd/amx.h"

namespace sextant {
namespace cpu {
namespace {

// Writes the results of queries in no frame, which see no key.
void write_outside_frames(const Problem& p, const Attended<float>& result) {
  const AnyView<float>& out = result.out;
  std::vector<char> inside;
  for (int64_t b = 0; b < out.batch; ++b) {
    inside.assign(static_cast<size_t>(out.rows), 0);
    for (size_t n = p.blocks_of_batch[static_cast<size_t>(b)];
         n < p.blocks_of_batch[static_cast<size_t>(b) + 1]; ++n)
      std::fill_n(inside.begin() + p.blocks[n].frame.query_row, p.blocks[n].frame.queries, 1);
    for (int64_t i = 0; i < out.rows; ++i) {
      if (inside[static_cast<size_t>(i)] != 0) continue;
      for (int64_t h = 0; h < out.heads; ++h) {
        for (int64_t c = 0; c < out.columns; ++c) out.set(b, h, i, c, 0);
        result.lse(b, h, i, 0) = -std::numeric_limits<float>::infinity();
      }
    }
  }
}

// One scratch for each worker; the code that lays it out measures it first.
template <class Scratch>
class Scratches {
 public:
  template <class... Sizes>
  explicit Scratches(int workers, const Sizes&... sizes) {
    Arena measure;
    Scratch(sizes..., measure);
    blocks_.reserve(static_cast<size_t>(workers));
    for (int n = 0; n < workers; ++n) {
      blocks_.emplace_back(measure.used());
      Arena arena(blocks_.back().data());
      list_.emplace_back(sizes..., arena);
    }
  }
  Scratch& operator[](int worker) { return list_[static_cast<size_t>(worker)]; }

 private:
  std::vector<AlignedFloats> blocks_;
  std::vector<Scratch> list_;
};

template <Pass kPass>
void attend(const Score<float>& score, const Attended<float>& result, const Executor& executor) {
  const Problem problem(score, kPass, kUnit, executor);
  write_outside_frames(problem, result);
  const Forward forward(problem, result, executor.workers());
  if (forward.items.empty()) return;
  Scratches<ForwardScratch> scratches(executor.workers(), problem, forward.item_rows);
  share_out(executor, static_cast<int64_t>(forward.items.size()), forward.seconds,
            [&](int64_t n, int worker) {
              run_forward_item(forward, forward.items[static_cast<size_t>(n)], scratches[worker]);
            });
  for (const ForwardItem& item : forward.merges) run_forward_merge(forward, item, scratches[0]);
}

void zero(const Executor& executor, const View<float>& x) {
  constexpr double kSecondsOfFloat = 2e-10;
  share_out(executor, x.batch * x.heads,
            kSecondsOfFloat * static_cast<double>(x.batch * x.heads * x.rows * x.columns),
            [&](int64_t n, int) {
              for (int64_t i = 0; i < x.rows; ++i) {
                float* row = x.at(n / x.heads, n % x.heads, i);
                for (int64_t c = 0; c < x.columns; ++c) row[c * x.column_stride] = 0;
              }
            });
}

template <Pass kPass>
void attend_backward(const Score<float>& score, const Attended<const float>& result,
                     AnyView<const float> d_out, const ScoreGrad<float>& grad,
                     const Executor& executor) {
  const Problem p(score, kPass, backward_unit(std::max(score.q.columns, score.v.columns)),
                  executor);
  Backward backward(p, result, d_out, grad);
  constexpr double kSecondsOfFloat = 3e-10;
  share_out(
      executor, score.q.batch * score.q.heads,
      kSecondsOfFloat *
          static_cast<double>(score.q.batch * score.q.heads * score.q.rows * (score.v.columns + 1)),
      [&](int64_t n, int) { run_backward_mean(backward, n / score.q.heads, n % score.q.heads); });
  for (const View<float>& x : {grad.query_bias, grad.key_bias})
    if (x) zero(executor, x);
  for (const View<float>& x : {grad.k, grad.v})
    if (x && !backward.keys_once) zero(executor, x);

  TableGradients tables(backward);
  if (!backward.lanes.empty()) {
    Scratches<BackwardScratch> scratches(executor.workers(), backward);
    const bool cut = backward.cut && backward.wants_queries();
    QueryGradients splits(backward);
    executor.run(static_cast<int64_t>(backward.lanes.size()), [&](int64_t n, int worker) {
      const TableTasks& lane = backward.lanes[static_cast<size_t>(n)];
      const TableSums& table_sums = tables.take(n);
      for (int64_t task = lane.first_task; task < lane.last_task; ++task) {
        BackwardScratch& scratch = scratches[worker];
        if (cut) scratch.query_sums = splits.take();
        run_backward_task(backward, table_sums, task, scratch);
        const float* const sums = scratch.query_sums;
        if (cut)
          splits.put(task, scratch.query_sums);
        else
          write_query_grads(backward, backward.tasks[static_cast<size_t>(task)], {&sums, 1});
      }
      tables.put(n);
    });
  }
  tables.finish(executor);
  write_sink_grads(backward);
}

}  // namespace
}  // namespace cpu

const Backend& cpu_backend() {
  static const Backend backend{.name = "cpu",
                               .description = "float32, SIMD, tiled, threaded",
                               .attend_f32 = cpu::attend<cpu::Pass::kForward>,
                               .attend_backward_f32 = cpu::attend_backward<cpu::Pass::kBackward>};
  return backend;
}

const Backend& cpu_bfloat16_backend() {
  static const Backend backend{.name = "cpu-bf16",
                               .description = "as cpu, with products of bfloat16 forward",
                               .products = Format::kBfloat16,
                               .batch_invariant = false,
                               .attend_f32 = cpu::attend<cpu::Pass::kForwardOfBfloat16>,
                               .attend_backward_f32 = cpu::attend_backward<cpu::Pass::kBackward>};
  return backend;
}

bool multiplies_bfloat16() { return cpu::has_dots_of_pairs() || amx::available(); }

bool multiplies_by_amx() { return amx::available(); }

const Backend& cpu_bf16x3_backend() {
  static const Backend backend{
      .name = "cpu-bf16x3",
      .description = "as cpu, with float32 multiplied in parts by AMX",
      .batch_invariant = false,
      .attend_f32 = cpu::attend<cpu::Pass::kForwardOfTerms>,
      .attend_backward_f32 = cpu::attend_backward<cpu::Pass::kBackwardOfTerms>};
  return backend;
}

}  // namespace sextant
