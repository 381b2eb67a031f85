// Functions of the product of query and key: KERPLE's biases and weights, and the modulus of a
// complex product.
#include <cmath>

#include "tests/golden/trial.h"

namespace sextant::golden {
namespace {

// A value by head and distance, f(first, second, |distance|), and its derivatives with respect to
// the two parameters.
struct Curve {
  double (*value)(double r1, double r2, double d);
  double (*by_r1)(double r1, double r2, double d);
  double (*by_r2)(double r1, double r2, double d);
};

double log_or_0(double d) { return d == 0 ? 0 : std::log(d); }

// -r1 log(1 + r2 d)
const Curve kLogarithm = {
    [](double r1, double r2, double d) { return -r1 * std::log1p(r2 * d); },
    [](double, double r2, double d) { return -std::log1p(r2 * d); },
    [](double r1, double r2, double d) { return -r1 * d / (1 + r2 * d); },
};
// -r1 d^r2
const Curve kPower = {
    [](double r1, double r2, double d) { return -r1 * std::pow(d, r2); },
    [](double, double r2, double d) { return -std::pow(d, r2); },
    [](double r1, double r2, double d) { return -r1 * std::pow(d, r2) * log_or_0(d); },
};
// exp(-r1 d^r2)
const Curve kDecay = {
    [](double r1, double r2, double d) { return std::exp(kPower.value(r1, r2, d)); },
    [](double r1, double r2, double d) {
      return kDecay.value(r1, r2, d) * kPower.by_r1(r1, r2, d);
    },
    [](double r1, double r2, double d) {
      return kDecay.value(r1, r2, d) * kPower.by_r2(r1, r2, d);
    },
};

using ProblemTable = oracle::OwnedTable<double> oracle::Problem<double>::*;
using Gradient = oracle::Tensor<double> oracle::Gradients<double>::*;

// Fills a table with the values of a curve, whose parameters [heads] are arrays name1 and name2 of
// the file, and adds the parameters' gradients to the answers.
void add_curve(Trial& trial, const Golden& golden, const Curve& curve, const std::string& name1,
               const std::string& name2, ProblemTable place, Gradient gradient) {
  oracle::Problem<double>& p = trial.problem;
  const Doubles r1 = golden.numbers(name1), r2 = golden.numbers(name2);
  const Diagonals diagonals = p.diagonals;
  oracle::Tensor<double>& rows = (p.*place).rows;
  rows = {1, p.q.heads, diagonals.count, 1};
  // Calls f(h, row, r1, r2, |distance|).
  const auto each = [=, heads = p.q.heads](const auto& f) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t n = 0; n < diagonals.count; ++n) {
        f(h, n, r1[static_cast<size_t>(h)], r2[static_cast<size_t>(h)],
          static_cast<double>(std::abs(diagonals.distance(n))));
      }
    }
  };
  each([&](int64_t h, int64_t n, double a, double b, double d) {
    rows(0, h, n, 0) = curve.value(a, b, d);
  });
  trial.answers = [=, before = trial.answers](const auto& result, const auto& gradients) {
    auto answers = before(result, gradients);
    Doubles d1(r1.size()), d2(r2.size());
    each([&](int64_t h, int64_t n, double a, double b, double d) {
      const double above = (gradients.*gradient)(0, h, n, 0);
      d1[static_cast<size_t>(h)] += above * curve.by_r1(a, b, d);
      d2[static_cast<size_t>(h)] += above * curve.by_r2(a, b, d);
    });
    answers["d_" + name1] = d1;
    answers["d_" + name2] = d2;
    return answers;
  };
}

constexpr ProblemTable kBias = &oracle::Problem<double>::bias;
constexpr Gradient kBiasGradient = &oracle::Gradients<double>::bias;

// The official code's parameters, after its clamps. In the logarithmic form r1 is `p`; in the power
// form r1 is `a`.
Trial kerple_log(const Golden& golden) {
  Trial trial = plain_trial(golden);
  const bool official = golden.has("bias_p");
  add_curve(trial, golden, kLogarithm, official ? "bias_p" : "r1", official ? "bias_a" : "r2",
            kBias, kBiasGradient);
  return trial;
}

Trial kerple_power(const Golden& golden) {
  Trial trial = plain_trial(golden);
  if (golden.has("bias_p")) {
    add_curve(trial, golden, kPower, "bias_a", "bias_p", kBias, kBiasGradient);
  }
  if (golden.has("r1")) add_curve(trial, golden, kPower, "r1", "r2", kBias, kBiasGradient);
  if (golden.has("wei_p")) {
    add_curve(trial, golden, kDecay, "wei_a", "wei_p", &oracle::Problem<double>::weight,
              &oracle::Gradients<double>::weight);
  }
  return trial;
}

