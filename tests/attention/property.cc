#include "tests/attention/property.h"
#include "tests/attention/host_backends.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "tests/attention/bounds.h"

namespace sextant::oracle {
namespace {

// Lengths around the edges of vectors, tiles and tasks.
rc::Gen<int64_t> lengths() {
  return rc::gen::weightedOneOf<int64_t>(
      {{6, rc::gen::inRange<int64_t>(1, 20)},
       {2, rc::gen::element<int64_t>(31, 32, 33, 63, 64, 65, 100)},
       {1, rc::gen::element<int64_t>(255, 256, 257, 300)}});
}

// Numbers of columns around the widths of vectors and tiles.
rc::Gen<int64_t> widths() {
  return rc::gen::weightedOneOf<int64_t>(
      {{5, rc::gen::inRange<int64_t>(1, 20)}, {1, rc::gen::element<int64_t>(31, 32, 33, 64, 80)}});
}

// The memory of a random score is contiguous.
template <class AnyView>
Tensor<float> copied(const AnyView& view) {
  Tensor<float> tensor(view.batch, view.heads, view.rows, view.columns);
  std::copy_n(static_cast<const float*>(view.data), tensor.data.size(), tensor.data.begin());
  return tensor;
}

OwnedTable<float> copied(const View<const float>& rows, std::span<const int32_t> row_at) {
  return {copied(rows), {row_at.begin(), row_at.end()}};
}

}  // namespace

rc::Gen<Draw> draws() {
  using rc::gen::arbitrary;
  using rc::gen::inRange;
  using rc::gen::set;
  const auto drawn = rc::gen::build<Draw>(
      set(&Draw::batch, inRange<int64_t>(1, 3)), set(&Draw::key_heads, inRange<int64_t>(1, 3)),
      set(&Draw::heads, inRange<int64_t>(1, 4)), set(&Draw::queries, lengths()),
      set(&Draw::keys, lengths()), set(&Draw::columns, widths()),
      set(&Draw::value_columns, widths()),
      set(&Draw::key_ranges, rc::gen::element(Draw::KeyRanges::kCausal, Draw::KeyRanges::kWhole,
                                              Draw::KeyRanges::kWindow, Draw::KeyRanges::kRagged)),
      set(&Draw::rotated, arbitrary<bool>()),
      set(&Draw::q_imag, rc::gen::weightedElement<bool>({{1, true}, {5, false}})),
      set(&Draw::weight, arbitrary<bool>()), set(&Draw::bias, arbitrary<bool>()),
      set(&Draw::on_query, arbitrary<bool>()), set(&Draw::on_key, arbitrary<bool>()),
      set(&Draw::on_value, arbitrary<bool>()), set(&Draw::shared_tables, arbitrary<bool>()),
      set(&Draw::sink, arbitrary<bool>()), set(&Draw::clip, inRange<int64_t>(0, 6)),
      set(&Draw::seed, inRange<uint64_t>(0, 1000)));
  return rc::gen::map(drawn, [](Draw draw) {
    draw.heads *= draw.key_heads;  // drawn as the query heads of a key head
    return draw;
  });
}

Problem<float> make_problem(const Draw& draw) {
  const RandomScore<float> random(draw);
  const Score<float>& score = random.score;
  const Sweep& sweep = score.sweeps.at(0);
  Problem<float> p;
  p.q = copied(score.q);
  p.k = copied(score.k);
  p.v = copied(score.v);
  p.q_imag = copied(score.q_imag);
  p.scale = 1 / std::sqrt(static_cast<double>(draw.columns));
  place_plainly(p, draw.keys - draw.queries,
                std::vector<KeyRange>(sweep.key_ranges, sweep.key_ranges + draw.queries));
  if (draw.rotated) {
    p.sweeps[0].rotation = *sweep.query.rotation;
    p.sweeps[0].query_rotary_positions.assign(sweep.query.rotary_positions,
                                              sweep.query.rotary_positions + draw.queries);
    p.sweeps[0].key_rotary_positions.assign(sweep.key.rotary_positions,
                                            sweep.key.rotary_positions + draw.keys);
  }
  p.weight = copied(score.weight, score.row_at.weight);
  p.bias = copied(score.bias, score.row_at.bias);
  p.on_query = copied(score.on_query, score.row_at.on_query);
  p.on_key = copied(score.on_key, score.row_at.on_key);
  p.on_value = copied(score.on_value, score.row_at.on_value);
  p.sink.assign(score.sink.begin(), score.sink.end());
  return p;
}

Tensor<float> random_tensor(int64_t batch, int64_t heads, int64_t rows, int64_t columns,
                            uint64_t seed) {
  Tensor<float> tensor(batch, heads, rows, columns);
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  for (float& x : tensor.data) x = normal(random);
  return tensor;
}

Tensor<float> random_d_out(const Problem<float>& p, uint64_t seed) {
  return random_tensor(p.q.batch, p.q.heads, p.q.rows, p.v.columns, seed + 12345);
}

Outcome outcome(const Problem<float>& problem, const Tensor<float>& d_out, const Backend& backend,
                const Executor& executor) {
  const Score<float> score = problem.score();
  Outcome outcome;
  outcome.result = attend(score, backend, executor);
  outcome.gradients = attend_backward(score, outcome.result, d_out, backend, executor);
  return outcome;
}

Bounds bounds_of(const Problem<float>& problem, const Tensor<float>& d_out) {
  const Problem<double> same = problem.as<double>();
  const Score<double> score = same.score();
  const Result<double> exact = attend(score, reference_backend());
  const Tensor<double> d_same = d_out.as<double>();
  return {result_bounds(score, exact), gradient_bounds(score, exact, d_same.view())};
}

std::string difference_in_bits(const std::string& what, const Tensor<float>& a,
                               const Tensor<float>& b) {
  if (a.data.size() != b.data.size()) return what + ": other sizes";
  for (size_t n = 0; n < a.data.size(); ++n) {
    const float x = a.data[n], y = b.data[n];
    if (std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y)) continue;
    if (std::isnan(x) && std::isnan(y)) continue;
    return what + "[" + std::to_string(n) + "]: " + std::to_string(x) + " and " +
           std::to_string(y) + " are other bits";
  }
  return "";
}

