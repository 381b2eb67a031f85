#include "sextant/attention/host_score.h"

#include "sextant/base/packed.h"

namespace sextant {

static_assert(lists_operands<HostGrad<float>, true>(),
              "host_score.h: HostGrad has other members than the operands with gradients");

template <class T>
HostGradOf<T>::HostGradOf(const ScoreGrad<T>& to, Workspace& memory) {
  each_differentiable([&](auto operand) { operand.of(grad_) = bind(operand.of(to), memory); });
}

template <class T>
HostView<T> HostGradOf<T>::bind(const AnyView<T>& to, Workspace& memory) {
  if (!to) return {};
  if (to.dtype == kDTypeOf<T>) return HostView(to.template as<T>());
  const int64_t elements = to.batch * to.heads * to.rows * to.columns;
  float* const floats = memory.floats(elements * int64_t{sizeof(T)} / int64_t{sizeof(float)});
  const HostView from(
      packed(reinterpret_cast<T*>(floats), to.batch, to.heads, to.rows, to.columns));
  rounded_.push_back({from, HostAnyView(to)});
  return from;
}

template <class T>
void HostGradOf<T>::write() const {
  for (const auto& [from, to] : rounded_)
    for (int64_t b = 0; b < to.batch; ++b)
      for (int64_t h = 0; h < to.heads; ++h)
        for (int64_t i = 0; i < to.rows; ++i)
          for (int64_t c = 0; c < to.columns; ++c)
            to.set(b, h, i, c, static_cast<double>(from(b, h, i, c)));
}

template class HostGradOf<float>;
template class HostGradOf<double>;

}  // namespace sextant
