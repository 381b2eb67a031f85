#include "tests/attention/cpu_draws.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <random>

#include "tests/attention/bounds.h"

namespace sextant {
namespace {

// The usual 1 / sqrt(columns), so that scores have a variance of about 1 for any number of columns;
// RandomScore's own constant scale suits few columns.
template <class T>
void set_scale(RandomScore<T>& random, const RandomOptions& options) {
  random.score.scale = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(options.columns, 1)));
}

// Adds the error of rounding the results to their format.
void add_rounding(DType dtype, const oracle::Tensor<double>& exact,
                  oracle::Tensor<double>& bounds) {
  if (dtype == DType::kFloat32) return;
  const double half_ulp = dtype == DType::kBfloat16 ? 0x1p-8 : 0x1p-11;
  const double least = dtype == DType::kBfloat16 ? 0x1p-134 : 0x1p-25;  // half the least subnormal
  for (size_t n = 0; n < bounds.data.size(); ++n)
    bounds.data[n] += half_ulp * (std::abs(exact.data[n]) + bounds.data[n]) + least;
}

void copy(const AnyView<float>& view, oracle::Tensor<double>& to) {
  const HostAnyView from(view);
  for (int64_t b = 0; b < to.batch; ++b)
    for (int64_t h = 0; h < to.heads; ++h)
      for (int64_t i = 0; i < to.rows; ++i)
        for (int64_t c = 0; c < to.columns; ++c)
          to(b, h, i, c) = static_cast<double>(from(b, h, i, c));
}

}  // namespace

RandomOptions draw_options(uint64_t seed, int64_t most_rows) {
  std::mt19937_64 random(seed);
  const auto up_to = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  const auto one_in = [&](uint64_t n) { return random() % n == 0; };
  const auto one_of = [&](std::initializer_list<int64_t> list) {
    return *(list.begin() + up_to(list.size()));
  };
  const auto rows = [&] {
    return std::min(most_rows, one_of({0, 1, 2, 7, 8, 9, 16, 17, 40, 63, 65, 255, 256, 257, 300}));
  };
  RandomOptions o;
  o.seed = random();
  o.batch = 1 + up_to(2);
  o.key_heads = 1 + up_to(2);
  o.heads = o.key_heads * (1 + up_to(3));
  o.keys = rows();
  o.queries = one_in(2) ? o.keys : rows();
  o.columns = one_of({1, 2, 3, 8, 15, 16, 17, 32, 40, 64, 80});
  o.value_columns = one_in(3) ? one_of({1, 5, 16, 31, 64, 100}) : o.columns;
  o.key_ranges = static_cast<RandomOptions::KeyRanges>(up_to(5));
  o.sweeps = one_in(3) ? 1 + static_cast<int>(up_to(3)) : 1;
  o.packed = one_in(3) ? 1 + static_cast<int>(up_to(4)) : 1;
  o.first_position = one_of({0, 0, 1000000, -5});
  o.rotated = one_in(2);
  o.offset = one_in(3);
  o.axes = one_in(3) ? 2 : 1;
  o.weight = one_in(4);
  o.bias = one_in(3);
  o.on_query = one_in(3);
  o.on_key = one_in(3);
  o.on_value = one_in(3);
  o.shared_tables = one_in(2);
  o.clip = one_of({0, 3, 20});
  o.sink = one_in(4);
  o.mask = one_in(5);
  o.q_imag = one_in(5);
  o.odd_strides = one_in(4);
  // Growth increases without limit towards keys in the future.
  o.grows = one_in(4) && o.key_ranges == RandomOptions::KeyRanges::kCausal && o.queries <= o.keys;
  o.query_bias = one_in(4);
  o.key_bias = one_in(4);
  o.softcap = one_in(4) ? 1.5 : 0;
  o.dropout = one_in(4) ? 0.3 : 0;
  return o;
}

RandomOptions draw_long_options(uint64_t seed, int64_t queries) {
  RandomOptions o = draw_options(seed);
  o.queries = queries;
  o.keys = 1100;
  o.columns = o.value_columns = 32;
  o.key_ranges =
      seed % 3 == 0 ? RandomOptions::KeyRanges::kWhole : RandomOptions::KeyRanges::kCausal;
  o.grows = false;
  return o;
}

RandomOptions draw_narrow_options(uint64_t seed, int64_t most_rows) {
  RandomOptions o = draw_options(seed, most_rows);
  std::mt19937_64 random(~seed);
  auto& f = o.dtypes;
  for (DType* dtype : {&f.q, &f.k, &f.v, &f.q_imag, &f.d_out, &f.out})
    *dtype = static_cast<DType>(random() % 3);
  return o;
}

