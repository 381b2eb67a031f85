// The float32 backend: SIMD, tiled, threaded. sizes.h shows the tiles of the score matrix.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <type_traits>

#include "sextant/attention/attend.h"
#include "sextant/attention/by_frame.h"
#include "sextant/attention/cpu/backward/backward.h"
#include "sextant/attention/cpu/forward/forward.h"
#include "sextant/attention/cpu/parallel.h"
#include "sextant/attention/cpu/problem.h"
#include "sextant/base/simd/amx.h"

namespace sextant {
namespace cpu {
namespace {

// The CPU backends' own part of a plan. All of them share it.
struct CpuPlan final : BackendPlan {
  PassPlan forward;
  ForwardItems items;
  std::optional<PassPlan> backward;  // if its phases are not those of the forward pass

  void renew(const Plan& plan, const PlanShape& shape, [[maybe_unused]] Passes passes,
             const Executor& executor) {
    forward.renew(plan.frames, plan.sweeps, plan.diagonals, shape, kUnit, executor);
    items.renew(forward, plan.sweeps, shape, executor.workers());
#ifndef SEXTANT_INFERENCE
    backward.reset();
    if (passes == Passes::kBoth && any_growth(forward.rotations))
      backward.emplace().renew(plan.frames, plan.sweeps, plan.diagonals, shape, longest_unit(shape),
                               executor);
#endif
  }
#ifndef SEXTANT_INFERENCE
  static int64_t longest_unit(const PlanShape& shape) {
    return backward_unit(std::max(shape.columns, shape.value_columns));
  }
#endif
};

void renew_plan(std::unique_ptr<BackendPlan>& own, const Plan& plan, const PlanShape& shape,
                Passes passes, const Context& context) {
  if (differs_by_frame(plan.sweeps)) return own.reset();  // each frame makes its own
  if (!own) own = std::make_unique<CpuPlan>();
  static_cast<CpuPlan&>(*own).renew(plan, shape, passes, *context.executor);
}

std::unique_ptr<BackendPlan> make_plan(const Plan& plan, const PlanShape& shape, Passes passes,
                                       const Context& context) {
  std::unique_ptr<BackendPlan> own;
  renew_plan(own, plan, shape, passes, context);
  return own;
}

PlanShape shape_of(const HostScore<float>& s) {
  return {.batch = s.q.batch,
          .heads = s.q.heads,
          .key_heads = s.k.heads,
          .queries = s.q.rows,
          .keys = key_rows(s),
          .columns = s.q.columns,
          .value_columns = s.v.columns,
          .key_table = static_cast<bool>(s.on_key.rows)};
}

// Writes the results of queries in no frame, which see no key.
void write_outside_frames(const PassPlan& plan, const HostAttended<float>& result) {
  const HostAnyView<float>& out = result.out;
  for (const RowsOutside& rows : plan.outside)
    for (int64_t i = rows.first; i < rows.last; ++i)
      for (int64_t h = 0; h < out.heads; ++h) {
        for (int64_t c = 0; c < out.columns; ++c) out.set(rows.batch, h, i, c, 0);
        result.lse(rows.batch, h, i, 0) = -std::numeric_limits<float>::infinity();
      }
}

// One scratch for each worker; the code that lays it out measures it first.
template <class Scratch>
class Scratches {
 public:
  template <class... Sizes>
  explicit Scratches(int workers, Workspace& memory, const Sizes&... sizes) {
    Arena measure;
    Scratch(sizes..., measure);
    const int64_t list_size = workers * round_up(sizeof(Scratch), kLanes);
    Arena arena(memory.floats(list_size + workers * measure.used()));
    list_ = arena.take<Scratch>(workers);
    for (int n = 0; n < workers; ++n) std::construct_at(list_ + n, sizes..., arena);
  }
  Scratch& operator[](int worker) { return list_[worker]; }

