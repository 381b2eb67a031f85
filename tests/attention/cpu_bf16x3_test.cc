// The cpu-bf16x3 backend keeps the bounds of cpu for any operands, and its bits do not depend on
// the number of threads. On a machine without AMX it is the cpu backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tests/attention/cpu_draws.h"
#include "tests/attention/every_target.h"

namespace sextant {
namespace {

using KeyRanges = RandomOptions::KeyRanges;

void expect_amx_agrees(const RandomOptions& options, const Executor& executor = serial_executor()) {
  expect_agrees(options, executor, cpu_bf16x3_backend());
}

// Without AMX the kernels are those of cpu, which have tests of their own, and a tenth of the cases
// shows it.
uint64_t cases(uint64_t with_amx) { return multiplies_by_amx() ? with_amx : (with_amx + 9) / 10; }

TEST(CpuBf16x3, HoldsForEveryCombinationOfOperands) {
  const auto pool = make_thread_pool(2);
  for (uint64_t seed = 0; seed < cases(100); ++seed)
    expect_amx_agrees(draw_options(seed), seed % 2 == 0 ? serial_executor() : *pool);
}

TEST(CpuBf16x3, HoldsForNumbersOf16BitsInEveryCombination) {
  for (uint64_t seed = 2000; seed < 2000 + cases(50); ++seed)
    expect_amx_agrees(draw_narrow_options(seed));
}

TEST(CpuBf16x3, HoldsForEveryLengthAndHeadSize) {
  for (const int64_t keys : {9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 255, 256, 257, 300})
    for (const int64_t columns : {1, 2, 15, 16, 17, 31, 32, 33, 48, 64, 80, 100}) {
      if (!multiplies_by_amx() && (keys + columns) % 10 != 0) continue;
      RandomOptions o = {.batch = 1, .heads = 2, .key_heads = 1, .queries = keys, .keys = keys};
      o.columns = columns;
      o.value_columns = columns + keys % 2;
      o.key_ranges = static_cast<KeyRanges>((keys + columns) % 5);
      o.bias = keys % 3 == 0;
      o.seed = static_cast<uint64_t>(keys * 1000 + columns);
      expect_amx_agrees(o);
    }
}

TEST(CpuBf16x3, HoldsOnEverySimdTarget) {
  on_every_target([] {
    for (uint64_t seed = 1000; seed < 1000 + cases(25); ++seed)
      expect_amx_agrees(draw_options(seed, 70));
  });
}

TEST(CpuBf16x3, HasTheSameBitsForAnyNumberOfThreads) {
  for (uint64_t seed = 0; seed < cases(12); ++seed) {
    const RandomOptions o = draw_long_options(seed, 700);
    SCOPED_TRACE(to_string(o));
    const CpuOutcome one(o, serial_executor(), cpu_bf16x3_backend());
    for (const int threads : {2, 3, 8})
      expect_same_bits(one, CpuOutcome(o, *make_thread_pool(threads), cpu_bf16x3_backend()));
  }
}

// The bf16x3 terms of values this small would be flushed to zero, and of values this large would be
// infinite; such blocks are computed by the vector kernels.
TEST(CpuBf16x3, HoldsForNumbersThatCannotBeSplit) {
  for (const float factor : {0x1p-110F, 0x1p-100F, 0x1p-90F, 0x1p+60F, 0x1p+100F}) {
    SCOPED_TRACE(factor);
    RandomOptions o = {.batch = 1, .heads = 2, .key_heads = 1, .queries = 100, .keys = 300};
    o.columns = o.value_columns = 64;
    RandomScore<float> random(o);
    const AnyView<const float>& v = random.score.v;
    auto* const values = const_cast<float*>(static_cast<const float*>(v.at(0, 0, 0)));
    for (int64_t n = 0; n < v.rows * v.columns; ++n)
      values[n] = std::clamp(values[n], -1.0F, 1.0F) * factor;
    const Attended<float> by_products = random.new_attended(), by_vectors = random.new_attended();
    attend(random.score, by_products, cpu_bf16x3_backend(), serial_executor());
    attend(random.score, by_vectors, cpu_backend(), serial_executor());
    for (int64_t h = 0; h < o.heads; ++h)
      for (int64_t i = 0; i < o.queries; ++i)
        for (int64_t c = 0; c < o.value_columns; ++c)
          ASSERT_NEAR(HostAnyView(by_products.out)(0, h, i, c),
                      HostAnyView(by_vectors.out)(0, h, i, c), 0x1p-18F * factor);
    if (factor > 1) continue;  // the gradients overflow float32
    const ScoreGrad<float> grad = random.new_grad(), exact = random.new_grad();
    attend_backward(random.score, as_const(by_vectors), random.d_out, grad, cpu_bf16x3_backend(),
                    serial_executor());
    attend_backward(random.score, as_const(by_vectors), random.d_out, exact, cpu_backend(),
                    serial_executor());
    for (int64_t j = 0; j < o.keys; ++j)
      for (int64_t c = 0; c < o.columns; ++c)
        ASSERT_NEAR(HostAnyView(grad.k)(0, 0, j, c), HostAnyView(exact.k)(0, 0, j, c),
                    0x1p-12F * factor)
            << j;
  }
}

// For keys whose scores are far below the maximum, as with ALiBi, score gradients are smaller than
// any attention weight.
TEST(CpuBf16x3, HoldsForScoreGradientsNextToNothing) {
  for (const double scale : {4.0, 8.0, 16.0}) {
    RandomOptions o = {.batch = 1, .heads = 2, .key_heads = 1, .queries = 128, .keys = 256};
    o.columns = o.value_columns = 64;
    RandomScore<float> random(o);
    random.score.scale = scale;
    const Attended<float> result = random.new_attended();
    attend(random.score, result, cpu_backend(), serial_executor());
    const ScoreGrad<float> got = random.new_grad(), exact = random.new_grad();
    for (const auto& [grad, backend] :
         {std::pair{&got, &cpu_bf16x3_backend()}, std::pair{&exact, &cpu_backend()}})
      attend_backward(random.score, as_const(result), random.d_out, *grad, *backend,
                      serial_executor());
    const HostAnyView dk(got.k), exact_dk(exact.k);
    float most = 0;
    for (int64_t j = 0; j < o.keys; ++j)
      for (int64_t c = 0; c < o.columns; ++c) most = std::max(most, std::abs(exact_dk(0, 0, j, c)));
    for (int64_t j = 0; j < o.keys; ++j)
      for (int64_t c = 0; c < o.columns; ++c)
        ASSERT_NEAR(dk(0, 0, j, c), exact_dk(0, 0, j, c), 1e-4F * most) << scale << " " << j;
  }
}

}  // namespace
}  // namespace sextant
