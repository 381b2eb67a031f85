// rerope, leaky-rerope, self-extend, dual-chunk and streaming: each is rope at relative positions
// that a formula gives for every query and key; the tests write the formula out as a matrix.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "sextant/base/error.h"
#include "tests/torch/dense.h"
#include "tests/torch/model.h"

namespace sextant::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr double kAngles = 1e-12;  // angles in double on one side, exact on the other

// The relative position of a query at position i and a key at j; nullopt: the key is not visible.
using Formula = std::function<std::optional<double>(int64_t i, int64_t j)>;

struct Trial {
  std::string method;
  json options;
  Formula formula;
  double gain = 1;
};

void PrintTo(const Trial& trial, std::ostream* out) { *out << trial.method << trial.options; }

// Sum over pairs of Re(q conj(k) e^{i angle}), that is q . rotated k, for half-split pairs of
// frequencies 10000^(-2f/R).
at::Tensor dense_scores(const at::Tensor& q, const at::Tensor& k, const at::Tensor& relative) {
  const int64_t half = q.size(3) / 2;
  at::Tensor scores;
  for (int64_t f = 0; f < half; ++f) {
    const double frequency = std::pow(10000.0, -static_cast<double>(f) / static_cast<double>(half));
    const at::Tensor cos = at::cos(relative * frequency), sin = at::sin(relative * frequency);
    const auto column = [](const at::Tensor& x, int64_t c) { return x.narrow(3, c, 1); };
    const at::Tensor q1 = column(q, f), q2 = column(q, f + half);
    const at::Tensor k1 = column(k, f).transpose(2, 3), k2 = column(k, f + half).transpose(2, 3);
    const at::Tensor part = (q1 * k1 + q2 * k2) * cos + (q1 * k2 - q2 * k1) * sin;
    scores = scores.defined() ? scores + part : part;
  }
  return scores;
}

at::Tensor expected(const Trial& trial, const Layer& layer, const Layout& p) {
  const at::Tensor relative = at::zeros({p.queries, p.keys}, at::kDouble);
  const at::Tensor visible = at::zeros({p.queries, p.keys}, at::kBool);
  for (int64_t i = 0; i < p.queries; ++i)
    for (int64_t j = 0; j < p.keys; ++j) {
      const int64_t query = p.first_query + i, key = p.first_key + j;
      if (p.causal && key > query) continue;
      const std::optional<double> r = trial.formula(query, key);
      relative.data_ptr<double>()[i * p.keys + j] = r.value_or(0);
      visible.data_ptr<bool>()[i * p.keys + j] = r.has_value();
    }
  const at::Tensor k = layer.k.repeat_interleave(2, 1), v = layer.v.repeat_interleave(2, 1);
  const at::Tensor scores = dense_scores(layer.q, k, relative) * trial.gain * trial.gain /
                            std::sqrt(static_cast<double>(layer.q.size(3)));
  return at::matmul(weights(scores, visible), v);
}

double sign(int64_t distance) { return distance < 0 ? -1 : 1; }

// d within the window, sign(d) far(|d|) beyond it.
Formula beyond(int64_t window, const std::function<double(int64_t)>& far) {
  return [=](int64_t i, int64_t j) -> std::optional<double> {
    const int64_t d = i - j, distance = std::abs(d);
    return distance < window ? static_cast<double>(d) : sign(d) * far(distance);
  };
}

Formula groups(int64_t window, int64_t group, double offset) {
  return [=](int64_t i, int64_t j) -> std::optional<double> {
    const int64_t d = i - j;
    if (std::abs(d) < window) return d;
    return static_cast<double>(i / group - j / group) + sign(d) * offset;
  };
}

