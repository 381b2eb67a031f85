// Dropout of attention weights: the pattern has the statistics of independent draws, is the same
// for every backend, and rows of a call that is cut keep theirs.
#include "sextant/attention/dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "sextant/attention/attend.h"
#include "tests/attention/cpu_draws.h"
#include "tests/attention/every_target.h"
#include "tests/attention/host_backends.h"

namespace sextant {
namespace {

using KeyRanges = RandomOptions::KeyRanges;

// Five standard deviations of the number of successes of independent draws.
double five_deviations(double count, double probability) {
  return 5 * std::sqrt(count * probability * (1 - probability));
}

constexpr int64_t kBatch = 2, kHeads = 4, kQueries = 60, kKeys = 300;
constexpr double kCount = kBatch * kHeads * kQueries * kKeys;

// Calls f(b, h, i, j) for every weight of a call.
template <class F>
void each_weight(F&& f) {
  for (int64_t b = 0; b < kBatch; ++b)
    for (int64_t h = 0; h < kHeads; ++h)
      for (int64_t i = 0; i < kQueries; ++i)
        for (int64_t j = 0; j < kKeys; ++j) f(b, h, i, j);
}

TEST(Dropout, KeepsTheShareOfWeightsThatItIsTold) {
  for (const double p : {0.001, 0.1, 0.5, 0.9})
    for (const uint64_t seed : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
      const Dropout dropout = {.probability = p, .seed = seed};
      double kept = 0;
      each_weight([&](auto... at) { kept += keeps(dropout, at...) ? 1 : 0; });
      EXPECT_NEAR(kept, kCount * (1 - p), five_deviations(kCount, p)) << p << " " << seed;
    }
}

TEST(Dropout, DrawsOfEntriesHeadsQueriesKeysAndSeedsAreIndependent) {
  const Dropout one = {.probability = 0.3, .seed = 5}, other = {.probability = 0.3, .seed = 6};
  const auto expect_independent = [&](const char* what, auto other_keeps) {
    double both = 0;
    each_weight([&](int64_t b, int64_t h, int64_t i, int64_t j) {
      both += keeps(one, b, h, i, j) && other_keeps(b, h, i, j) ? 1 : 0;
    });
    EXPECT_NEAR(both, kCount * 0.49, five_deviations(kCount, 0.49)) << what;
  };
  const auto beside = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
    return [=, &one](int64_t at_b, int64_t at_h, int64_t at_i, int64_t at_j) {
      return keeps(one, at_b + b, at_h + h, at_i + i, at_j + j);
    };
  };
  expect_independent("entry", beside(kBatch, 0, 0, 0));
  expect_independent("head", beside(0, kHeads, 0, 0));
  expect_independent("query", beside(0, 0, kQueries, 0));
  for (const int64_t apart : {1, 2, 4, 8, 16, 32})
    expect_independent(("key " + std::to_string(apart)).c_str(), beside(0, 0, 0, apart));
  expect_independent("seed", [&](auto... at) { return keeps(other, at...); });
}

TEST(Dropout, IsAFunctionOfTheRowsOfTheWhole) {
  const Dropout whole = {.probability = 0.5, .seed = 9};
  const Dropout part = {
      .probability = 0.5, .seed = 9, .first_batch = 1, .first_query = 7, .first_key = 21};
  each_weight([&](int64_t b, int64_t h, int64_t i, int64_t j) {
    ASSERT_EQ(keeps(part, b, h, i, j), keeps(whole, b + 1, h, i + 7, j + 21));
  });
}

// The attention weights of a call, [batch, heads, queries, keys]: value j is the j-th unit vector.
template <class T>
View<T> weights_of(RandomScore<T>& random, const Backend& backend,
                   const Executor& executor = serial_executor()) {
  const AnyView<const T>& k = random.score.k;
  const HostView units(random.new_view(k.batch, k.heads, k.rows, k.rows));
  for (int64_t b = 0; b < k.batch; ++b)
    for (int64_t h = 0; h < k.heads; ++h)
      for (int64_t j = 0; j < k.rows; ++j) units(b, h, j, j) = 1;
  random.score.v = as_const<T>(units);
  const AnyView<const T>& q = random.score.q;
  const View<T> weights = random.new_view(q.batch, q.heads, q.rows, k.rows),
                lse = random.new_view(q.batch, q.heads, q.rows, 1);
  attend(random.score, Attended<T>{weights, lse}, backend, executor);
  return weights;
}

// Weights with dropout are those without, times the factors of keeps(). error: relative to 1.
void expect_explicit(const RandomOptions& o, const Backend& backend, double error) {
  SCOPED_TRACE(std::string(backend.name) + ": " + to_string(o));
  RandomScore<float> random(o);
  RandomOptions without = o;
  without.dropout = 0;
  RandomScore<double> plain(without);
  const HostView got(weights_of(random, backend));
  const HostView all(weights_of(plain, reference_backend()));
  const Dropout& dropout = random.score.dropout;
  for (int64_t b = 0; b < o.batch; ++b)
    for (int64_t h = 0; h < o.heads; ++h)
      for (int64_t i = 0; i < o.queries; ++i)
        for (int64_t j = 0; j < o.keys; ++j) {
          const double factor = keeps(dropout, b, h, i, j) ? 1 / (1 - o.dropout) : 0;
          ASSERT_NEAR(got(b, h, i, j), factor * all(b, h, i, j), error)
              << b << " " << h << " " << i << " " << j;
        }
}

// Packed sequences begin at keys that are no multiples of the generator's 32.
std::vector<RandomOptions> explicit_cases() {
  std::vector<RandomOptions> cases = {
      {.queries = 70, .keys = 70, .dropout = 0.1},
      {.queries = 300, .keys = 300, .packed = 4, .bias = true, .dropout = 0.5},
      {.heads = 6,
       .key_heads = 2,
       .queries = 3,
       .keys = 290,
       .key_ranges = KeyRanges::kWhole,
       .sink = true,
       .dropout = 0.3},
      {.queries = 40,
       .keys = 600,
       .key_ranges = KeyRanges::kRagged,
       .sweeps = 2,
       .rotated = true,
       .mask = true,
       .softcap = 2,
       .dropout = 0.9}};
  for (RandomOptions& o : cases) o.seed = 77;
  return cases;
}

TEST(Dropout, HasOnePatternForAllBackends) {
  for (const RandomOptions& o : explicit_cases())
    for (const Backend* backend : host_backends())
      if (backend->attend_f32)
        expect_explicit(o, *backend, backend->products == DType::kFloat32 ? 1e-5 : 0.03);
}

TEST(Dropout, HasOnePatternOnEverySimdTarget) {
  on_every_target([] {
    for (const RandomOptions& o : explicit_cases()) expect_explicit(o, cpu_backend(), 1e-5);
  });
}

TEST(Dropout, LeavesTheSumOfWeightsAsItIs) {
  RandomOptions o = {.queries = 100, .keys = 300, .bias = true, .sink = true, .dropout = 0.4};
  RandomScore<float> random(o);
  o.dropout = 0;
  RandomScore<float> plain(o);
  for (const Backend* backend : {&reference_backend(), &cpu_backend()}) {
    const Attended<float> with = random.new_attended(), without = plain.new_attended();
    attend(random.score, with, *backend, serial_executor());
    attend(plain.score, without, *backend, serial_executor());
    for (int64_t b = 0; b < o.batch; ++b)
      for (int64_t h = 0; h < o.heads; ++h)
        for (int64_t i = 0; i < o.queries; ++i)
          ASSERT_NEAR(HostView(with.lse)(b, h, i, 0), HostView(without.lse)(b, h, i, 0), 4e-6);
  }
}

TEST(Dropout, BitsDoNotDependOnThreads) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    RandomOptions o = draw_long_options(seed, seed % 2 == 0 ? 700 : 5);
    o.dropout = 0.2;
    o.softcap = seed < 2 ? 3 : 0;
    SCOPED_TRACE(to_string(o));
    const CpuOutcome one(o);
    for (const int threads : {2, 8})
      expect_same_bits(one, CpuOutcome(o, *make_thread_pool(threads)));
  }
}

