// The oracle: the score equation, term by term, in float64, without regard to speed. Every backend
// is tested against it; it is tested against finite differences and the official implementations.
// head.h holds the equation for one head, forward.cc and backward.cc the two passes.
#include <cstddef>

#include "sextant/attention/attend.h"
#include "sextant/attention/by_frame.h"
#include "sextant/attention/reference/head.h"

namespace sextant {
namespace {

template <class T>
void attend_planned(const Operands<T>& operands, const PreparedPlan& plan,
                    const Attended<T>& attended, const Context& context) {
  const HostScore<T> score(operands, plan.plan());
  const HostAttended<T> result = on_host(attended);
  if (differs_by_frame(score.sweeps))
    ByFrame<T>::attend(score, result, context, reference::attend_all<T>);
  else
    reference::attend_all(score, result, context);
}

#ifdef SEXTANT_INFERENCE
template <class T>
constexpr std::nullptr_t attend_backward_planned = nullptr;
#else
template <class T>
void attend_backward_planned(const Operands<T>& operands, const PreparedPlan& plan,
                             const Attended<const T>& attended, AnyView<const T> d_attended,
                             const ScoreGrad<T>& to, const Context& context) {
  const HostScore<T> score(operands, plan.plan());
  const HostAttended<const T> result = on_host(attended);
  const HostAnyView<const T> d_out(d_attended);
  Workspace memory;
  const HostGradOf<T> grads(to, memory);
  const HostGrad<T>& grad = grads.grad();
  if (differs_by_frame(score.sweeps))
    ByFrame<T>::backward(score, result, d_out, grad, context, reference::attend_backward_all<T>);
  else
    reference::attend_backward_all(score, result, d_out, grad, context);
  grads.write();
}
#endif

}  // namespace

const Backend& reference_backend() {
  static const Backend backend{
      .name = "reference",
      .description = "float64 inside, naive, one term after the other: the oracle",
      .attend_f32 = attend_planned<float>,
      .attend_backward_f32 = attend_backward_planned<float>,
      .attend_f64 = attend_planned<double>,
      .attend_backward_f64 = attend_backward_planned<double>,
  };
  return backend;
}

}  // namespace sextant
