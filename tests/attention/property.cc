#include "tests/attention/property.h"
#include "tests/attention/host_backends.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <ostream>
#include <random>

#include "sextant/position/spectrum.h"
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

OwnedTable<float> make_table(const Draw& draw, const Diagonals& diagonals, int64_t columns,
                             uint64_t seed) {
  OwnedTable<float> table;
  const int64_t heads = seed % 2 == 0 ? 1 : draw.key_heads * draw.group;
  const int64_t rows = draw.clip > 0 ? 2 * draw.clip + 1 : diagonals.count;
  table.rows = random_tensor(1, heads, rows, columns, seed);
  for (int64_t n = 0; draw.clip > 0 && n < diagonals.count; ++n) {
    const int64_t distance = std::clamp(diagonals.distance(n), -draw.clip, draw.clip);
    table.row_at.push_back(static_cast<int32_t>(distance + draw.clip));
  }
  return table;
}

std::vector<KeyRange> make_runs(const Draw& draw, std::mt19937_64& random) {
  std::vector<KeyRange> key_ranges;
  for (int64_t i = 0; i < draw.queries; ++i) {
    const int64_t own = draw.keys - draw.queries + i;
    const auto drawn = static_cast<int64_t>(random() % static_cast<uint64_t>(draw.keys + 1));
    switch (draw.key_ranges) {
      case Draw::KeyRanges::kCausal:
        key_ranges.push_back({0, own + 1});
        break;
      case Draw::KeyRanges::kWhole:
        key_ranges.push_back({0, draw.keys});
        break;
      case Draw::KeyRanges::kWindow:
        key_ranges.push_back({own - 4, own + 1});
        break;
      case Draw::KeyRanges::kRagged:
        key_ranges.push_back({drawn, drawn + own % 40});
        break;
    }
  }
  return key_ranges;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Draw& d) {
  out << "batch " << d.batch << ", heads " << d.key_heads << " x " << d.group << ", rows "
      << d.queries << " x " << d.keys << ", columns " << d.columns << " and " << d.value_columns
      << ", key_ranges " << static_cast<int>(d.key_ranges) << ", clip " << d.clip << ", seed "
      << d.seed;
  const std::pair<const char*, bool> operands[] = {
      {"rotated", d.rotated},   {"q_imag", d.q_imag}, {"weight", d.weight},     {"bias", d.bias},
      {"on_query", d.on_query}, {"on_key", d.on_key}, {"on_value", d.on_value}, {"sink", d.sink}};
  for (const auto& [name, there] : operands) {
    if (there) out << ", " << name;
  }
  return out;
}

rc::Gen<Draw> draws() {
  using rc::gen::arbitrary;
  using rc::gen::inRange;
  using rc::gen::set;
  return rc::gen::build<Draw>(
      set(&Draw::batch, inRange<int64_t>(1, 3)), set(&Draw::key_heads, inRange<int64_t>(1, 3)),
      set(&Draw::group, inRange<int64_t>(1, 4)), set(&Draw::queries, lengths()),
      set(&Draw::keys, lengths()), set(&Draw::columns, widths()),
      set(&Draw::value_columns, widths()),
      set(&Draw::key_ranges, rc::gen::element(Draw::KeyRanges::kCausal, Draw::KeyRanges::kWhole,
                                              Draw::KeyRanges::kWindow, Draw::KeyRanges::kRagged)),
      set(&Draw::rotated, arbitrary<bool>()),
      set(&Draw::q_imag, rc::gen::weightedElement<bool>({{1, true}, {5, false}})),
      set(&Draw::weight, arbitrary<bool>()), set(&Draw::bias, arbitrary<bool>()),
      set(&Draw::on_query, arbitrary<bool>()), set(&Draw::on_key, arbitrary<bool>()),
      set(&Draw::on_value, arbitrary<bool>()), set(&Draw::sink, arbitrary<bool>()),
      set(&Draw::clip, inRange<int64_t>(0, 6)), set(&Draw::seed, inRange<uint64_t>(0, 1000)));
}

Problem<float> make_problem(const Draw& draw) {
  std::mt19937_64 random(draw.seed);
  const int64_t heads = draw.key_heads * draw.group;
  Problem<float> p;
  p.q = random_tensor(draw.batch, heads, draw.queries, draw.columns, random());
  p.k = random_tensor(draw.batch, draw.key_heads, draw.keys, draw.columns, random());
  p.v = random_tensor(draw.batch, draw.key_heads, draw.keys, draw.value_columns, random());
  p.scale = 1 / std::sqrt(static_cast<double>(draw.columns));
  place_plainly(p, draw.keys - draw.queries, make_runs(draw, random));
  if (draw.rotated && draw.columns > 1) {
    OwnedSweep& sweep = p.sweeps[0];
    sweep.rotation = rotation(rotary({.dim = draw.columns / 2 * 2, .base = 100}));
    for (int64_t i = 0; i < draw.queries; ++i) {
      sweep.query_rotary_positions.push_back(draw.keys - draw.queries + i);
    }
    for (int64_t j = 0; j < draw.keys; ++j) sweep.key_rotary_positions.push_back(j);
  }
  if (draw.q_imag) {
    p.q_imag = random_tensor(draw.batch, heads, draw.queries, draw.columns, random());
  }
  if (draw.weight) p.weight = make_table(draw, p.diagonals, 1, random());
  if (draw.bias) p.bias = make_table(draw, p.diagonals, 1, random());
  if (draw.on_query) p.on_query = make_table(draw, p.diagonals, draw.columns, random());
  if (draw.on_key) p.on_key = make_table(draw, p.diagonals, (draw.columns + 1) / 2, random());
  if (draw.on_value) p.on_value = make_table(draw, p.diagonals, draw.value_columns, random());
  if (draw.sink) p.sink = random_tensor(1, 1, 1, heads, random()).data;
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
