// Positions of queries and keys affect results only as the score equation says.
#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/attention/property.h"

namespace sextant::oracle {
namespace {

class Position : public Property {};

rc::Gen<int64_t> shifts() {
  return rc::gen::element<int64_t>(1, 17, 1000, (int64_t{1} << 24) + 1, (int64_t{1} << 31) - 1000,
                                   -3, -(int64_t{1} << 40));
}

Problem<float> shifted(Problem<float> p, int64_t by) {
  for (Frame& frame : p.frames) {
    frame.query_position += by;
    frame.key_position += by;
  }
  for (OwnedSweep& sweep : p.sweeps) {
    for (int64_t& t : sweep.query_rotary_positions) t += by;
    for (int64_t& t : sweep.key_rotary_positions) t += by;
  }
  return p;
}

TEST_P(Position, AShiftOfEverythingKeepsEveryBitOfWhatDependsOnDistance) {
  check([&](Draw draw) {
    draw.rotated = false;
    const Problem<float> p = make_problem(draw);
    const Tensor<float> d_out = random_d_out(p, draw.seed);
    return difference_in_bits(outcome(p, d_out, backend()),
                              outcome(shifted(p, *shifts()), d_out, backend()));
  });
}

// The shift changes the angles, and so the rounding of each row, but not the products of rows.
TEST_P(Position, AShiftOfEverythingKeepsWhatIsTurned) {
  check([&](Draw draw) {
    draw.rotated = true;
    const Problem<float> p = make_problem(draw);
    const Tensor<float> d_out = random_d_out(p, draw.seed);
    return difference(outcome(p, d_out, backend()),
                      outcome(shifted(p, *shifts()), d_out, backend()), bounds_of(p, d_out));
  });
}

Tensor<float> permuted(const Tensor<float>& x, const std::vector<int64_t>& from) {
  Tensor<float> y(x.batch, x.heads, x.rows, x.columns);
  for (int64_t b = 0; b < x.batch; ++b) {
    for (int64_t h = 0; h < x.heads; ++h) {
      for (int64_t j = 0; j < x.rows; ++j) {
        for (int64_t c = 0; c < x.columns; ++c) {
          y(b, h, j, c) = x(b, h, from[static_cast<size_t>(j)], c);
        }
      }
    }
  }
  return y;
}

TEST_P(Position, KeysAreASet) {
  check([&](Draw draw) {
    draw.key_ranges = Draw::KeyRanges::kWhole;
    draw.weight = draw.bias = draw.on_query = draw.on_key = draw.on_value =
        false;  // tables go by row, not by rotary position
    const Problem<float> p = make_problem(draw);
    std::vector<int64_t> from(static_cast<size_t>(draw.keys));
    std::iota(from.begin(), from.end(), 0);
    std::shuffle(from.begin(), from.end(), std::mt19937_64(draw.seed));
    Problem<float> other = p;
    other.k = permuted(p.k, from);
    other.v = permuted(p.v, from);
    for (size_t j = 0; j < p.sweeps[0].key_rotary_positions.size(); ++j) {
      other.sweeps[0].key_rotary_positions[j] =
          p.sweeps[0].key_rotary_positions[static_cast<size_t>(from[j])];
    }
    const Tensor<float> d_out = random_d_out(p, draw.seed);
    Outcome plain = outcome(p, d_out, backend());
    const Outcome mixed = outcome(other, d_out, backend());
    plain.gradients.k = permuted(plain.gradients.k, from);
    plain.gradients.v = permuted(plain.gradients.v, from);
    return difference(plain, mixed, bounds_of(other, d_out));
  });
}

TEST_P(Position, ABiasThatIsTheSameEverywhereMovesTheLogSumExpOnly) {
  check([&](Draw draw) {
    draw.bias = true;
    draw.sink = false;
    const Problem<float> p = make_problem(draw);
    Problem<float> raised = p;
    for (float& b : raised.bias.rows.data) b += 4;
    const Tensor<float> d_out = random_d_out(p, draw.seed);
    Outcome plain = outcome(p, d_out, backend());
    for (float& lse : plain.result.lse.data) lse += 4;
    return difference(plain, outcome(raised, d_out, backend()), bounds_of(raised, d_out));
  });
}

// Each row of attention weights sums to 1 for any bias, so the gradients of all biases sum to 0.
TEST_P(Position, GradientsOfBiasesSumToZero) {
  check([&](Draw draw) -> std::string {
    draw.bias = true;
    draw.sink = false;
    const Problem<float> p = make_problem(draw);
    const Tensor<float> d_out = random_d_out(p, draw.seed);
    const auto gradient = outcome(p, d_out, backend()).gradients.bias;
    const auto bounds = bounds_of(p, d_out).gradients.bias;
    const double sum = std::accumulate(gradient.data.begin(), gradient.data.end(), 0.0);
    const double bound = std::accumulate(bounds.data.begin(), bounds.data.end(), 0.0);
    if (std::abs(sum) <= bound) return "";
    return "their sum is " + std::to_string(sum) + ", with a bound of " + std::to_string(bound);
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, Position, testing::ValuesIn(float32_backends()), backend_name);

}  // namespace
}  // namespace sextant::oracle