 private:
  static_assert(std::is_trivially_destructible_v<Scratch>);
  Scratch* list_ = nullptr;
};

// The memory of one call: the context's, or its own.
class CallMemory {
 public:
  explicit CallMemory(const Context& context)
      : memory_(context.workspace ? context.workspace : &own_) {
    memory_->reset();
  }
  operator Workspace&() { return *memory_; }  // NOLINT(google-explicit-constructor)

 private:
  Workspace own_;
  Workspace* memory_;
};

void forward(Pass pass, const HostScore<float>& score, const PassPlan& plan,
             const ForwardItems& cut, const HostAttended<float>& result, const Context& context) {
  const Executor& executor = *context.executor;
  CallMemory memory(context);
  const Problem problem(score, pass, plan, plan.unit, memory, executor);
  write_outside_frames(plan, result);
  if (cut.items.empty()) return;
  Workspace& floats = memory;
  const Forward forward = {problem, result,
                           cut.states_room > 0 ? floats.floats(cut.states_room) : nullptr};
  Scratches<ForwardScratch> scratches(executor.workers(), memory, problem, cut.item_rows);
  share_out(executor, static_cast<int64_t>(cut.items.size()), cut.seconds,
            [&](int64_t n, int worker) {
              run_forward_item(forward, cut.items[static_cast<size_t>(n)], scratches[worker]);
            });
  for (const ForwardItem& item : cut.merges) run_forward_merge(forward, item, scratches[0]);
}

// One frame with a rotation of its own.
void attend_frame(Pass pass, const HostScore<float>& score, const HostAttended<float>& result,
                  const Context& context) {
  const PlanShape shape = shape_of(score);
  PassPlan plan;
  plan.renew(score.frames, score.sweeps, score.diagonals, shape, kUnit, *context.executor);
  ForwardItems items;
  items.renew(plan, score.sweeps, shape, context.executor->workers());
  forward(pass, score, plan, items, result, context);
}

void attend(Pass pass, ByFrame<float>::Attend each_frame, const Operands<float>& operands,
            const PreparedPlan& prepared, const Attended<float>& result, const Context& context) {
  const HostScore<float> score(operands, prepared.plan());
  const auto* own = static_cast<const CpuPlan*>(prepared.of_backend());
  if (own)
    forward(pass, score, own->forward, own->items, on_host(result), context);
  else
    ByFrame<float>::attend(score, on_host(result), context, each_frame);
}

// A backend has one function for each pass, and the code is the same for all.
template <Pass kPass>
void attend(const Operands<float>& operands, const PreparedPlan& prepared,
            const Attended<float>& result, const Context& context) {
  const auto frame = [](const HostScore<float>& score, const HostAttended<float>& to,
                        const Context& in) { attend_frame(kPass, score, to, in); };
  attend(kPass, frame, operands, prepared, result, context);
}

#ifdef SEXTANT_INFERENCE
template <Pass kPass>
constexpr std::nullptr_t attend_backward = nullptr;
#else

void zero(const Executor& executor, const HostView<float>& x) {
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

void backward(Pass pass, const HostScore<float>& score, const PassPlan& plan, int64_t unit,
              const HostAttended<const float>& result, HostAnyView<const float> d_out,
              const HostGrad<float>& grad, const Context& context) {
  const Executor& executor = *context.executor;
  CallMemory memory(context);
  const Problem p(score, pass, plan, unit, memory, executor);
  Backward backward(p, result, d_out, grad, memory);
  constexpr double kSecondsOfFloat = 3e-10;
  share_out(
      executor, score.q.batch * score.q.heads,
      kSecondsOfFloat *
          static_cast<double>(score.q.batch * score.q.heads * score.q.rows * (score.v.columns + 1)),
      [&](int64_t n, int) { run_backward_mean(backward, n / score.q.heads, n % score.q.heads); });
  each_differentiable([&](auto operand) {
    if constexpr (operand.has(Axis::kBatch) && operand.elements != Elements::kAsStored)
      if (operand.of(grad)) zero(executor, operand.of(grad));
  });
  for (const HostView<float>& x : {grad.k, grad.v})
    if (x && !backward.keys_once) zero(executor, x);

  TableGradients tables(backward);
  if (!backward.lanes.empty()) {
    Scratches<BackwardScratch> scratches(executor.workers(), memory, backward);
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

void attend_backward_frame(Pass pass, const HostScore<float>& score,
                           const HostAttended<const float>& result, HostAnyView<const float> d_out,
                           const HostGrad<float>& grad, const Context& context) {
  const PlanShape shape = shape_of(score);
  PassPlan plan;
  plan.renew(score.frames, score.sweeps, score.diagonals, shape, CpuPlan::longest_unit(shape),
             *context.executor);
  backward(pass, score, plan, plan.unit, result, d_out, grad, context);
}

void attend_backward(Pass pass, ByFrame<float>::AttendBackward each_frame,
                     const Operands<float>& operands, const PreparedPlan& prepared,
                     const Attended<const float>& attended, AnyView<const float> d_attended,
                     const ScoreGrad<float>& to, const Context& context) {
  const HostScore<float> score(operands, prepared.plan());
  const HostAttended<const float> result = on_host(attended);
  const HostAnyView<const float> d_out(d_attended);
  Workspace memory;
  const HostGradOf<float> grads(to, memory);
  const HostGrad<float>& grad = grads.grad();
  const auto* own = static_cast<const CpuPlan*>(prepared.of_backend());
  if (!own)
    ByFrame<float>::backward(score, result, d_out, grad, context, each_frame);
  else if (!any_growth(own->forward.rotations))
    backward(pass, score, own->forward, CpuPlan::longest_unit(prepared.shape()), result, d_out,
             grad, context);
  else if (own->backward)
    backward(pass, score, *own->backward, own->backward->unit, result, d_out, grad, context);
  else
    each_frame(score, result, d_out, grad, context);
  grads.write();
}

template <Pass kPass>
void attend_backward(const Operands<float>& operands, const PreparedPlan& prepared,
                     const Attended<const float>& attended, AnyView<const float> d_attended,
                     const ScoreGrad<float>& to, const Context& context) {
  const auto frame = [](const HostScore<float>& score, const HostAttended<const float>& result,
                        HostAnyView<const float> d_out, const HostGrad<float>& grad,
                        const Context& in) {
    attend_backward_frame(kPass, score, result, d_out, grad, in);
  };
  attend_backward(kPass, frame, operands, prepared, attended, d_attended, to, context);
}

#endif  // SEXTANT_INFERENCE

}  // namespace
}  // namespace cpu

const Backend& cpu_backend() {
  static const Backend backend{.name = "cpu",
                               .description = "float32, SIMD, tiled, threaded",
                               .reads_frame_positions = true,
                               .make_plan = cpu::make_plan,
                               .renew_plan = cpu::renew_plan,
                               .attend_f32 = cpu::attend<cpu::Pass::kForward>,
                               .attend_backward_f32 = cpu::attend_backward<cpu::Pass::kBackward>};
  return backend;
}

const Backend& cpu_bfloat16_backend() {
  static const Backend backend{.name = "cpu-bf16",
                               .description = "as cpu, with products of bfloat16 forward",
                               .products = DType::kBfloat16,
                               .reads_frame_positions = true,
                               .batch_invariant = false,
                               .make_plan = cpu::make_plan,
                               .renew_plan = cpu::renew_plan,
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
      .reads_frame_positions = true,
      .batch_invariant = false,
      .make_plan = cpu::make_plan,
      .renew_plan = cpu::renew_plan,
      .attend_f32 = cpu::attend<cpu::Pass::kForwardOfTerms>,
      .attend_backward_f32 = cpu::attend_backward<cpu::Pass::kBackwardOfTerms>};
  return backend;
}

}  // namespace sextant
