// Calls with tensors on a CUDA device, from the operators down to kernels on fibers.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>

#include "sextant/base/error.h"
#include "sextant/torch/bindings/call_arguments.h"
#include "sextant/torch/bindings/check_call.h"
#include "sextant/torch/operators/device_call.h"
#include "sextant/torch/operators/tensor_plan.h"
#include "tests/torch/dense.h"
#include "tests/torch/method_on_backend.h"
#include "tests/torch/stand_in_cuda/stand_in_cuda.h"

namespace sextant::testing {
namespace {

void* const kStream = reinterpret_cast<void*>(0x100);

// The stream of the stand-in until the end of a scope.
class OnStream {
 public:
  explicit OnStream(void* stream, bool captured = false) { set_stand_in_stream(stream, captured); }
  ~OnStream() { set_stand_in_stream(nullptr, false); }
};

class EveryMethodOnCudaTensors : public MethodOnBackend {
 protected:
  // FIRE's threshold is trained, and a host value of it chooses the queries that need a bias.
  bool waits() const { return case_.name == "fire"; }

  Layout planned(int64_t length) const {
    Layout p = layout(length, length);
    p.plans = std::make_shared<PlanCache>(2);
    return p;
  }
};

INSTANTIATE_TEST_SUITE_P(All, EveryMethodOnCudaTensors,
                         ::testing::Combine(::testing::ValuesIn(method_cases()),
                                            ::testing::Values(BackendCase{&cuda_backend(),
                                                                          at::kFloat, at::kCUDA})),
                         title);

TEST_P(EveryMethodOnCudaTensors, AgreesWithTheOracle) {
  expect_agreement(20, 20);
  expect_agreement(1, 20);  // decoding
}

TEST_P(EveryMethodOnCudaTensors, TheSecondCallCopiesNothingAndCanBeCaptured) {
  if (waits()) GTEST_SKIP() << case_.title << " waits for the device";
  const Inputs inputs = inputs_of(planned(9), at::TensorOptions(type_).device(device_));
  const OnStream stream(kStream);
  const Outcome first = run(inputs);
  const int64_t copies = copies_between_devices();
  const OnStream captured(kStream, /*captured=*/true);
  const Outcome second = run(inputs);
  EXPECT_EQ(copies_between_devices(), copies);
  EXPECT_TRUE(at::equal(first.out.to(at::kCPU), second.out.to(at::kCPU)));
}

TEST_P(EveryMethodOnCudaTensors, EmbedsAsOnTheCpu) {
  const Layout p = layout(9, 9);
  const auto embedded = [&](at::DeviceType device) {
    const Inputs inputs = inputs_of(p, at::TensorOptions(type_).device(device));
    const Parameters parameters = Parameters(inputs.differentiable).subspan(3);
    const at::Tensor x = method_->embed(inputs.seen, p, parameters);
    return method_->embed_last(x, p, parameters).to(at::kCPU);
  };
  EXPECT_LE(largest_difference(embedded(at::kCUDA), embedded(at::kCPU)), 1e-5);
}

// Operands of attention on the CPU, [1, 2, 3, 4], with their plan.
TensorOperands plain(at::ScalarType type = at::kFloat) {
  const at::Tensor x = normal({1, 2, 3, 4}).to(type);
  return plain_operands(x, x, x, {.batch = 1, .queries = 3, .keys = 3});
}

TensorOperands on_cuda(TensorOperands operands) {
  for (at::Tensor* x : {&operands.q, &operands.k, &operands.v}) *x = x->to(at::kCUDA);
  return operands;
}

void fails(const std::string& message, const std::function<void(TensorOperands&)>& change,
           const TensorOperands& like = on_cuda(plain())) {
  TensorOperands operands = like;
  change(operands);
  try {
    attend(operands);
    ADD_FAILURE() << "no error: " << message;
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr(message));
  }
}

TEST(CudaTensors, AnOperandOnAnotherDeviceIsNamed) {
  const auto nothing = [](TensorOperands&) {};
  fails("attend: k: expected cuda:0, as q, but got cpu",
        [](TensorOperands& o) { o.k = o.k.to(at::kCPU); });
  fails("attend: k: expected cpu, as q, but got cuda:0",
        [](TensorOperands& o) { o.q = o.q.to(at::kCPU); });
  fails("attend: bias: expected cuda:0, as q, but got cpu", [](TensorOperands& o) {
    o.bias.rows = normal({1, 3}).to(at::kFloat);
  });
  fails("attend: sink: expected cuda:0, as q, but got cpu",
        [](TensorOperands& o) { o.sink = normal({2}).to(at::kFloat); });
  fails("attend: key_bias: expected cuda:0, as q, but got cpu", [](TensorOperands& o) {
    o.key_bias = normal({1, 1, 3});
  });
  fails("attend: mask: expected cuda:0, as q, but got cpu", [](TensorOperands& o) {
    o.mask = at::ones({1, 1, 1, 3}, at::kBool);
  });
  fails("attend: q: expected Float, BFloat16 or Half on cuda:0, but got Double [1, 2, 3, 4]",
        nothing, on_cuda(plain(at::kDouble)));
}

TEST(CudaTensors, AnArgumentOfAMethodOnAnotherDeviceIsNamed) {
  const at::Tensor here = normal({2}), there = here.to(at::kCUDA);
  const auto message = [](auto&& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message([&] {
              check_same_device("q", there, {{"k", there}, {"v", here}}, {});
            }),
            "v: expected cuda:0, as q, but got cpu");
  EXPECT_EQ(message([&] {
              check_same_device("x", here, {}, {here, there});
            }),
            "parameters: expected cpu, as x, but got cuda:0");
  EXPECT_EQ(message([&] { check_same_device("q", there, {{"k", there}}, {there}); }), "");
  EXPECT_EQ(
      message([&] { cumulative("packed_keys", {}, at::zeros({2}, at::kLong).to(at::kCUDA)); }),
      "packed_keys: expected a tensor on cpu, where plans are made, but got cuda:0");
}

TEST(CudaTensors, ThePlanIsOnTheCpu) {
  const std::string expected = ": expected a tensor on cpu, where plans are made, but got cuda:0";
  fails("attend: frames" + expected, [](TensorOperands& o) { o.frames = o.frames.to(at::kCUDA); });
  fails("attend: key_ranges" + expected,
        [](TensorOperands& o) { o.sweeps[0].key_ranges = o.sweeps[0].key_ranges.to(at::kCUDA); });
  fails("attend: bias_rows" + expected, [](TensorOperands& o) {
    o.bias.rows = normal({1, 3}).to(at::kFloat).to(at::kCUDA);
    o.bias.row_at = at::zeros({3}, at::kInt).to(at::kCUDA);
  });
}

TEST(CudaTensors, ANewLayoutCannotBeCaptured) {
  const TensorOperands operands = on_cuda(plain());
  const OnStream captured(kStream, /*captured=*/true);
  fails(
      "before the capture of a CUDA graph", [](TensorOperands&) {}, operands);
}

TEST(CudaTensors, DropoutCannotBeCaptured) {
  TensorOperands operands = on_cuda(plain());
  operands.dropout = {.p = 0.5, .seed = at::zeros({1}, at::kLong)};
  operands.plans = std::make_shared<PlanCache>(1);
  const OnStream stream(kStream);
  attend(operands);
  const OnStream captured(kStream, /*captured=*/true);
  fails(
      "attend: dropout_p: expected 0 while a CUDA graph is captured, but got 0.5",
      [](TensorOperands&) {}, operands);
}

TEST(CudaTensors, APlanServesCallsOnAllStreams) {
  TensorOperands operands = on_cuda(plain());
  operands.plans = std::make_shared<PlanCache>(1);
  const at::Tensor out = std::get<0>(attend(operands));
  const OnStream captured(kStream, /*captured=*/true);
  EXPECT_TRUE(at::equal(std::get<0>(attend(operands)).cpu(), out.cpu()));
}

TEST(CudaTensors, ACallIsQueuedOnTheCurrentStream) {
  const at::Tensor x = normal({1}).to(at::kCUDA);
  const OnStream stream(kStream);
  EXPECT_EQ(DeviceCall(x).stream(), kStream);
  EXPECT_EQ(DeviceCall(normal({1})).stream(), nullptr);
}

TEST(CudaTensors, LseWithAKeyBiasAndASinkIsThatOfTheCpu) {
  TensorOperands operands = plain();
  operands.key_bias = 5 * normal({1, 2, 3}, 1);
  operands.sink = normal({2}, 2).to(at::kFloat);
  operands.query_shift = normal({1, 2, 3}, 3);
  operands.whole_lse = true;
  const auto [out, lse] = attend(operands);
  operands = on_cuda(operands);
  for (at::Tensor* x : {&operands.key_bias, &operands.sink, &operands.query_shift})
    *x = x->to(at::kCUDA);
  const auto [out_there, lse_there] = attend(operands);
  EXPECT_LE(largest_difference(out_there.to(at::kCPU), out), 1e-5);
  EXPECT_LE(largest_difference(lse_there.to(at::kCPU), lse), 1e-5);
}

TEST(CudaTensors, EveryOperatorOfTheCpuHasAKernel) {
  for (const char* name : {"attend", "attend_backward", "method_embed", "method_embed_backward",
                           "method_attend", "method_attend_backward", "method_attend_with_lse",
                           "method_attend_with_lse_backward", "rotate"}) {
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
        (std::string("sextant::") + name).c_str(), "");
    EXPECT_TRUE(op.hasKernelForDispatchKey(c10::DispatchKey::CPU)) << name;
    EXPECT_TRUE(op.hasKernelForDispatchKey(c10::DispatchKey::CUDA)) << name;
  }
}

}  // namespace
}  // namespace sextant::testing