Formula chunks(int64_t size, int64_t local) {
  const auto past = [=](int64_t i, int64_t j) -> double {
    const int64_t c = size - local, apart = i / c - j / c;
    if (apart == 0) return static_cast<double>(i - j);
    const int64_t query = apart == 1 ? std::min(i % c + c, size) : std::min(2 * c - 1, size);
    return static_cast<double>(query - j % c);
  };
  return [=](int64_t i, int64_t j) -> std::optional<double> {
    return i >= j ? past(i, j) : -past(j, i);
  };
}

// StreamingLLM's positions in a cache; the first key of the sequence is at position `start`.
Formula cache(int64_t sinks, int64_t recent, int64_t start) {
  return [=](int64_t i, int64_t j) -> std::optional<double> {
    if (std::abs(i - j) <= recent) return i - j;
    if (j > i || j - start >= sinks) return std::nullopt;
    return static_cast<double>(std::min(i - start, sinks + recent) - (j - start));
  };
}

class Piecewise : public ::testing::TestWithParam<Trial> {};

TEST_P(Piecewise, IsRopeAtTheRelativePositionsOfItsFormula) {
  const Trial& trial = GetParam();
  const auto method = method_of(trial.method, kSmallShape, trial.options.dump());
  for (const bool causal : {true, false})
    for (const auto& [queries, keys] : {std::pair{23, 23}, {1, 30}, {5, 19}, {40, 7}}) {
      const Layout p = {.batch = 2,
                        .queries = queries,
                        .keys = keys,
                        .first_query = std::max(keys - queries, 0),
                        .causal = causal};
      const Layer layer(kSmallShape, p);
      const at::Tensor out = attend_with(*method, layer.q, layer.k, layer.v, p, 0, {});
      EXPECT_LE(largest_difference(out, expected(trial, layer, p)), kAngles)
          << queries << " queries, " << keys << " keys" << (causal ? ", causal" : "");
    }
}

INSTANTIATE_TEST_SUITE_P(
    Methods, Piecewise,
    ::testing::Values(
        Trial{"rerope", json::object(), beyond(4, [](int64_t) { return 4; })},
        Trial{"rerope", {{"window", 1}}, beyond(1, [](int64_t) { return 1; })},
        Trial{"rerope", {{"window", 100}}, beyond(100, [](int64_t) { return 100; })},
        Trial{"leaky-rerope",
              {{"window", 3}, {"factor", 7.0}},
              beyond(3, [](int64_t d) { return 3 + static_cast<double>(d - 3) / 7; })},
        Trial{"leaky-rerope",
              {{"window", 5}, {"factor", 0.125}},
              beyond(5, [](int64_t d) { return 5 + static_cast<double>(d - 5) * 8; })},
        Trial{"self-extend", {{"window", 6}, {"group", 3}}, groups(6, 3, 4)},
        Trial{"self-extend", {{"window", 5}, {"group", 3}}, groups(5, 3, 5 - 5.0 / 3)},
        Trial{"self-extend", {{"window", 5}, {"group", 3}, {"flavour", "paper"}}, groups(5, 3, 4)},
        Trial{"dual-chunk", json::object(), chunks(6, 1)},
        Trial{"dual-chunk", {{"chunk_size", 8}, {"local_window", 4}}, chunks(8, 4)},
        Trial{"dual-chunk", {{"chunk_size", 7}, {"local_window", 0}}, chunks(7, 0)},
        Trial{"dual-chunk",
              {{"chunk_size", 8}, {"local_window", 2}, {"mscale", 1.25}},
              chunks(8, 2),
              1.25},
        Trial{"streaming", json::object(), cache(4, 3, 0)},
        Trial{"streaming", {{"sinks", 1}, {"recent", 9}}, cache(1, 9, 0)},
        Trial{"streaming", {{"sinks", 0}, {"recent", 0}}, cache(0, 0, 0)}));

at::Tensor run_piecewise(const std::string& name, const json& options, const Layout& p) {
  const Layer layer(kSmallShape, p);
  return attend_with(*method_of(name, kSmallShape, options.dump()), layer.q, layer.k, layer.v, p, 0,
                     {});
}

