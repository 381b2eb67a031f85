// Every method over a KV cache, in float32 as in inference: prompts, chunks and single steps in any
// mixture, over several sequences at once, give the same as one pass over each whole sequence.
#include "sextant/torch/cached_attention.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <ostream>
#include <random>

#include "sextant/base/error.h"
#include "sextant/torch/operators/tensor_plan.h"
#include "sextant/torch/operators/views.h"
#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

// A method with the options under test.
struct Trial {
  std::string title, method, options;
  bool shares_key_heads = true;
};

std::vector<Trial> trials() {
  std::vector<Trial> all;
  for (const MethodInfo& info : methods())
    all.push_back(
        {info.name, info.name, subject(info.name).options, subject(info.name).shares_key_heads});
  const auto stretched = [&](const std::string& method, const std::string& stretch) {
    all.push_back({method + " " + stretch, method, R"({"stretch": ")" + stretch + R"("})"});
  };
  // Stretches by a fixed factor, and by the length of each query; the training length is 8.
  for (const char* stretch : {"linear*4", "ntk*4", "yarn*4", "dynamic*2", "dynamic-linear",
                              "dynamic-ntk", "qwen-ntk", "dynamic-yarn", "dynamic-by-parts"})
    stretched("rope", stretch);
  stretched("xpos", "yarn*4");
  stretched("xpos", "dynamic-ntk");
  const auto with = [&](const std::string& method, const std::string& options) {
    all.push_back({method + " " + options, method, options});
  };
  with("rope", R"({"stretch": {"rope_type": "longrope", "factor": 8, "short_factor": [1, 1.5, 2],
                               "long_factor": [2, 3, 8]}})");
  with("rope", R"({"stretch": "dynamic-ntk", "dynamic": 40})");
  with("rope", R"({"train": true})");
  with("rope", R"({"query_scale": "logn"})");
  with("rope", R"({"query_scale": "ssmax"})");
  with("rope", R"({"dim": 4, "pairing": "interleaved"})");
  with("rerope", R"({"log_n": 8})");
  with("recursive", R"({"cell": "gru"})");
  all.back().shares_key_heads = false;
  with("streaming", R"({"sinks": 2, "recent": 5})");
  with("window", R"({"of": "t5"})");
  with("chunk", R"({"of": "alibi"})");
  with("sink", R"({"of": "rope", "options": {"stretch": "dynamic-ntk"}})");
  with("emd", R"({"rows": 64, "of": "rope"})");
  return all;
}

void PrintTo(const Trial& trial, std::ostream* out) { *out << trial.title; }

class Cached : public ::testing::TestWithParam<Trial> {
 protected:
  const ModelShape shape_ = [] {
    Subject of_method = subject(GetParam().method);
    of_method.shares_key_heads = GetParam().shares_key_heads;
    return of_method.shape();
  }();
  const std::unique_ptr<Method> method_ = method_of(GetParam().method, shape_, GetParam().options);

  std::vector<at::Tensor> parameters() const {
    std::vector<at::Tensor> all = random_parameters(*method_);
    for (at::Tensor& parameter : all) parameter = parameter.to(at::kFloat);
    return all;
  }
  // Keys of a layer, with the columns that the method adds to them.
  at::Tensor keys_of(const Layer& layer) const {
    return with_key_columns(*method_, layer.k.to(at::kFloat), layer.seen.to(at::kFloat),
                            /*layer=*/1, parameters());
  }
};
INSTANTIATE_TEST_SUITE_P(All, Cached, ::testing::ValuesIn(trials()), [](const auto& info) {
  std::string title = std::to_string(info.index) + "_" + info.param.title.substr(0, 40);
  std::ranges::replace_if(
      title, [](unsigned char c) { return !std::isalnum(c); }, '_');
  return title;
});

// A sequence and its attention computed in one pass.
struct Text {
  at::Tensor q, k, v, out;
  int64_t first_position = 0, length = 0;
};

