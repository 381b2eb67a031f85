// Bits of the cpu backend's results depend on the operands of a query alone: not on the number of
// threads, on other queries in the call or on memory outside its operands.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sextant/attention/attend.h"
#include "tests/attention/cpu_draws.h"

namespace sextant {
namespace {

RandomOptions long_options(uint64_t seed) {
  return draw_long_options(seed, seed % 2 == 0 ? 700 : 5);
}

TEST(CpuBits, AreTheSameForAnyNumberOfThreads) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const RandomOptions o = long_options(seed);
    SCOPED_TRACE(to_string(o));
    const CpuOutcome one(o);
    for (const int threads : {2, 3, 8})
      expect_same_bits(one, CpuOutcome(o, *make_thread_pool(threads)));
  }
}

TEST(CpuBits, AreTheSameWhenRunAgain) {
  const auto pool = make_thread_pool(3);
  for (uint64_t seed = 20; seed < 24; ++seed)
    expect_same_bits(CpuOutcome(long_options(seed), *pool), CpuOutcome(long_options(seed), *pool));
}

TEST(CpuBits, OfNumbersOf16BitsAreThoseOfTheSameNumbersInFloat32) {
  const auto pool = make_thread_pool(2);
  for (uint64_t seed = 3000; seed < 3060; ++seed) {
    RandomOptions narrow = draw_narrow_options(seed);
    narrow.dtypes.out = DType::kFloat32;
    RandomOptions wide = narrow;
    wide.dtypes.computed_wide = true;
    SCOPED_TRACE(to_string(narrow));
    const Executor& executor = seed % 2 == 0 ? serial_executor() : *pool;
    expect_same_bits(CpuOutcome(narrow, executor), CpuOutcome(wide, executor));
  }
}

// Queries [first, last) of a score of one frame.
Score<float> chunk(const Score<float>& score, int64_t first, int64_t last) {
  Score<float> part = score;
  part.q.data = score.q.at(0, 0, first);
  part.q.rows = last - first;
  part.frames[0].queries = last - first;
  part.frames[0].query_position += first;
  for (Sweep& sweep : part.sweeps) {
    sweep.key_ranges += first;
    if (sweep.query.rotary_positions)
      sweep.query.rotary_positions += first * sweep.query.row_stride;
  }
  return part;
}

template <class AView>
AView rows(const AView& x, int64_t first, int64_t last) {
  AView part = x;
  part.data = x.at(0, 0, first);
  part.rows = last - first;
  return part;
}

// Prefill in one call has the bits of prefill in chunks. next(first): the end of the chunk that
// begins at query `first`.
template <class Next>
void expect_bits_of_chunks(const RandomOptions& o, const Executor& executor, Next next) {
  SCOPED_TRACE(to_string(o));
  RandomScore<float> random(o);
  const Attended<float> whole = random.new_attended(), parts = random.new_attended();
  attend(random.score, whole, cpu_backend(), serial_executor());
  for (int64_t first = 0, last; first < o.queries; first = last) {
    last = std::min(next(first), o.queries);
    attend(chunk(random.score, first, last),
           {rows(parts.out, first, last), rows(parts.lse, first, last)}, cpu_backend(), executor);
  }
  expect_same_bits(whole.out, parts.out, "out");
  expect_same_bits(whole.lse, parts.lse, "lse");
}

TEST(CpuBits, OfOneQueryAtATimeAndOfChunksAreThoseOfTheWholeText) {
  const auto pool = make_thread_pool(2);
  for (const bool rotated : {false, true}) {
    RandomOptions o = {.batch = 1, .heads = 4, .key_heads = 2, .queries = 600, .keys = 600};
    o.columns = o.value_columns = 48;
    o.rotated = rotated;
    o.bias = o.on_query = o.on_key = o.on_value = !rotated;
    o.clip = 40;
    o.sweeps = 2;
    o.softcap = rotated ? 3 : 0;
    expect_bits_of_chunks(o, *pool,
                          [](int64_t first) { return first < 300 ? first + 97 : first + 1; });
  }
}

TEST(CpuBits, OfFewQueriesOfManyHeadsThatShareKeysAreThoseOfTheWholeText) {
  for (const bool tables : {false, true})
    for (const auto& [columns, heads] : std::vector<std::pair<int64_t, int64_t>>{
             {48, 1}, {48, 3}, {48, 8}, {48, 13}, {48, 20}, {40, 8}, {40, 20}, {21, 8}, {21, 20}}) {
      RandomOptions o = {.batch = 1, .heads = heads, .key_heads = 1, .queries = 330, .keys = 330};
      o.columns = o.value_columns = columns;  // kernels take columns by eights, or one by one
      o.on_query = o.on_value = tables;
      o.softcap = heads % 2 == 0 ? 2 : 0;
      o.clip = 20;
      expect_bits_of_chunks(o, serial_executor(), [](int64_t first) {
        return first < 270 ? 270 : first + 1 + first % 3;
      });
    }
}

// Memory between the elements of a view, before it and after it is not written.
void expect_untouched(std::vector<float>& memory, const View<float>& written, const char* what) {
  const HostView view(written);
  for (int64_t b = 0; b < view.batch; ++b)
    for (int64_t h = 0; h < view.heads; ++h)
      for (int64_t i = 0; i < view.rows; ++i)
        for (int64_t c = 0; c < view.columns; ++c) view(b, h, i, c) = 77;
  EXPECT_TRUE(std::ranges::all_of(memory, [](float x) { return x == 77; })) << what;
}

TEST(CpuBits, OfMemoryOutsideResultsAndGradientsStay) {
  for (uint64_t seed = 40; seed < 60; ++seed) {
    const RandomOptions o = draw_options(seed, 70);
    SCOPED_TRACE(to_string(o));
    RandomScore<float> random(o);
    std::vector<std::vector<float>> memory;
    memory.reserve(16);
    std::vector<View<float>> views;
    const auto fenced = [&](const View<float>& like) {
      if (!like) return like;
      View<float> view = like;
      view.row_stride = like.columns + static_cast<int64_t>(seed % 3);
      view.head_stride = view.row_stride * like.rows + 7;
      view.batch_stride = view.head_stride * like.heads;
      view.column_stride = 1;
      memory.emplace_back(static_cast<size_t>(view.batch_stride * like.batch + 64), 77.0F);
      view.data = memory.back().data() + 32;
      views.push_back(view);
      return view;
    };
    const Attended<float> like = random.new_attended();
    const ScoreGrad<float> grad_like = random.new_grad();
    const Attended<float> result = {fenced(like.out.as<float>()), fenced(like.lse)};
    ScoreGrad<float> grad = {.q = fenced(grad_like.q.as<float>()),
                             .k = fenced(grad_like.k.as<float>()),
                             .v = fenced(grad_like.v.as<float>()),
                             .q_imag = fenced(grad_like.q_imag.as<float>()),
                             .weight = fenced(grad_like.weight.as<float>()),
                             .bias = fenced(grad_like.bias.as<float>()),
                             .on_query = fenced(grad_like.on_query.as<float>()),
                             .on_key = fenced(grad_like.on_key.as<float>()),
                             .on_value = fenced(grad_like.on_value.as<float>())};
    attend(random.score, result, cpu_backend(), serial_executor());
    attend_backward(random.score, as_const(result), random.d_out, grad, cpu_backend(),
                    serial_executor());
    for (size_t n = 0; n < views.size(); ++n)
      expect_untouched(memory[n], views[n], std::to_string(n).c_str());
  }
}

}  // namespace
}  // namespace sextant