TEST(Piecewise, AWindowAsWideAsTheTextIsRope) {
  const Layout p = {.batch = 2, .queries = 9, .keys = 9, .causal = false};
  const at::Tensor rope = run_piecewise("rope", json::object(), p);
  for (const char* name : {"rerope", "leaky-rerope", "self-extend"})
    EXPECT_LE(largest_difference(run_piecewise(name, {{"window", 9}}, p), rope), kAngles) << name;
  EXPECT_LE(largest_difference(
                run_piecewise("dual-chunk", {{"chunk_size", 9}, {"local_window", 0}}, p), rope),
            kAngles);
  EXPECT_LE(largest_difference(run_piecewise("streaming", {{"recent", 8}}, p), rope), kAngles);
}

TEST(Piecewise, TakesTheOptionsOfRope) {
  const Layout p = {.batch = 1, .queries = 12, .keys = 12};
  const json options = {{"pairing", "interleaved"}, {"dim", 4}, {"base", 500.0}};
  json wide = options;
  wide["window"] = 12;
  EXPECT_LE(largest_difference(run_piecewise("rerope", wide, p), run_piecewise("rope", options, p)),
            kAngles);
  EXPECT_THAT(
      [&] {
        run_piecewise("rerope", {{"axes", "blocks"}, {"sections", {3}}}, p);
      },
      ThrowsMessage<Error>(HasSubstr("rerope: axes: expected \"one\"")));
}

// The stretch changes the spectrum, then the method maps distances: if no distance lies beyond the
// window, the result is that of a stretched rope.
TEST(Piecewise, BendsDistancesOfAStretchedSpectrum) {
  const Layout p = {.batch = 2, .queries = 9, .keys = 9, .causal = false};
  for (const json& stretch :
       {json("linear*4"), json("ntk*3"),
        json({{"rope_type", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 8}})}) {
    const json options = {{"stretch", stretch}};
    const at::Tensor rope = run_piecewise("rope", options, p);
    EXPECT_GT(largest_difference(rope, run_piecewise("rope", json::object(), p)), 1e-3);
    const auto with = [&](json more) {
      more["stretch"] = stretch;
      return more;
    };
    for (const char* name : {"rerope", "leaky-rerope", "self-extend"})
      EXPECT_LE(largest_difference(run_piecewise(name, with({{"window", 9}}), p), rope), kAngles)
          << name;
    EXPECT_LE(
        largest_difference(
            run_piecewise("dual-chunk", with({{"chunk_size", 9}, {"local_window", 0}}), p), rope),
        kAngles);
    EXPECT_LE(largest_difference(run_piecewise("streaming", with({{"recent", 8}}), p), rope),
              kAngles);
  }
  // A distance beyond the window is mapped first, then multiplied by the stretched frequency.
  const at::Tensor slow =
      run_piecewise("leaky-rerope", {{"window", 3}, {"stretch", "linear*4"}}, p);
  EXPECT_GT(largest_difference(slow, run_piecewise("rope", {{"stretch", "linear*4"}}, p)), 1e-3);
  const auto fails = [&](const json& stretch, const char* text) {
    EXPECT_THAT(
        [&] {
          run_piecewise("rerope", {{"stretch", stretch}}, p);
        },
        ThrowsMessage<Error>(HasSubstr(text)));
  };
  fails("dynamic-ntk",
        "rerope: stretch: expected one that is the same for sequences of all lengths");
  fails({{"rope_type", "yarn"},
         {"factor", 4},
         {"mscale_all_dim", 1.0},
         {"mscale", 1.0},
         {"scale_scores", true}},
        "rerope: stretch: expected one that changes frequencies and their gain only");
}