TEST_P(Cached, EverySplitOfEveryTextGivesTheSame) {
  const std::vector<at::Tensor> parameters = this->parameters();
  for (uint64_t seed = 0; seed < 4; ++seed) {
    std::mt19937_64 random(seed);
    const auto up_to = [&](int64_t most) {
      return static_cast<int64_t>(random() % static_cast<uint64_t>(most + 1));
    };
    KvCache cache({.key_heads = shape_.key_heads,
                   .key_columns = keys_of(Layer(shape_, {.batch = 1})).size(3),
                   .value_columns = shape_.head_dim,
                   .page_rows = 16});
    std::vector<Text> sequences(3);
    std::vector<SequenceGrowth> growing;
    for (Text& sequence : sequences) {
      sequence.length = 20 + up_to(20);
      sequence.first_position = up_to(10);
      const Layout whole = {.queries = sequence.length,
                            .keys = sequence.length,
                            .first_query = sequence.first_position,
                            .first_key = sequence.first_position};
      const Layer layer(shape_, whole);
      sequence.q = with_query_columns(*method_, layer.q.to(at::kFloat), layer.x.to(at::kFloat),
                                      /*layer=*/1, parameters);
      sequence.k = keys_of(layer);
      sequence.v = layer.v.to(at::kFloat);
      sequence.out =
          attend_with(*method_, sequence.q, sequence.k, sequence.v, whole, /*layer=*/1, parameters);
      growing.push_back({cache.add(sequence.first_position), 0});
    }
    bool grows = true;
    for (int64_t round = 0; grows; ++round) {
      grows = false;
      for (size_t n = 0; n < sequences.size(); ++n) {
        const int64_t left = sequences[n].length - cache.rows(growing[n].sequence);
        // Single steps, or up to 17 rows (a page has 16); a sequence may also add none.
        growing[n].rows = std::min(left, seed == 0 ? 1 : up_to(17));
        grows = grows || left > 0;
      }
      const Layout layout = continued(cache, growing);
      std::vector<at::Tensor> queries, expected;
      for (size_t n = 0; n < sequences.size(); ++n) {
        const auto& [sequence, rows] = growing[n];
        const int64_t first = cache.rows(sequence);
        cache.append(sequence, view_4d<const float>(sequences[n].k.narrow(2, first, rows)),
                     view_4d<const float>(sequences[n].v.narrow(2, first, rows)));
        queries.push_back(sequences[n].q.narrow(2, first, rows));
        expected.push_back(sequences[n].out.narrow(2, first, rows));
      }
      const at::Tensor out = attend_cached(*method_, at::cat(queries, 2), cache, growing, layout,
                                           /*layer=*/1, parameters);
      const at::Tensor wanted = at::cat(expected, 2);
      if (wanted.numel() == 0) continue;
      ASSERT_LE(largest_difference(out, wanted),
                1e-5 * std::max(1.0, sequences[0].out.abs().max().item<double>()))
          << "split " << seed << ", round " << round;
    }
  }
}

KvCache small_cache() {
  return KvCache({.key_heads = 2, .key_columns = 6, .value_columns = 6, .page_rows = 16});
}

at::Tensor floats(int64_t heads, int64_t rows, uint64_t seed) {
  return normal({1, heads, rows, 6}, seed).to(at::kFloat);
}

void grow(KvCache& cache, int64_t sequence, int64_t rows, uint64_t seed) {
  const at::Tensor k = floats(2, rows, seed), v = floats(2, rows, seed + 1);
  cache.append(sequence, view_4d<const float>(k), view_4d<const float>(v));
}

// All layers of a step share one plan, and one sequence more or less, or a window of some layers,
// makes no difference to that.
TEST(CachedSteps, EachPlansOnceForAllLayers) {
  const auto method = method_of("rope", kSmallShape);
  std::vector<KvCache> layers(3, small_cache());
  std::vector<SequenceGrowth> growing = {{0, 20}, {1, 20}};
  for (KvCache& cache : layers)
    for (size_t n = 0; n < growing.size(); ++n) cache.add();
  const auto plans = std::make_shared<PlanCache>(2);
  for (int64_t step = 0; step < 40; ++step) {
    const int64_t before = plans->planned();
    for (KvCache& cache : layers) {
      Layout layout = continued(cache, growing);
      for (const SequenceGrowth& one : growing) grow(cache, one.sequence, one.rows, 7 * step);
      const at::Tensor q = floats(4, layout.queries, step);
      const at::Tensor out = attend_cached(*method, q, cache, growing, layout, 0, {});
      layout.plans = plans;
      ASSERT_TRUE(at::equal(attend_cached(*method, q, cache, growing, layout, 0, {}), out));
    }
    EXPECT_EQ(plans->planned() - before, 1) << step;
    growing[0].rows = growing[1].rows = 1;
    if (step == 20) growing.pop_back();
  }
}