std::string difference(const std::string& what, const Tensor<float>& a, const Tensor<float>& b,
                       const Tensor<double>& bounds) {
  if (a.data.size() != b.data.size()) return what + ": other sizes";
  for (size_t n = 0; n < a.data.size(); ++n) {
    const double x = a.data[n], y = b.data[n];
    if (x == y || std::abs(x - y) <= 2 * bounds.data[n]) continue;
    return what + "[" + std::to_string(n) + "]: " + std::to_string(x) + " and " +
           std::to_string(y) + ", with a bound of " + std::to_string(2 * bounds.data[n]);
  }
  return "";
}

namespace {

std::string difference_of_outcomes(
    const Outcome& a, const Outcome& b,
    const std::function<std::string(const char*, const Tensor<float>&, const Tensor<float>&)>&
        difference) {
  std::string wrong = difference("out", a.result.out, b.result.out);
  if (wrong.empty()) wrong = difference("lse", a.result.lse, b.result.lse);
  Gradients<float>::each([&](const char* name, auto member) {
    if (wrong.empty()) wrong = difference(name, a.gradients.*member, b.gradients.*member);
  });
  return wrong;
}

}  // namespace

std::string difference_in_bits(const Outcome& a, const Outcome& b) {
  return difference_of_outcomes(
      a, b, [](const char* what, const Tensor<float>& x, const Tensor<float>& y) {
        return difference_in_bits(what, x, y);
      });
}

std::string difference_beside(const Backend& backend, const std::string& what,
                              const Tensor<float>& a, const Tensor<float>& b) {
  if (backend.batch_invariant || a.data.size() != b.data.size())
    return difference_in_bits(what, a, b);
  constexpr double kRoundings = 1e-4;
  for (size_t n = 0; n < a.data.size(); ++n) {
    const double x = a.data[n], y = b.data[n];
    const double most = std::max({1.0, std::abs(x), std::abs(y)});
    if (x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= kRoundings * most)
      continue;
    return what + "[" + std::to_string(n) + "]: " + std::to_string(x) + " and " +
           std::to_string(y) + " differ by more than roundings";
  }
  return "";
}

std::string difference_beside(const Backend& backend, const Outcome& a, const Outcome& b) {
  return difference_of_outcomes(
      a, b, [&](const char* what, const Tensor<float>& x, const Tensor<float>& y) {
        return difference_beside(backend, what, x, y);
      });
}

std::string difference(const Outcome& a, const Outcome& b, const Bounds& bounds) {
  std::string wrong = difference("out", a.result.out, b.result.out, bounds.result.out);
  if (wrong.empty()) wrong = difference("lse", a.result.lse, b.result.lse, bounds.result.lse);
  std::vector<Tensor<double> Gradients<double>::*> of_bounds;
  Gradients<double>::each([&](const char*, auto member) { of_bounds.push_back(member); });
  size_t n = 0;
  Gradients<float>::each([&](const char* name, auto member) {
    const auto bound = of_bounds[n++];
    if (wrong.empty()) {
      wrong = difference(name, a.gradients.*member, b.gradients.*member, bounds.gradients.*bound);
    }
  });
  return wrong;
}

void Property::check(const std::function<std::string(const Draw&)>& wrong) const {
  EXPECT_TRUE(rc::check([&] {
    const Draw draw = *draws();
    const std::string complaint = wrong(draw);
    if (!complaint.empty()) RC_FAIL(complaint);
  }));
}

std::vector<const Backend*> float32_backends() {
  std::vector<const Backend*> some;
  for (const Backend* backend : host_backends()) {
    const bool exact = backend->products == DType::kFloat32;
    if (backend->attend_f32 != nullptr && exact) some.push_back(backend);
  }
  return some;
}

std::string backend_name(const testing::TestParamInfo<const Backend*>& info) {
  std::string name(info.param->name);
  std::ranges::replace(name, '-', '_');
  return name;
}

template <class T>
Tensor<T> rows_of(const Tensor<T>& x, int64_t first, int64_t count) {
  Tensor<T> rows(x.batch, x.heads, count, x.columns);
  for (int64_t b = 0; b < x.batch; ++b) {
    for (int64_t h = 0; h < x.heads; ++h) {
      for (int64_t i = 0; i < count; ++i) {
        for (int64_t c = 0; c < x.columns; ++c) rows(b, h, i, c) = x(b, h, first + i, c);
      }
    }
  }
  return rows;
}

template <class T>
Tensor<T> batch_of(const Tensor<T>& x, int64_t first, int64_t count) {
  Tensor<T> part(count, x.heads, x.rows, x.columns);
  std::copy_n(x.data.begin() + first * x.heads * x.rows * x.columns, part.data.size(),
              part.data.begin());
  return part;
}

template Tensor<float> rows_of(const Tensor<float>&, int64_t, int64_t);
template Tensor<double> rows_of(const Tensor<double>&, int64_t, int64_t);
template Tensor<float> batch_of(const Tensor<float>&, int64_t, int64_t);

}  // namespace sextant::oracle