// With an mscale that depends on the length, each query gets the result of the constant mscale for
// its length.
TEST(DualChunk, SharpensByTheLengthOfTheText) {
  const Layout p = {.batch = 1, .queries = 21, .keys = 21};
  const auto at = [](int64_t length, double weight) {
    return std::max(1.0, 1 + weight * std::log(static_cast<double>(length) / 8));  // L is 8
  };
  const auto of = [&](const json& mscale, const char* dynamic) {
    return run_piecewise("dual-chunk", {{"mscale", mscale}, {"dynamic", dynamic}, {"dim", 4}}, p);
  };
  const at::Tensor whole = of("chunk-llama", "length");
  EXPECT_LE(largest_difference(whole, of(at(21, 0.05), "query")), kAngles);
  const at::Tensor each = of("chunk-llama", "query");
  for (const int64_t row : {0, 7, 8, 20})
    EXPECT_LE(
        largest_difference(each.select(2, row), of(at(row + 1, 0.05), "query").select(2, row)),
        kAngles)
        << row;
  // Qwen's factor also scales the channels that are not rotated.
  const Layer layer(kSmallShape, p);
  const at::Tensor qwen = attend_with(*method_of("dual-chunk", kSmallShape, R"({"dim": 4})"),
                                      layer.q * at(21, 0.1), layer.k, layer.v, p, 0, {});
  EXPECT_LE(largest_difference(of("qwen", "length"), qwen), kAngles);
}

TEST(Piecewise, DistancesBeyondTheWindowAreExactFarOut) {
  const json options = {{"window", 3}, {"factor", 7.0}};
  const Layout near = {.batch = 1, .queries = 9, .keys = 9};
  Layout far = near;
  far.first_query = far.first_key = int64_t{1} << 50;
  EXPECT_LE(largest_difference(run_piecewise("leaky-rerope", options, near),
                               run_piecewise("leaky-rerope", options, far)),
            1e-14);
}

TEST(Piecewise, LogNGrowsQueriesPastTheTrainingLength) {
  const Layout p = {.batch = 1, .queries = 12, .keys = 12};
  Layer layer(kSmallShape, p);
  const at::Tensor plain = attend_with(*method_of("rerope", kSmallShape, R"({"log_n": 5})"),
                                       layer.q, layer.k, layer.v, p, 0, {});
  const at::Tensor n = at::arange(1, 13, at::kDouble).view({1, 1, 12, 1});
  const at::Tensor scaled = layer.q * at::clamp_min(at::log(n) / std::log(5.0), 1);
  EXPECT_LE(largest_difference(plain, attend_with(*method_of("rerope", kSmallShape), scaled,
                                                  layer.k, layer.v, p, 0, {})),
            kAngles);
  EXPECT_THAT(
      [&] {
        run_piecewise("rerope", {{"log_n", 1}}, p);
      },
      ThrowsMessage<Error>(HasSubstr("rerope: log_n: expected null or at least 2")));
}

// StreamingLLM's cache drops the keys that are no longer visible, and positions are indices in the
// cache.
TEST(Streaming, NeedsNoKeyThatACacheHasDropped) {
  const int64_t sinks = 2, recent = 4, rows = 15;
  const json options = {{"sinks", sinks}, {"recent", recent}};
  const Layout whole = {.batch = 1, .queries = rows, .keys = rows};
  const Layer layer(kSmallShape, whole);
  const auto method = method_of("streaming", kSmallShape, options.dump());
  const at::Tensor out = attend_with(*method, layer.q, layer.k, layer.v, whole, 0, {});
  for (int64_t n = sinks + recent + 1; n < rows; ++n) {
    const auto kept = [&](const at::Tensor& x) {
      return at::cat({x.slice(2, 0, sinks), x.slice(2, n - recent, n + 1)}, 2);
    };
    const Layout cached = {.queries = 1, .keys = sinks + recent + 1, .first_query = sinks + recent};
    EXPECT_LE(largest_difference(attend_with(*method, layer.q.slice(2, n, n + 1), kept(layer.k),
                                             kept(layer.v), cached, 0, {}),
                                 out.slice(2, n, n + 1)),
              kAngles);
  }
}

}  // namespace
}  // namespace sextant::testing