// With "length" the factor follows the length so far, as in Hugging Face: each call rotates the
// keys of earlier steps anew. A call therefore equals one uncached call over the same keys. It does
// not equal one pass over the whole sequence, which rotates the first queries by the whole length.
TEST(CachedByLength, EachCallGoesByTheLengthSoFar) {
  ModelShape shape = kSmallShape;
  const auto method =
      method_of("rope", shape, R"({"stretch": "dynamic-ntk", "dynamic": "length", "base": 50})");
  const Layout whole = {.queries = 20, .keys = 20};
  const Layer layer(shape, whole);
  const at::Tensor q = layer.q.to(at::kFloat), k = layer.k.to(at::kFloat),
                   v = layer.v.to(at::kFloat);
  const auto so_far = [&](int64_t first, int64_t last) {
    const Layout part = {.queries = last - first, .keys = last, .first_query = first};
    return attend_with(*method, q.slice(2, first, last), k.slice(2, 0, last), v.slice(2, 0, last),
                       part, 0, {});
  };
  const at::Tensor at_once = so_far(0, 20);
  KvCache cache = small_cache();
  // A sequence of another length in the same batch has a factor of its own.
  std::vector<SequenceGrowth> growing = {{cache.add(), 0}, {cache.add(), 1}};
  grow(cache, growing[1].sequence, 30, 50);
  double most = 0;
  for (int64_t first = 0; first < 20; first += 5) {
    growing[0].rows = 5;
    const Layout layout = continued(cache, growing);
    cache.append(growing[0].sequence, view_4d<const float>(k.slice(2, first, first + 5)),
                 view_4d<const float>(v.slice(2, first, first + 5)));
    grow(cache, growing[1].sequence, 1, 60);
    const at::Tensor out =
        attend_cached(*method, at::cat({q.slice(2, first, first + 5), floats(4, 1, 70)}, 2), cache,
                      growing, layout, 0, {});
    EXPECT_LE(largest_difference(out.slice(2, 0, 5), so_far(first, first + 5)), 1e-5);
    most =
        std::max(most, largest_difference(out.slice(2, 0, 5), at_once.slice(2, first, first + 5)));
  }
  EXPECT_GT(most, 1e-2);
}

TEST(CachedByLength, SlopesOfAllTextsAreThoseOfOneLength) {
  const auto method = method_of("alibi", kSmallShape, R"({"interpolation": "dynamic"})");
  KvCache cache = small_cache();
  std::vector<SequenceGrowth> growing = {{cache.add(), 1}, {cache.add(), 1}};
  grow(cache, growing[1].sequence, 4, 50);
  const Layout layout = continued(cache, growing);
  for (const SequenceGrowth& sequence : growing) grow(cache, sequence.sequence, 1, 60);
  EXPECT_THAT([&] { attend_cached(*method, floats(4, 2, 1), cache, growing, layout, 0, {}); },
              ThrowsMessage<Error>(HasSubstr("interpolation: expected sequences of one length")));
}

