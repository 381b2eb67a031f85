// DeBERTa: vectors by distance on queries (content to position) and on keys (position to content),
// each a projection of one table of positions.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "tests/golden/linear.h"
#include "tests/golden/projected.h"
#include "tests/golden/trial.h"

namespace sextant::golden {
namespace {

bool has_term(const Golden& golden, const std::string& term) {
  for (const auto& one : golden.meta().at("pos_att_type")) {
    if (one == term) return true;
  }
  return false;
}

// The part that both versions share, from q, k and v on; the file contains the row map.
Trial disentangled(const Golden& golden, oracle::Tensor<double> q, oracle::Tensor<double> k,
                   oracle::Tensor<double> v) {
  Trial trial;
  oracle::Problem<double>& p = trial.problem;
  p.q = std::move(q);
  p.k = std::move(k);
  p.v = std::move(v);
  const int64_t rows = p.q.rows, keys = p.k.rows;
  const auto terms = 1 + golden.meta().at("pos_att_type").size();
  p.scale = 1 / std::sqrt(static_cast<double>(p.q.columns) * static_cast<double>(terms));
  oracle::place_plainly(p, 0, oracle::whole_ranges(rows, keys));
  trial.d_out = split_heads(golden.numbers("g"), p.q.batch, rows, p.q.heads);
  // The mask is [B, 1, L, L], 1 where visible; the file's `scores` are those before masking.
  if (golden.has("attention_mask")) {
    p.mask = {p.q.batch, 1, rows, keys};
    for (size_t n = 0; const double flag : golden.numbers("attention_mask")) {
      p.mask.data[n++] = flag != 0 ? 1 : 0;
    }
  } else {
    trial.scores = golden.tensor("scores");
  }
  return trial;
}

// [rows of positions, heads * D] -> [1, heads, rows, D], with the map from distance to row.
void put_table(const Golden& golden, oracle::Problem<double>& p, const Projection& projection,
               oracle::OwnedTable<double>& table) {
  const int64_t positions = golden.shape(projection.x)[0];
  table.rows = split_heads(projection.forward(golden), 1, positions, p.q.heads);
  for (const double row : by_diagonal(golden.numbers("rows"), 1, p.q.rows, p.k.rows).data) {
    table.row_at.push_back(static_cast<int32_t>(row));
  }
}

// v2 and v3: separate layers for q, k and v. With share_att_key (v3) the layers for content also
// project positions.
Trial version_2(const Golden& golden) {
  const auto heads = golden.meta().at("H").get<int64_t>();
  const bool shared = golden.meta().at("share_att_key").get<bool>();
  const std::string queries = golden.has("x_query") ? "x_query" : "x";
  const Projection of_q{queries, "q_w", "q_b"}, of_k{"x", "k_w", "k_b"}, of_v{"x", "v_w", "v_b"};
  const Projection to_position = {"rel_emb", shared ? "k_w" : "pos_k_w",
                                  shared ? "k_b" : "pos_k_b"};
  const Projection to_content = {"rel_emb", shared ? "q_w" : "pos_q_w", shared ? "q_b" : "pos_q_b"};
  const auto projected = [&](const Projection& projection) {
    const auto& shape = golden.shape(projection.x);
    return split_heads(projection.forward(golden), shape[0], shape[1], heads);
  };
  Trial trial = disentangled(golden, projected(of_q), projected(of_k), projected(of_v));
  const bool c2p = has_term(golden, "c2p"), p2c = has_term(golden, "p2c");
  oracle::Problem<double>& p = trial.problem;
  if (c2p) put_table(golden, p, to_position, p.on_query);
  if (p2c) put_table(golden, p, to_content, p.on_key);
  trial.answers = [=](const auto& result, const auto& g) {
    Answers answers{{"out", merge_heads(result.out)}};
    of_q.backward(golden, merge_heads(g.q), answers);
    of_k.backward(golden, merge_heads(g.k), answers);
    of_v.backward(golden, merge_heads(g.v), answers);
    if (c2p) to_position.backward(golden, merge_heads(g.on_query), answers);
    if (p2c) to_content.backward(golden, merge_heads(g.on_key), answers);
    return answers;
  };
  return trial;
}

// v1 has one layer for q, k and v, with rows [head][q, k, v][D].
struct Joint {
  int64_t heads, columns, width;

  // The row of the joint weight for row `row` of part 0 (q), 1 (k) or 2 (v).
  int64_t joint_row(int64_t part, int64_t row) const {
    return (row / columns * 3 + part) * columns + row % columns;
  }
  Doubles part(const Doubles& joint, int64_t part) const {
    Doubles rows;
    for (int64_t r = 0; r < heads * columns; ++r) {
      const auto first = joint.begin() + joint_row(part, r) * width;
      rows.insert(rows.end(), first, first + width);
    }
    return rows;
  }
  void put(const Doubles& rows, int64_t part, Doubles& joint) const {
    for (int64_t r = 0; r < heads * columns; ++r) {
      std::copy_n(rows.begin() + r * width, width, joint.begin() + joint_row(part, r) * width);
    }
  }
};

Trial version_1(const Golden& golden) {
  const auto& shape = golden.shape("x");
  const auto heads = golden.meta().at("H").get<int64_t>();
  const Joint joint{heads, golden.meta().at("d_head").get<int64_t>(), shape[2]};
  const Doubles x = golden.numbers("x"), weights = golden.numbers("in_proj_w");
  const auto projected = [&](int64_t part, const std::string& bias) {
    return split_heads(linear(x, joint.part(weights, part), joint.width,
                              golden.has(bias) ? golden.numbers(bias) : Doubles()),
                       shape[0], shape[1], heads);
  };
  Trial trial =
      disentangled(golden, projected(0, "q_bias"), projected(1, "no bias"), projected(2, "v_bias"));
  const Projection to_position = {"rel_emb", "pos_k_w", "no bias"};
  const Projection to_content = {"rel_emb", "pos_q_w", "pos_q_b"};
  const bool c2p = has_term(golden, "c2p"), p2c = has_term(golden, "p2c");
  oracle::Problem<double>& p = trial.problem;
  if (c2p) put_table(golden, p, to_position, p.on_query);
  if (p2c) put_table(golden, p, to_content, p.on_key);
  trial.answers = [=](const auto& result, const auto& g) {
    Answers answers{{"out", merge_heads(result.out)}};
    Doubles& d_weights = answers["grad_in_proj_w"];
    d_weights.resize(weights.size());
    const std::pair<const oracle::Tensor<double>*, const char*> parts[] = {
        {&g.q, "grad_q_bias"}, {&g.k, ""}, {&g.v, "grad_v_bias"}};
    for (int64_t part = 0; part < 3; ++part) {
      const auto& [gradient, bias] = parts[part];
      const Doubles d = merge_heads(*gradient);
      joint.put(linear_d_weight(d, x, joint.width), part, d_weights);
      add_answer(answers, "grad_x", linear_d_input(d, joint.part(weights, part), joint.width));
      if (*bias != '\0') answers[bias] = column_sums(d, heads * joint.columns);
    }
    if (c2p) to_position.backward(golden, merge_heads(g.on_query), answers);
    if (p2c) to_content.backward(golden, merge_heads(g.on_key), answers);
    return answers;
  };
  return trial;
}

}  // namespace

const std::vector<Family>& deberta_families() {
  static const std::vector<Family> families = {
      {"deberta_v1_", version_1},
      {"deberta_v2_", version_2},
      {"deberta_v3_", version_2},
      {"deberta_ms_", version_2},
  };
  return families;
}

}  // namespace sextant::golden
