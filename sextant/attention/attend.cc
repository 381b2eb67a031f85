#include "sextant/attention/attend.h"

#include <array>
#include <string>
#include <type_traits>

#include "sextant/attention/by_frame.h"
#include "sextant/attention/check_score.h"
#include "sextant/base/error.h"

namespace sextant {
namespace {

// The backend's function for one scalar type.
template <class F>
F served(const Backend& backend, F function, const char* type) {
  if (!function) {
    fail("attention: backend: expected one that serves " + std::string(type) + ", but got \"" +
         std::string(backend.name) + "\"");
  }
  return function;
}
template <class T>
Attend<T> forward_of(const Backend& backend) {
  if constexpr (std::is_same_v<T, float>) {
    return served(backend, backend.attend_f32, "float32");
  } else {
    return served(backend, backend.attend_f64, "float64");
  }
}
template <class T>
AttendBackward<T> backward_of(const Backend& backend) {
  if constexpr (std::is_same_v<T, float>) {
    return served(backend, backend.attend_backward_f32, "float32");
  } else {
    return served(backend, backend.attend_backward_f64, "float64");
  }
}

}  // namespace

std::span<const Backend* const> backends() {
  static const std::array<const Backend*, 4> all = {&reference_backend(), &cpu_backend(),
                                                    &cpu_bfloat16_backend(), &cpu_bf16x3_backend()};
  return all;
}

const Backend& backend(std::string_view name) {
  std::string names;
  for (const Backend* candidate : backends()) {
    if (candidate->name == name) return *candidate;
    names += (names.empty() ? "" : ", ") + std::string(candidate->name);
  }
  fail("attention: backend: expected one of " + names + ", but got \"" + std::string(name) + "\"");
}

template <class T>
void attend(const Score<T>& score, const Attended<T>& result, const Backend& backend,
            const Executor& executor) {
  check_score(score);
  check_attended(score, result);
  const Attend<T> function = forward_of<T>(backend);
  if (differs_by_frame(score)) {
    attend_by_frame(score, result, executor, function);
  } else {
    function(score, result, executor);
  }
}

template <class T>
void attend_backward(const Score<T>& score, const Attended<const T>& result,
                     std::type_identity_t<AnyView<const T>> d_out, const ScoreGrad<T>& grad,
                     const Backend& backend, const Executor& executor) {
  check_score(score);
  check_attended(score, result);
  check_grad(score, d_out, grad);
  const AttendBackward<T> function = backward_of<T>(backend);
  if (differs_by_frame(score)) {
    attend_backward_by_frame(score, result, d_out, grad, executor, function);
  } else {
    function(score, result, d_out, grad, executor);
  }
}

template void attend(const Score<float>&, const Attended<float>&, const Backend&, const Executor&);
template void attend(const Score<double>&, const Attended<double>&, const Backend&,
                     const Executor&);
template void attend_backward(const Score<float>&, const Attended<const float>&,
                              AnyView<const float>, const ScoreGrad<float>&, const Backend&,
                              const Executor&);
template void attend_backward(const Score<double>&, const Attended<const double>&,
                              AnyView<const double>, const ScoreGrad<double>&, const Backend&,
                              const Executor&);

}  // namespace sextant
