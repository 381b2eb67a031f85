// A plan that is made once gives the bits of one made for each call, and is refused where it does
// not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/base/error.h"
#include "sextant/cache/kv_cache.h"
#include "tests/attention/cpu_draws.h"
#include "tests/attention/host_backends.h"
#include "tests/base/allocations.h"

namespace sextant {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::vector<float> values(const AnyView<const float>& view) {
  const HostAnyView x(view);
  std::vector<float> all;
  for (int64_t b = 0; b < x.batch; ++b)
    for (int64_t h = 0; h < x.heads; ++h)
      for (int64_t i = 0; i < x.rows; ++i)
        for (int64_t c = 0; c < x.columns; ++c) all.push_back(x(b, h, i, c));
  return all;
}

RandomOptions every_term() {
  return {.queries = 70,
          .keys = 90,
          .columns = 24,
          .value_columns = 20,
          .sweeps = 2,
          .rotated = true,
          .grows = true,
          .bias = true,
          .on_query = true,
          .clip = 5,
          .sink = true};
}

TEST(PreparedPlan, GivesTheBitsOfAPlanForEachCall) {
  for (const Backend* backend : host_backends()) {
    SCOPED_TRACE(backend->name);
    RandomScore<float> random(every_term());
    const Score<float>& score = random.score;
    const PreparedPlan plan(score, shape_of<float>(score, score), *backend);
    Workspace memory;
    Context context;
    context.workspace = &memory;
    const Attended<float> once = random.new_attended(), often = random.new_attended();
    const ScoreGrad<float> grad_once = random.new_grad(), grad_often = random.new_grad();
    attend<float>(score, once, *backend);
    attend_backward<float>(score, as_const(once), random.d_out, grad_once, *backend);
    for (int layer = 0; layer < 2; ++layer) {
      attend<float>(score, plan, often, context);
      attend_backward<float>(score, plan, as_const(often), random.d_out, grad_often, context);
      EXPECT_EQ(values(once.lse), values(often.lse));
      EXPECT_EQ(values(grad_once.k), values(grad_often.k));
      EXPECT_EQ(values(grad_once.bias), values(grad_often.bias));
      EXPECT_EQ(values(grad_once.on_query), values(grad_often.on_query));
    }
  }
}

// A gradient of 16 bits is the float32 one, rounded once.
TEST(PreparedPlan, GradientsMayLieInMemoryAs16Bits) {
  for (const Backend* backend : host_backends()) {
    SCOPED_TRACE(backend->name);
    RandomScore<float> random(every_term());
    const Score<float>& score = random.score;
    const Attended<float> result = random.new_attended();
    attend<float>(score, result, *backend);
    const ScoreGrad<float> wide = random.new_grad();
    attend_backward<float>(score, as_const(result), random.d_out, wide, *backend);
    ScoreGrad<float> narrow = random.new_grad();
    const HostAnyView k(random.new_view_of(DType::kBfloat16, score.k.batch, score.k.heads,
                                           score.k.rows, score.k.columns, 77));
    narrow.k = k;
    const HostAnyView wide_k(wide.k);
    attend_backward<float>(score, as_const(result), random.d_out, narrow, *backend);
    for (int64_t b = 0; b < k.batch; ++b)
      for (int64_t h = 0; h < k.heads; ++h)
        for (int64_t j = 0; j < k.rows; ++j)
          for (int64_t c = 0; c < k.columns; ++c)
            ASSERT_EQ(k(b, h, j, c), to_float(narrowed<Bfloat16>(wide_k(b, h, j, c))));
    EXPECT_EQ(values(wide.v), values(narrow.v));
  }
}

TEST(PreparedPlan, RefusesOperandsOfOtherShapes) {
  RandomScore<float> random({.bias = true});
  const Score<float>& score = random.score;
  const PreparedPlan plan(score, shape_of<float>(score, score), cpu_backend());
  const Attended<float> result = random.new_attended();
  const auto fails = [&](const char* message, auto change) {
    Operands<float> operands = score;
    change(operands);
    EXPECT_THAT([&] { attend<float>(operands, plan, result); },
                ThrowsMessage<Error>(HasSubstr(message)));
  };
  fails("q.rows: expected 7 (as planned), but got 6", [](auto& o) { o.q.rows = 6; });
  fails("k.rows: expected 9 (as planned), but got 8", [](auto& o) { o.k.rows = o.v.rows = 8; });
  fails("on_key: expected none (as planned)", [](auto& o) { o.on_key = o.bias; });
}

TEST(PreparedPlan, RefusesTablesWithoutADiagonalForEachDistance) {
  RandomScore<float> random({.bias = true});
  Plan few = random.score;
  few.diagonals.count = 3;
  const PreparedPlan plan(few, shape_of<float>(random.score, few), cpu_backend());
  Operands<float> operands = random.score;
  EXPECT_THAT([&] { attend<float>(operands, plan, random.new_attended()); },
              ThrowsMessage<Error>(HasSubstr("diagonals: expected every distance seen")));
  operands.bias = {};
  attend<float>(operands, plan, random.new_attended());
}

// Without rotary positions, rows are rotated at the positions of their frames.
TEST(PreparedPlan, FramesGiveTheBitsOfTheirRotaryPositions) {
  for (const bool grows : {false, true}) {
    RandomScore<float> random({.queries = 90, .keys = 90, .columns = 24, .packed = 3});
    Score<float>& score = random.score;
    Spectrum spectrum = rotary({.dim = 16});
    if (grows) spectrum = with_xpos(spectrum, kXposGamma, kXposScaleBase);
    const Rotation rope = rotation(spectrum);
    std::vector<int64_t> queries(90), keys(90);
    for (const Frame& frame : score.frames)
      for (int64_t n = 0; n < frame.keys; ++n) {
        queries[static_cast<size_t>(frame.query_row + n)] = frame.query_position + n;
        keys[static_cast<size_t>(frame.key_row + n)] = frame.key_position + n;
      }
    for (const Backend* backend : host_backends()) {
      SCOPED_TRACE(backend->name);
      const auto results = [&](const int64_t* query_positions, const int64_t* key_positions) {
        for (Sweep& sweep : score.sweeps) {
          sweep.query = {.rotation = &rope, .rotary_positions = query_positions};
          sweep.key = {.rotation = &rope, .rotary_positions = key_positions};
        }
        const Attended<float> result = random.new_attended();
        const ScoreGrad<float> grad = random.new_grad();
        attend<float>(score, result, *backend);
        attend_backward<float>(score, as_const(result), random.d_out, grad, *backend);
        return std::vector{values(result.out), values(grad.q), values(grad.k)};
      };
      EXPECT_EQ(results(nullptr, nullptr), results(queries.data(), keys.data()));
    }
  }
}

TEST(PreparedPlan, RefusesAKeyRowAtThePositionsOfTwoFrames) {
  RandomScore<float> random({.queries = 4, .keys = 4, .columns = 8});
  const Rotation rope = rotation(rotary({.dim = 8}));
  Score<float>& score = random.score;
  score.frames = {{.batch = 0, .queries = 2, .keys = 4},
                  {.batch = 0, .query_row = 2, .queries = 2, .keys = 4, .key_position = 7}};
  for (Sweep& sweep : score.sweeps) sweep.query = sweep.key = {.rotation = &rope};
  const auto attend_both = [&] {
    attend<float>(score, random.new_attended(), reference_backend());
  };
  EXPECT_THAT(attend_both, ThrowsMessage<Error>(HasSubstr("0 and 7 for row 0")));
}

TEST(Backends, RefuseASecondOfTheSameName) {
  static const Backend other = {.name = "cpu", .description = "another"};
  EXPECT_THAT([] { join(other); }, ThrowsMessage<Error>(HasSubstr("expected a new name")));
}

TEST(Backends, SayThatTheyHaveNoBackwardPass) {
  static const Backend forward = {.name = "forward",
                                  .description = "as those with SEXTANT_INFERENCE"};
  RandomScore<float> random({.queries = 4, .keys = 4, .columns = 8});
  const Attended<float> result = random.new_attended();
  const auto differentiate = [&] {
    attend_backward<float>(random.score, {.out = result.out, .lse = result.lse}, result.out, {},
                           forward);
  };
  EXPECT_THAT(differentiate, ThrowsMessage<Error>(HasSubstr("SEXTANT_INFERENCE")));
}

// A layer and step of decoding over a paged cache plans nothing and allocates nothing.
TEST(PreparedPlan, DecodesWithoutAllocations) {
  constexpr int64_t kHeads = 8, kColumns = 64, kKeys = 600;
  const std::vector<float> rows(static_cast<size_t>(kHeads * kKeys * kColumns), 0.25F);
  const auto view = [&](int64_t count) {
    return View<const float>{rows.data(),      1,        kHeads, count, kColumns, 0,
                             count * kColumns, kColumns, 1};
  };
  KvCache cache({.key_heads = kHeads, .key_columns = kColumns, .value_columns = kColumns});
  const int64_t sequence = cache.add();
  cache.append(sequence, view(kKeys), view(kKeys));
  const Rotation rope = rotation(rotary({.dim = kColumns}));
  const CachedBatch::Entry entries[] = {{sequence, &rope}};
  const CachedBatch batch(cache, entries, /*queries=*/1);
  Operands<float> operands = {.q = view(1)};
  batch.set_keys(operands, cache);
  const PreparedPlan plan(batch.plan(), shape_of(operands, batch.plan()), cpu_backend());
  std::vector<float> out(static_cast<size_t>(kHeads * kColumns)), lse(static_cast<size_t>(kHeads));
  const Attended<float> result = {
      View<float>{out.data(), 1, kHeads, 1, kColumns, 0, kColumns, kColumns, 1},
      View<float>{lse.data(), 1, kHeads, 1, 1, 0, 1, 1, 1}};
  Workspace memory;
  Context context;
  context.workspace = &memory;
  attend<float>(operands, plan, result, context);  // the workspace takes its memory
  const int64_t before = testing::allocations();
  attend<float>(operands, plan, result, context);
  EXPECT_EQ(testing::allocations(), before);
}

}  // namespace
}  // namespace sextant
