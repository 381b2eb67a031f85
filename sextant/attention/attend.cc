// A plan is checked once, when it is prepared; calls check only their operands against it. Backends
// that read no positions of frames get arrays of rotary positions made from the frames.
#include "sextant/attention/attend.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "sextant/attention/check_field.h"
#include "sextant/attention/check_plan.h"
#include "sextant/attention/check_score.h"
#include "sextant/base/error.h"

namespace sextant {
namespace {

// The backend's function for T.
template <class T, class F32, class F64>
auto served(const Backend& backend, F32 float32, F64 float64) {
  constexpr bool kIsFloat = std::is_same_v<T, float>;
  const auto function = std::get < kIsFloat ? 0 : 1 > (std::tuple(float32, float64));
  if (!function)
    fail("attention: backend: expected one that serves " +
         std::string(kIsFloat ? "float32" : "float64") + ", but got \"" +
         std::string(backend.name) + "\"");
  return function;
}

std::vector<const Backend*>& joined() {
  static std::vector<const Backend*> all = {&reference_backend(),    &cpu_backend(),
                                            &cpu_bfloat16_backend(), &cpu_bf16x3_backend(),
                                            &cuda_backend(),         &cuda_float32_backend()};
  return all;
}

}  // namespace

std::span<const Backend* const> backends() { return joined(); }

std::string why_not(const Backend& backend) { return backend.why_not ? backend.why_not() : ""; }

void join(const Backend& backend) {
  for (const Backend* other : backends())
    if (other->name == backend.name)
      fail("attention: backend: expected a new name, but got \"" + std::string(backend.name) +
           "\", which one has already");
  joined().push_back(&backend);
}

const Backend& backend(std::string_view name) {
  std::string names;
  for (const Backend* candidate : backends()) {
    if (candidate->name == name) return *candidate;
    names += (names.empty() ? "" : ", ") + std::string(candidate->name);
  }
  fail("attention: backend: expected one of " + names + ", but got \"" + std::string(name) + "\"");
}

PreparedPlan::PreparedPlan(Plan plan, const PlanShape& shape, const Backend& backend,
                           const Context& context, Passes passes)
    : plan_(std::move(plan)), shape_(shape), backend_(&backend), passes_(passes) {
  check();
  if (backend.make_plan) own_ = backend.make_plan(plan_, shape_, passes, context);
}

void PreparedPlan::renew(const Plan& plan, const PlanShape& shape, const Context& context) {
  plan_ = plan;
  shape_ = shape;
  check();
  if (backend_->renew_plan)
    backend_->renew_plan(own_, plan_, shape_, passes_, context);
  else if (backend_->make_plan)
    own_ = backend_->make_plan(plan_, shape_, passes_, context);
}

void PreparedPlan::check() {
  check_plan(plan_, shape_);
  page_range_ = pages_of(plan_, shape_);
  covers_distances_ = sextant::covers_distances(plan_, shape_);
  if (!backend_->reads_frame_positions) add_positions();
}

// Rows in no frame have position 0. Only frames of key rows may overlap.
void PreparedPlan::add_positions() {
  positions_.clear();
  const bool shared = std::ranges::all_of(
      plan_.frames, [](const Frame& frame) { return frame.batch == kEveryBatch; });
  const auto add = [&](SideRotation& side, int64_t rows, auto row, auto count, auto position) {
    if (!side.rotation || side.rotary_positions) return;
    const int64_t entries = shared ? 1 : shape_.batch;
    std::vector<int64_t>& own = positions_.emplace_back(static_cast<size_t>(entries * rows));
    std::vector<bool> placed(own.size());
    for (const Frame& f : plan_.frames)
      for (int64_t b = 0; b < entries; ++b)
        if (f.batch == kEveryBatch || f.batch == b)
          for (int64_t n = 0; n < f.*count; ++n) {
            const auto at = static_cast<size_t>(b * rows + f.*row + n);
            if (placed[at] && own[at] != f.*position + n)
              refuse_field("frames", "one position for each key row without a rotary position",
                           std::to_string(own[at]) + " and " + std::to_string(f.*position + n) +
                               " for row " + std::to_string(f.*row + n));
            own[at] = f.*position + n;
            placed[at] = true;
          }
    side.rotary_positions = own.data();
    side.batch_stride = shared ? 0 : rows;
    side.axis_stride = 0;
  };
  for (Sweep& sweep : plan_.sweeps) {
    add(sweep.query, shape_.queries, &Frame::query_row, &Frame::queries, &Frame::query_position);
    add(sweep.key, shape_.keys, &Frame::key_row, &Frame::keys, &Frame::key_position);
  }
}

template <class T>
PlanShape shape_of(const Operands<T>& o, const Plan& plan) {
  return {.batch = o.q.batch,
          .heads = o.q.heads,
          .key_heads = o.k.heads,
          .queries = o.q.rows,
          .keys = plan.pages ? plan.pages.rows : o.k.rows,
          .page_rows = plan.pages ? o.k.rows : 0,
          .columns = o.q.columns,
          .value_columns = o.v.columns,
          .key_table = static_cast<bool>(o.on_key)};
}

template <class T>
void attend(const Operands<T>& operands, const PreparedPlan& plan, const Attended<T>& result,
            const Context& context) {
  check_operands(operands, plan);
  check_attended<T>(operands, {result.out, result.lse});
  const Backend& backend = plan.backend();
  served<T>(backend, backend.attend_f32, backend.attend_f64)(operands, plan, result, context);
}

template <class T>
void attend_backward(const Operands<T>& operands, const PreparedPlan& plan,
                     const Attended<const T>& result, std::type_identity_t<AnyView<const T>> d_out,
                     const ScoreGrad<T>& grad, const Context& context) {
  check_operands(operands, plan);
  check_attended(operands, result);
  check_grad(operands, plan.plan(), d_out, grad);
  const Backend& backend = plan.backend();
  if (!backend.attend_backward_f32 && !backend.attend_backward_f64)
    fail(
        "attention: backend: expected one with a backward pass (a library that was built with "
        "SEXTANT_INFERENCE has none), but got \"" +
        std::string(backend.name) + "\"");
  served<T>(backend, backend.attend_backward_f32, backend.attend_backward_f64)(
      operands, plan, result, d_out, grad, context);
}

template <class T>
void attend(const Score<T>& score, const Attended<T>& result, const Backend& backend,
            const Context& context) {
  check_qkv(score, score);
  attend<T>(score,
            PreparedPlan(score, shape_of<T>(score, score), backend, context, Passes::kForward),
            result, context);
}

template <class T>
void attend_backward(const Score<T>& score, const Attended<const T>& result,
                     std::type_identity_t<AnyView<const T>> d_out, const ScoreGrad<T>& grad,
                     const Backend& backend, const Context& context) {
  check_qkv(score, score);
  attend_backward<T>(score, PreparedPlan(score, shape_of<T>(score, score), backend, context),
                     result, d_out, grad, context);
}

template PlanShape shape_of(const Operands<float>&, const Plan&);
template PlanShape shape_of(const Operands<double>&, const Plan&);
template void attend(const Operands<float>&, const PreparedPlan&, const Attended<float>&,
                     const Context&);
template void attend(const Operands<double>&, const PreparedPlan&, const Attended<double>&,
                     const Context&);
template void attend_backward(const Operands<float>&, const PreparedPlan&,
                              const Attended<const float>&, AnyView<const float>,
                              const ScoreGrad<float>&, const Context&);
template void attend_backward(const Operands<double>&, const PreparedPlan&,
                              const Attended<const double>&, AnyView<const double>,
                              const ScoreGrad<double>&, const Context&);
template void attend(const Score<float>&, const Attended<float>&, const Backend&, const Context&);
template void attend(const Score<double>&, const Attended<double>&, const Backend&, const Context&);
template void attend_backward(const Score<float>&, const Attended<const float>&,
                              AnyView<const float>, const ScoreGrad<float>&, const Backend&,
                              const Context&);
template void attend_backward(const Score<double>&, const Attended<const double>&,
                              AnyView<const double>, const ScoreGrad<double>&, const Backend&,
                              const Context&);

}  // namespace sextant
