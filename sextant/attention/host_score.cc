#include "sextant/attention/host_score.h"

#include "sextant/base/packed.h"

namespace sextant {

template <class T>
HostGradOf<T>::HostGradOf(const ScoreGrad<T>& to, Workspace& memory)
    : grad_{.q = bind(to.q, memory),
            .k = bind(to.k, memory),
            .v = bind(to.v, memory),
            .q_imag = bind(to.q_imag, memory),
            .weight = bind(to.weight, memory),
            .bias = bind(to.bias, memory),
            .on_query = bind(to.on_query, memory),
            .on_key = bind(to.on_key, memory),
            .on_value = bind(to.on_value, memory),
            .query_bias = bind(to.query_bias, memory),
            .key_bias = bind(to.key_bias, memory),
            .sink = to.sink} {}

template <class T>
HostView<T> HostGradOf<T>::bind(const AnyView<T>& to, Workspace& memory) {
  if (!to) return {};
  if (to.dtype == kDTypeOf<T>) return HostView(to.template as<T>());
  const int64_t elements = to.batch * to.heads * to.rows * to.columns;
  float* const floats = memory.floats(elements * static_cast<int64_t>(sizeof(T) / sizeof(float)));
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