TEST(CachedTurned, TurnedKeysMeetQueriesThatAreTurnedOutside) {
  const Spectrum spectrum = rotary({.dim = 6});
  KvCache cache = small_cache();
  const int64_t plain = cache.add(3), rotated = cache.add(3, rotation(spectrum));
  for (const int64_t sequence : {plain, rotated}) grow(cache, sequence, 9, 20);
  const at::Tensor q = floats(4, 1, 30);
  const auto attend = [&](const char* method, int64_t sequence, const at::Tensor& queries) {
    const std::vector<SequenceGrowth> growing = {{sequence, 1}};
    KvCache copy = cache;
    const Layout layout = continued(copy, growing);
    grow(copy, sequence, 1, 40);
    return attend_cached(*method_of(method, kSmallShape), queries, copy, growing, layout, 0, {});
  };
  at::Tensor turned_q = q.clone();
  for (const Rotation::Pair& pair : rotation(spectrum).pairs) {
    const CosSin angle = cos_sin(pair.frequency * 12);
    const at::Tensor x = q.select(3, pair.first), y = q.select(3, pair.second);
    turned_q.select(3, pair.first).copy_(angle.cos * x - angle.sin * y);
    turned_q.select(3, pair.second).copy_(angle.sin * x + angle.cos * y);
  }
  const at::Tensor expected = attend("rope", plain, q);
  EXPECT_LE(largest_difference(attend("none", rotated, turned_q), expected), 1e-6);
  // A method with the rotation of the keys rotates the queries alone.
  EXPECT_LE(largest_difference(attend("rope", rotated, q), expected), 1e-6);
  const int64_t other = cache.add(3, rotation(rotary({.dim = 6, .base = 500})));
  grow(cache, other, 9, 20);
  EXPECT_THAT([&] { attend("rope", other, q); },
              ThrowsMessage<Error>(HasSubstr("sequence 2: it has rotated keys: expected")));
  EXPECT_THAT([&] { attend("rerope", rotated, q); },
              ThrowsMessage<Error>(HasSubstr("once, at their positions")));
}

TEST(CachedTurned, OneRotationForEachSequenceOfAMethod) {
  const KvCache cache = [] {
    KvCache made = small_cache();
    made.add(3);
    return made;
  }();
  const std::vector<SequenceGrowth> growing = {{0, 2}};
  const Layout layout = continued(cache, growing);
  const auto rotations = [&](const char* method) {
    return rotations_for(*method_of(method, kSmallShape), floats(4, 2, 30), cache, layout, 0, {});
  };
  const std::vector<Rotation> found = rotations("rope");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(same_rotation(found[0], rotation(rotary({.dim = 6}))));
  EXPECT_THAT([&] { rotations("alibi"); },
              ThrowsMessage<Error>(HasSubstr("expected a method that rotates keys")));
  EXPECT_THAT([&] { rotations("rerope"); },
              ThrowsMessage<Error>(HasSubstr("once, at their positions")));
}

TEST(CachedErrors, NameTheText) {
  KvCache cache = small_cache();
  const int64_t sequence = cache.add();
  const std::vector<SequenceGrowth> twice = {{sequence, 1}, {sequence, 1}}, unknown = {{7, 1}};
  EXPECT_THAT([&] { continued(cache, twice); },
              ThrowsMessage<Error>(HasSubstr("sequences: expected each once, but got 0 twice")));
  EXPECT_THAT([&] { continued(cache, unknown); }, ThrowsMessage<Error>(HasSubstr("but got 7")));
}

// Cached keys are constants; gradients go to queries and parameters.
TEST(CachedGradients, GoToQueriesAndParameters) {
  const auto method = method_of("t5", kSmallShape);
  const at::Tensor q = floats(4, 2, 1).clone().set_requires_grad(true);
  const at::Tensor table = random_parameters(*method)[0].to(at::kFloat).set_requires_grad(true);
  KvCache cache = small_cache();
  const std::vector<SequenceGrowth> growing = {{cache.add(), 2}};
  grow(cache, 0, 5, 20);
  const Layout layout = continued(cache, growing);
  grow(cache, 0, 2, 22);
  const at::Tensor out = attend_cached(*method, q, cache, growing, layout, 0, std::vector{table});
  at::Tensor k = at::empty({1, 2, 7, 6}), v = at::empty({1, 2, 7, 6});
  cache.read(0, 0, view_4d<float>(k), view_4d<float>(v));
  out.square().sum().backward();
  const at::Tensor got_q = q.grad().clone(), got_table = table.grad().clone();
  q.mutable_grad().reset(), table.mutable_grad().reset();
  attend_with(*method, q, k, v, {.queries = 2, .keys = 7, .first_query = 5}, 0, std::vector{table})
      .square()
      .sum()
      .backward();
  EXPECT_LE(largest_difference(got_q, q.grad()), 1e-6);
  EXPECT_LE(largest_difference(got_table, table.grad()), 1e-6);
}

}  // namespace
}  // namespace sextant::testing