// Queries and entries [first, last) of a call of one frame, with the rows that dropout counts.
TEST(Dropout, APartOfTheQueriesHasTheBitsOfTheWhole) {
  RandomOptions o = {.batch = 1, .queries = 400, .keys = 400, .bias = true, .on_value = true};
  o.clip = 20;
  o.dropout = 0.3;
  RandomScore<float> random(o);
  const Attended<float> whole = random.new_attended(), parts = random.new_attended();
  attend(random.score, whole, cpu_backend(), serial_executor());
  const auto rows = [](auto view, int64_t first, int64_t last) {
    view.data = view.at(0, 0, first);
    view.rows = last - first;
    return view;
  };
  for (const auto& [first, last] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {1, 6}, {6, 130}, {130, 131}, {131, 400}}) {
    Score<float> part = random.score;
    part.q = rows(part.q, first, last);
    part.frames[0].queries = last - first;
    part.frames[0].query_position += first;
    part.sweeps[0].key_ranges += first;
    part.dropout.first_query = first;
    attend(part, {rows(parts.out, first, last), rows(parts.lse, first, last)}, cpu_backend(),
           serial_executor());
  }
  expect_same_bits(whole.out, parts.out, "out");
  expect_same_bits(whole.lse, parts.lse, "lse");
}