CpuOutcome::CpuOutcome(const RandomOptions& options, const Executor& executor,
                       const Backend& backend)
    : random(options), result(random.new_attended()), grad(random.new_grad()) {
  set_scale(random, options);
  attend(random.score, result, backend, executor);
  attend_backward(random.score, as_const(result), random.d_out, grad, backend, executor);
}

void expect_agrees(const RandomOptions& options, const Executor& executor, const Backend& backend) {
  const CpuOutcome got(options, executor, backend);
  RandomScore<double> same(options);
  set_scale(same, options);
  oracle::Result<double> exact = oracle::attend(same.score, reference_backend());
  oracle::Result<double> bounds = oracle::result_bounds(same.score, exact);
  add_rounding(options.dtypes.out, exact.out, bounds.out);
  const auto expect_within = [&](const char* name, const AnyView<const float>& x,
                                 const oracle::Tensor<double>& y,
                                 const oracle::Tensor<double>& bound) {
    if (!x || y.data.empty()) return;
    const oracle::Worst worst = oracle::worst<float>(name, x, y.view(), bound.view());
    EXPECT_LE(worst.ratio, 1) << worst.where << "\n" << to_string(options);
  };
  expect_within("out", got.result.out, exact.out, bounds.out);
  expect_within("lse", got.result.lse, exact.lse, bounds.lse);

  // The backward pass takes `out` as it was rounded, so the reference must use the same.
  if (options.dtypes.out != DType::kFloat32) copy(got.result.out, exact.out);
  const AnyView<const double>& d_out = same.d_out;
  const auto gradients = oracle::attend_backward(same.score, exact, d_out, reference_backend());
  const auto grad_bounds = oracle::gradient_bounds(same.score, exact, d_out);
  const ScoreGrad<float>& grad = got.grad;
  const auto heads = static_cast<int64_t>(grad.sink.size());
  const AnyView<float> sink = View<float>{grad.sink.data(), 1, 1, 1, heads};
  const AnyView<float>* const views[] = {
      &grad.q,        &grad.k,      &grad.v,        &grad.q_imag,     &grad.weight,   &grad.bias,
      &grad.on_query, &grad.on_key, &grad.on_value, &grad.query_bias, &grad.key_bias, &sink};
  size_t n = 0;
  oracle::Gradients<double>::each([&](const char* name, auto member) {
    expect_within(name, *views[n++], gradients.*member, grad_bounds.*member);
  });
}

void expect_same_bits(const AnyView<const float>& of_a, const AnyView<const float>& of_b,
                      const char* what) {
  const HostAnyView a(of_a), b(of_b);
  for (int64_t batch = 0; batch < a.batch; ++batch)
    for (int64_t h = 0; h < a.heads; ++h)
      for (int64_t i = 0; i < a.rows; ++i)
        for (int64_t c = 0; c < a.columns; ++c)
          ASSERT_EQ(std::bit_cast<uint32_t>(a(batch, h, i, c)),
                    std::bit_cast<uint32_t>(b(batch, h, i, c)))
              << what << "[" << batch << ", " << h << ", " << i << ", " << c
              << "]: " << a(batch, h, i, c) << " and " << b(batch, h, i, c);
}

void expect_same_bits(const CpuOutcome& a, const CpuOutcome& b) {
  expect_same_bits(a.result.out, b.result.out, "out");
  expect_same_bits(a.result.lse, b.result.lse, "lse");
  expect_same_bits(a.grad.q, b.grad.q, "dq");
  expect_same_bits(a.grad.k, b.grad.k, "dk");
  expect_same_bits(a.grad.v, b.grad.v, "dv");
  expect_same_bits(a.grad.q_imag, b.grad.q_imag, "d_q_imag");
  expect_same_bits(a.grad.weight, b.grad.weight, "d_weight");
  expect_same_bits(a.grad.bias, b.grad.bias, "d_bias");
  expect_same_bits(a.grad.on_query, b.grad.on_query, "d_on_query");
  expect_same_bits(a.grad.on_key, b.grad.on_key, "d_on_key");
  expect_same_bits(a.grad.on_value, b.grad.on_value, "d_on_value");
  expect_same_bits(a.grad.query_bias, b.grad.query_bias, "d_query_bias");
  expect_same_bits(a.grad.key_bias, b.grad.key_bias, "d_key_bias");
  ASSERT_TRUE(std::ranges::equal(a.grad.sink, b.grad.sink)) << "d_sink";
}

}  // namespace sextant
