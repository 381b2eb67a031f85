// Vectors and biases by signed distance, in the modules of the official code.
#include <algorithm>
#include <cmath>

#include "sextant/base/error.h"
#include "tests/golden/linear.h"
#include "tests/golden/projected.h"
#include "tests/golden/trial.h"

namespace sextant::golden {
namespace {

constexpr double kHidden = -5000;  // the files' masks add less than this to hidden scores

Doubles visible(const Doubles& mask) {
  Doubles flags;
  for (const double x : mask) flags.push_back(x > kHidden ? 1 : 0);
  return flags;
}

// q, k, v, gradients and scores of files from tensor2tensor, whose code multiplies q by the scale
// D^-1/2.
Trial tensor2tensor_trial(const Golden& golden) {
  Trial trial;
  oracle::Problem<double>& p = trial.problem;
  p.q = golden.tensor("q");
  p.k = golden.tensor("k");
  p.v = golden.tensor("v");
  p.scale = 1 / std::sqrt(static_cast<double>(p.q.columns));
  oracle::place_plainly(p, p.k.rows - p.q.rows,
                        golden.has("bias")
                            ? key_ranges_of(visible(golden.numbers("bias")), p.q.rows, p.k.rows)
                            : oracle::whole_ranges(p.q.rows, p.k.rows));
  trial.d_out = golden.tensor("g");
  trial.scores = golden.tensor("scores");
  return trial;
}

// The array, [R, D] or [H, R, D], with one more row of zeros.
oracle::Tensor<double> table_and_zeros(const Golden& golden, const std::string& array) {
  const auto& shape = golden.shape(array);
  const int64_t heads = shape.size() == 3 ? shape[0] : 1;
  const int64_t rows = shape[shape.size() - 2], columns = shape.back();
  const Doubles numbers = golden.numbers(array);
  oracle::Tensor<double> table(1, heads, rows + 1, columns);
  for (int64_t h = 0; h < heads; ++h) {
    std::copy_n(numbers.begin() + h * rows * columns, rows * columns,
                table.data.begin() + h * (rows + 1) * columns);
  }
  return table;
}

// The table of each head without its last row.
Doubles without_last_row(const oracle::Tensor<double>& table) {
  Doubles rows;
  for (int64_t h = 0; h < table.heads; ++h) {
    const auto first = table.data.begin() + h * table.rows * table.columns;
    rows.insert(rows.end(), first, first + (table.rows - 1) * table.columns);
  }
  return rows;
}

// A table on keys (A in the score equation) and, if the file has one, a table on values (C).
// row(distance) is the table row.
Trial with_tables(const Golden& golden, Trial trial,
                  const std::function<int64_t(int64_t distance)>& row) {
  oracle::Problem<double>& p = trial.problem;
  const auto map = row_map(p.diagonals, row);
  p.on_query = {table_and_zeros(golden, "rel_k"), map};
  if (golden.has("rel_v")) p.on_value = {table_and_zeros(golden, "rel_v"), map};
  trial.answers = [](const auto& result, const auto& gradients) {
    return std::map<std::string, Doubles>{{"out", result.out.data},
                                          {"grad_q", gradients.q.data},
                                          {"grad_k", gradients.k.data},
                                          {"grad_v", gradients.v.data},
                                          {"grad_rel_k", without_last_row(gradients.on_query)},
                                          {"grad_rel_v", without_last_row(gradients.on_value)}};
  };
  return trial;
}

Trial shaw(const Golden& golden) {
  const auto most = golden.meta().at("max_relative_position").get<int64_t>();
  return with_tables(golden, tensor2tensor_trial(golden), [most](int64_t distance) {
    return std::clamp(-distance, -most, most) + most;
  });
}

// Distances outside the table map to its last row, which is zero.
Trial skew(const Golden& golden) {
  Trial trial = tensor2tensor_trial(golden);
  if (!golden.meta().at("unmasked").get<bool>()) {
    trial.problem.sweeps.at(0).key_ranges = oracle::causal_runs(trial.problem.q.rows, 0);
  }
  const auto most = golden.meta().at("max_relative_position").get<int64_t>();
  const auto& shape = golden.shape("rel_k");
  const int64_t rows = shape[shape.size() - 2];
  return with_tables(golden, std::move(trial), [most, rows](int64_t distance) {
    const int64_t row = -distance + most - 1;
    return row < 0 || row >= rows ? rows : row;
  });
}

// q, k and v of modules whose input is x [batch, rows, width] and whose layers are named q_w, q_b
// and so on.
Trial module_trial(const Golden& golden) {
  const auto& shape = golden.shape("x");
  const int64_t batch = shape[0], rows = shape[1];
  const auto heads = golden.meta().at("H").get<int64_t>();
  const auto projected = [&](const std::string& which) {
    return split_heads(Projection{"x", which + "_w", which + "_b"}.forward(golden), batch, rows,
                       heads);
  };
  Trial trial;
  oracle::Problem<double>& p = trial.problem;
  p.q = projected("q");
  p.k = projected("k");
  p.v = projected("v");
  p.scale = 1 / std::sqrt(static_cast<double>(p.q.columns));
  oracle::place_plainly(p, 0, oracle::whole_ranges(rows, rows));
  trial.d_out = split_heads(golden.numbers("g"), batch, rows, heads);
  trial.scores = golden.tensor("scores");
  trial.answers = [golden](const auto& result, const auto& gradients) {
    Answers answers{{"out", merge_heads(result.out)}};
    for (const auto& [which, gradient] :
         {std::pair{"q", &gradients.q}, std::pair{"k", &gradients.k},
          std::pair{"v", &gradients.v}}) {
      const std::string name = which;
      Projection{"x", name + "_w", name + "_b"}.backward(golden, merge_heads(*gradient), answers);
    }
    return answers;
  };
  return trial;
}

// BERT's relative_key (A) and relative_key_query (A and B, one table).
Trial bert_relative(const Golden& golden) {
  Trial trial = module_trial(golden);
  oracle::Problem<double>& p = trial.problem;
  const auto most = golden.meta().at("max_position_embeddings").get<int64_t>();
  p.on_query.rows = {1, 1, golden.shape("dist_emb")[0], p.q.columns};
  p.on_query.rows.data = golden.numbers("dist_emb");
  p.on_query.row_at = row_map(p.diagonals, [most](int64_t d) { return d + most - 1; });
  const bool both = golden.name().ends_with("query");
  if (both) p.on_key = p.on_query;
  trial.answers = [both, before = trial.answers](const auto& result, const auto& gradients) {
    Answers answers = before(result, gradients);
    add_answer(answers, "grad_dist_emb", gradients.on_query.data);
    if (both) add_answer(answers, "grad_dist_emb", gradients.on_key.data);
    return answers;
  };
  return trial;
}

// NEZHA: one fixed table on keys and on values.
Trial nezha(const Golden& golden) {
  Trial trial = module_trial(golden);
  oracle::Problem<double>& p = trial.problem;
  const auto most = golden.meta().at("max_relative_position").get<int64_t>();
  p.on_query.rows = {1, 1, 2 * most + 1, p.q.columns};
  p.on_query.rows.data = golden.numbers("rel_table");
  p.on_query.row_at =
      row_map(p.diagonals, [most](int64_t d) { return std::clamp(-d, -most, most) + most; });
  p.on_value = p.on_query;
  const Doubles flags = visible(golden.numbers("attention_mask"));  // [B, 1, 1, keys]
  p.sweeps[0].key_ranges.clear();
  for (int64_t b = 0; b < p.q.batch; ++b) {
    const Doubles own(flags.begin() + b * p.k.rows, flags.begin() + (b + 1) * p.k.rows);
    const KeyRange run = key_ranges_of(own, 1, p.k.rows)[0];
    p.sweeps[0].key_ranges.insert(p.sweeps[0].key_ranges.end(), static_cast<size_t>(p.q.rows), run);
  }
  return trial;
}

// Concatenates the rows of `past` and `x` for each head.
oracle::Tensor<double> joined(const oracle::Tensor<double>& past, const oracle::Tensor<double>& x) {
  oracle::Tensor<double> all(x.batch, x.heads, past.rows + x.rows, x.columns);
  for (int64_t b = 0; b < x.batch; ++b) {
    for (int64_t h = 0; h < x.heads; ++h) {
      for (int64_t i = 0; i < all.rows; ++i) {
        for (int64_t c = 0; c < x.columns; ++c) {
          all(b, h, i, c) = i < past.rows ? past(b, h, i, c) : x(b, h, i - past.rows, c);
        }
      }
    }
  }
  return all;
}
oracle::Tensor<double> last_rows(const oracle::Tensor<double>& x, int64_t rows) {
  oracle::Tensor<double> last(x.batch, x.heads, rows, x.columns);
  for (int64_t b = 0; b < x.batch; ++b) {
    for (int64_t h = 0; h < x.heads; ++h) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t c = 0; c < x.columns; ++c) last(b, h, i, c) = x(b, h, x.rows - rows + i, c);
      }
    }
  }
  return last;
}