// KERPLE's code with the slopes of ALiBi.
Trial kerple_original(const Golden& golden) {
  Trial trial = plain_trial(golden);
  oracle::Problem<double>& p = trial.problem;
  // Keys after the query are hidden; the file's biases for them are not used.
  Doubles bias = golden.numbers("additive");
  p.bias.rows = {1, p.q.heads, p.diagonals.count, 1};
  for (int64_t h = 0; h < p.q.heads; ++h) {
    for (int64_t i = 0; i < p.q.rows; ++i) {
      p.bias.rows(0, h, p.diagonals.index(i), 0) =
          bias[static_cast<size_t>((h * p.q.rows + i) * p.k.rows)];
    }
  }
  return trial;
}

// Two arrays [B, rows, D] -> [B, 1, rows, 2 D], the columns of the left one first.
oracle::Tensor<double> beside(const Golden& golden, const std::string& left, double left_factor,
                              const std::string& right, double right_factor) {
  const auto& shape = golden.shape(left);
  const Doubles a = golden.numbers(left), b = golden.numbers(right);
  oracle::Tensor<double> both(shape[0], 1, shape[1], 2 * shape[2]);
  const auto columns = static_cast<size_t>(shape[2]);
  for (size_t n = 0; n < a.size(); ++n) {
    const size_t at = n / columns * 2 * columns + n % columns;
    both.data[at] = left_factor * a[n];
    both.data[at + columns] = right_factor * b[n];
  }
  return both;
}

// The left or right half of the columns of all rows.
Doubles half(const oracle::Tensor<double>& both, bool right) {
  Doubles part;
  const int64_t columns = both.columns / 2;
  for (int64_t n = 0; n < static_cast<int64_t>(both.data.size()); ++n) {
    if ((n % both.columns >= columns) == right) part.push_back(both.data[static_cast<size_t>(n)]);
  }
  return part;
}

Doubles combined(const Doubles& a, double factor, const Doubles& b) {
  Doubles result = a;
  for (size_t n = 0; n < a.size(); ++n) result[n] = factor * a[n] + b[n];
  return result;
}

// q k| for complex q and k, without conjugation: the real part is [qr, -qi].[kr, ki], the imaginary
// part [qi, qr].[kr, ki].
Trial complex_modulus(const Golden& golden) {
  Trial trial;
  oracle::Problem<double>& p = trial.problem;
  p.q = beside(golden, "q_re", 1, "q_im", -1);
  p.q_imag = beside(golden, "q_im", 1, "q_re", 1);
  p.k = beside(golden, "k_re", 1, "k_im", 1);
  p.v = beside(golden, "v_re", 1, "v_im", 1);
  p.scale = 1 / std::sqrt(static_cast<double>(p.q.columns));
  oracle::place_plainly(p, p.k.rows - p.q.rows, oracle::whole_ranges(p.q.rows, p.k.rows));
  if (golden.has("mask")) {  // true: hidden
    Doubles seen = golden.numbers("mask");
    for (double& flag : seen) flag = 1 - flag;
    p.sweeps[0].key_ranges = key_ranges_of(seen, p.q.batch * p.q.rows, p.k.rows);
  } else {
    trial.scores = {p.q.batch, 1, p.q.rows, p.k.rows};
    trial.scores.data = golden.numbers("scores");
  }
  trial.d_out = beside(golden, "g_re", 1, "g_im", 1);
  trial.answers = [](const auto& result, const auto& g) {
    return std::map<std::string, Doubles>{
        {"out_re", half(result.out, false)},
        {"out_im", half(result.out, true)},
        {"grad_q_re", combined(half(g.q, false), 1, half(g.q_imag, true))},
        {"grad_q_im", combined(half(g.q, true), -1, half(g.q_imag, false))},
        {"grad_k_re", half(g.k, false)},
        {"grad_k_im", half(g.k, true)},
        {"grad_v_re", half(g.v, false)},
        {"grad_v_im", half(g.v, true)}};
  };
  return trial;
}

}  // namespace

const std::vector<Family>& product_families() {
  static const std::vector<Family> families = {
      {"kerple_log", kerple_log},
      {"kerple_power", kerple_power},
      {"kerple_power_original", kerple_original},
      {"complex_attn_modulus", complex_modulus},
  };
  return families;
}

}  // namespace sextant::golden