void expect_near(const AnyView<float>& of_a, const AnyView<float>& of_b, double bound) {
  const HostAnyView a(of_a), b(of_b);
  for (int64_t n = 0; n < a.batch; ++n)
    for (int64_t h = 0; h < a.heads; ++h)
      for (int64_t i = 0; i < a.rows; ++i)
        for (int64_t c = 0; c < a.columns; ++c) ASSERT_NEAR(a(n, h, i, c), b(n, h, i, c), bound);
}

// Frames with rotations of their own are computed one by one, each with the rows of the whole: its
// pattern of dropout, its positions on further axes, and its sinks.
TEST(Dropout, FramesOneByOneHaveThePatternOfTheWhole) {
  RandomOptions o = {.queries = 90, .keys = 90, .packed = 3, .rotated = true, .on_value = true};
  o.dropout = 0.3;
  o.position_axes = 3;
  o.axis_width = 7;
  o.axis_bias = o.axis_on_query = o.query_sink = true;
  o.table_query = 5;
  RandomScore<float> random(o);
  const std::vector<Rotation> rotations(3, *random.score.sweeps[0].query.rotation);
  for (const Backend* backend : {&reference_backend(), &cpu_backend()}) {
    const Attended<float> together = random.new_attended(), apart = random.new_attended();
    Score<float> one = random.score;
    for (SideRotation* side : {&one.sweeps[0].query, &one.sweeps[0].key}) {
      side->rotation = rotations.data();
      side->frame_stride = 1;
    }
    attend(random.score, together, *backend, serial_executor());
    attend(one, apart, *backend, serial_executor());
    const ScoreGrad<float> of_together = random.new_grad(), of_apart = random.new_grad();
    attend_backward(random.score, as_const(together), random.d_out, of_together, *backend,
                    serial_executor());
    attend_backward(one, as_const(apart), random.d_out, of_apart, *backend, serial_executor());
    for (const auto& [a, b] : {std::pair{of_together.q, of_apart.q},
                               {of_together.axis_bias, of_apart.axis_bias},
                               {of_together.axis_on_query, of_apart.axis_on_query},
                               {of_together.table_query, of_apart.table_query},
                               {of_together.query_sink, of_apart.query_sink}})
      expect_near(a, b, 1e-4);
    expect_near(together.out, apart.out, 1e-5);
  }
}

}  // namespace
}  // namespace sextant
