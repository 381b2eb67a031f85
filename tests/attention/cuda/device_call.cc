#include "tests/attention/cuda/device_call.h"

#include <cstdint>
#include <utility>

namespace sextant::cuda {

void* DeviceCopies::block(const void* host, size_t bytes, bool written) {
  if (!host) return nullptr;
  constexpr size_t kUnit = 16;
  DeviceMemory memory(driver_, nullptr, static_cast<int64_t>(bytes + kUnit));
  const auto misalignment = [](const void* at) { return reinterpret_cast<uintptr_t>(at) % kUnit; };
  const size_t shift = (kUnit + misalignment(host) - misalignment(memory.as<void>())) % kUnit;
  char* const device = memory.as<char>() + shift;
  if (bytes > 0) expect_success("upload", driver_.upload(device, host, bytes, nullptr));
  copies_.push_back({std::move(memory), const_cast<void*>(host), device, bytes, written});
  return device;
}

void DeviceCopies::fetch() const {
  for (const Copy& copy : copies_)
    if (copy.written && copy.bytes > 0)
      expect_success("download", driver_.download(copy.host, copy.device, copy.bytes, nullptr));
}

namespace {

Score<float> moved(Score<float> score, DeviceCopies& copies) {
  const auto move = [&](auto& operand) { operand = copies.operands(operand); };
  for (AnyView<const float>* view : {&score.q, &score.k, &score.v, &score.q_imag}) move(*view);
  for (View<const float>* table : {&score.weight, &score.bias, &score.on_query, &score.on_key,
                                   &score.on_value, &score.axis_bias, &score.axis_on_query,
                                   &score.table_query, &score.query_sink, &score.query_bias})
    move(*table);
  move(score.key_bias);
  move(score.mask);
  move(score.sink);
  return score;
}

}  // namespace

void attend_on(const Driver& driver, const Score<float>& score, const Attended<float>& result,
               const Backend& backend) {
  DeviceCopies copies(driver);
  attend(moved(score, copies), {copies.results(result.out), copies.results(result.lse)}, backend);
  copies.fetch();
}

void compute(Outcome& outcome, const Driver& driver, const Backend& backend) {
  DeviceCopies copies(driver);
  const Score<float> score = moved(outcome.random.score, copies);
  const Attended<float> result = {copies.results(outcome.result.out),
                                  copies.results(outcome.result.lse)};
  attend(score, result, backend);

  const ScoreGrad<float>& to = outcome.grad;
  ScoreGrad<float> grad;
  const auto place = [&](AnyView<float>& view, const AnyView<float>& host) {
    view = copies.results(host);
  };
  place(grad.q, to.q);
  place(grad.k, to.k);
  place(grad.v, to.v);
  place(grad.q_imag, to.q_imag);
  place(grad.weight, to.weight);
  place(grad.bias, to.bias);
  place(grad.on_query, to.on_query);
  place(grad.on_key, to.on_key);
  place(grad.on_value, to.on_value);
  place(grad.axis_bias, to.axis_bias);
  place(grad.axis_on_query, to.axis_on_query);
  place(grad.table_query, to.table_query);
  place(grad.query_sink, to.query_sink);
  place(grad.query_bias, to.query_bias);
  place(grad.key_bias, to.key_bias);
  grad.sink = copies.results(to.sink);
  attend_backward(score, as_const(result), copies.operands(outcome.random.d_out), grad, backend);
  copies.fetch();
}

}  // namespace sextant::cuda