// T5: a bias per bucket and head, no scale, keys that may be cached. The file contains the row map.
Trial t5(const Golden& golden) {
  const auto& shape = golden.shape("x");
  const int64_t batch = shape[0], rows = shape[1], width = shape[2];
  const int64_t buckets = golden.shape("rel_bias")[0], heads = golden.shape("rel_bias")[1];
  const Doubles x = golden.numbers("x");
  const auto projected = [&](const std::string& which) {
    const auto now =
        split_heads(linear(x, golden.numbers(which + "_w"), width), batch, rows, heads);
    return golden.has("past_" + which) ? joined(golden.tensor("past_" + which), now) : now;
  };
  Trial trial;
  oracle::Problem<double>& p = trial.problem;
  p.q = projected("q");
  p.k = projected("k");
  p.v = projected("v");
  const int64_t keys = p.k.rows;
  oracle::place_plainly(p, keys - rows, oracle::whole_ranges(rows, keys));
  if (golden.has("mask")) {
    const Doubles flags = visible(golden.numbers("mask"));
    auto& key_ranges = p.sweeps.at(0).key_ranges;
    key_ranges.clear();
    const int64_t masks = static_cast<int64_t>(flags.size()) / (rows * keys);
    key_ranges = key_ranges_of(flags, masks * rows, keys);
  }
  p.bias.rows = {1, heads, buckets, 1};
  const Doubles table = golden.numbers("rel_bias");
  for (int64_t h = 0; h < heads; ++h) {
    for (int64_t r = 0; r < buckets; ++r) {
      p.bias.rows(0, h, r, 0) = table[static_cast<size_t>(r * heads + h)];
    }
  }
  for (const double row : by_diagonal(golden.numbers("bucket"), 1, rows, keys).data) {
    p.bias.row_at.push_back(static_cast<int32_t>(row));
  }
  const int64_t inner = heads * p.v.columns;
  const Doubles output = golden.numbers("o_w"), g = golden.numbers("g");
  trial.d_out = split_heads(linear_d_input(g, output, inner), batch, rows, heads);
  trial.scores = golden.tensor("scores");
  trial.answers = [=](const auto& result, const auto& gradients) {
    const Doubles context = merge_heads(result.out);
    std::map<std::string, Doubles> answers{{"out", linear(context, output, inner)},
                                           {"grad_o_w", linear_d_weight(g, context, inner)}};
    Doubles d_x(x.size());
    for (const auto& [which, gradient] :
         {std::pair{"q", &gradients.q}, std::pair{"k", &gradients.k},
          std::pair{"v", &gradients.v}}) {
      const Doubles d = merge_heads(last_rows(*gradient, rows));
      const std::string weight = std::string(which) + "_w";
      answers["grad_" + weight] = linear_d_weight(d, x, width);
      d_x = sum(d_x, linear_d_input(d, golden.numbers(weight), width));
    }
    answers["grad_x"] = d_x;
    for (int64_t r = 0; r < buckets; ++r) {
      for (int64_t h = 0; h < heads; ++h) {
        answers["grad_rel_bias"].push_back(gradients.bias(0, h, r, 0));
      }
    }
    return answers;
  };
  return trial;
}

}  // namespace

const std::vector<Family>& relative_families() {
  static const std::vector<Family> families = {
      {"shaw_", shaw},    {"skew_", skew},    {"bert_relative_key", bert_relative},
      {"t5_encoder", t5}, {"t5_decoder", t5}, {"nezha_", nezha},
      {"umt5_", t5},
  };
  return families;
}

}  // namespace sextant::golden
