#include "tests/torch/equation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "sextant/attention/dropout.h"
#include "tests/torch/dense.h"

namespace sextant::testing {
namespace {

constexpr int64_t kMostAxes = 8;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The rotary positions of queries or keys, or without them the positions that frames give them.
at::Tensor positions(const TensorOperands& o, const at::Tensor& given, bool queries, int64_t rows) {
  if (given.defined()) return given;
  at::Tensor result = at::zeros({1, 1, rows}, at::kLong);
  for (int64_t n = 0; n < o.frames.size(0); ++n) {
    const int64_t* f = o.frames.data_ptr<int64_t>() + n * 7 + (queries ? 1 : 4);
    result.narrow(2, f[0], f[1]).copy_(at::arange(f[2], f[2] + f[1], at::kLong));
  }
  return result.expand({1, kMostAxes, rows});
}

// Rotates x [batch, heads, rows, columns]. sign: +1 for queries, whose gain grows with the rotary
// position; -1 for keys.
at::Tensor rotated(const at::Tensor& x, const Rotation& rotation,
                   const at::Tensor& rotary_positions, const std::vector<Turns>& offset,
                   double sign) {
  at::Tensor result = x;
  for (size_t f = 0; f < rotation.pairs.size(); ++f) {
    const Rotation::Pair& pair = rotation.pairs[f];
    const at::Tensor time =
        rotary_positions.select(1, pair.axis).contiguous();  // [1 or batch, rows]
    const at::Tensor cos = at::empty(time.sizes(), at::kDouble), sin = at::empty_like(cos);
    for (int64_t n = 0; n < time.numel(); ++n) {
      Turns phase = pair.frequency * time.data_ptr<int64_t>()[n];
      if (!offset.empty()) phase = phase + offset[f];
      const CosSin angle = cos_sin(phase);
      cos.data_ptr<double>()[n] = angle.cos;
      sin.data_ptr<double>()[n] = angle.sin;
    }
    const at::Tensor grown = (time.to(at::kDouble) * (sign * pair.growth)).exp() * rotation.gain;
    const at::Tensor c = (cos * grown).unsqueeze(1), s = (sin * grown).unsqueeze(1);
    const at::Tensor a = x.select(3, pair.first), b = x.select(3, pair.second);
    const auto put = [&](int column, const at::Tensor& value) {
      result = result.index_copy(3, at::full({1}, column, at::kLong), value.unsqueeze(3));
    };
    put(pair.first, a * c - b * s);
    put(pair.second, a * s + b * c);
  }
  return result;
}

// int64 [queries, keys]: the diagonal of each query and key of a frame, -1 elsewhere.
at::Tensor diagonals(const TensorOperands& o) {
  at::Tensor result = at::full({o.q.size(2), o.k.size(2)}, -1, at::kLong);
  auto cell = result.accessor<int64_t, 2>();
  for (int64_t n = 0; n < o.frames.size(0); ++n) {
    const int64_t* f = o.frames.data_ptr<int64_t>() + n * 7;
    for (int64_t i = 0; i < f[2]; ++i)
      for (int64_t j = 0; j < f[5]; ++j)
        cell[f[1] + i][f[4] + j] = o.farthest - ((f[3] + i) - (f[6] + j));
  }
  return result;
}

// [1 or heads, queries, keys, columns]: the table row of every query and key, arbitrary for pairs
// outside a frame.
at::Tensor gathered(const TableOperand& table, const at::Tensor& diagonal) {
  at::Tensor row = diagonal.clamp_min(0);
  const auto at = [&](const at::Tensor& x, const at::Tensor& index) {
    return x.index_select(0, index.flatten().clamp_max(x.size(0) - 1)).view(index.sizes());
  };
  if (table.row_at.defined()) row = at(table.row_at.to(at::kLong), row);
  const at::Tensor rows = table.rows.dim() == 2 ? table.rows.unsqueeze(2) : table.rows;
  const at::Tensor flat = rows.index_select(1, row.flatten().clamp_max(rows.size(1) - 1));
  return flat.view({rows.size(0), row.size(0), row.size(1), rows.size(2)});
}

// bool [1 or batch, queries, keys]: the keys in each query's range.
at::Tensor in_runs(const at::Tensor& key_ranges, int64_t keys) {
  const at::Tensor key = at::arange(keys, at::kLong);
  return at::logical_and(key >= key_ranges.select(2, 0).unsqueeze(2),
                         key < key_ranges.select(2, 1).unsqueeze(2));
}

// The factors by which dropout multiplies weights, [batch, heads, queries, keys].
at::Tensor dropout_factors(const TensorOperands& o) {
  const Dropout dropout = {.probability = o.dropout.p,
                           .seed = static_cast<uint64_t>(o.dropout.seed.item<int64_t>()),
                           .first_query = o.dropout.first_query};
  at::Tensor factors = at::zeros({o.q.size(0), o.q.size(1), o.q.size(2), o.k.size(2)}, at::kDouble);
  auto cell = factors.accessor<double, 4>();
  for (int64_t b = 0; b < factors.size(0); ++b)
    for (int64_t h = 0; h < factors.size(1); ++h)
      for (int64_t i = 0; i < factors.size(2); ++i)
        for (int64_t j = 0; j < factors.size(3); ++j)
          if (keeps(dropout, b, h, i, j)) cell[b][h][i][j] = 1 / (1 - o.dropout.p);
  return factors;
}

// The product of q [batch, heads, queries, D] and rows [heads, queries, keys, columns <= D], over
// the first columns of q.
at::Tensor against(const at::Tensor& q, const at::Tensor& rows) {
  return (q.narrow(3, 0, rows.size(3)).unsqueeze(3) * rows).sum(-1);
}

}  // namespace

namespace {

bool differs_by_frame(const TensorOperands& o) {
  return std::ranges::any_of(o.sweeps,
                             [](const SweepOperand& sweep) { return !sweep.of_frames.empty(); });
}

// Evaluates each frame alone, with its own rotation. The frames cover the queries in order.
std::tuple<at::Tensor, at::Tensor> equation_by_frame(const TensorOperands& o) {
  std::vector<at::Tensor> outs, lses;
  for (int64_t n = 0; n < o.frames.size(0); ++n) {
    TensorOperands one = o;
    one.frames = o.frames.narrow(0, n, 1);
    for (SweepOperand& sweep : one.sweeps) {
      if (!sweep.of_frames.empty()) sweep.rotation = sweep.of_frames[static_cast<size_t>(n)];
      sweep.of_frames.clear();
    }
    const auto [out, lse] = equation(one);
    const int64_t* frame = one.frames.data_ptr<int64_t>();
    outs.push_back(out.narrow(2, frame[1], frame[2]));
    lses.push_back(lse.narrow(2, frame[1], frame[2]));
  }
  return {at::cat(outs, 2), at::cat(lses, 2)};
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> equation(const TensorOperands& o) {
  if (differs_by_frame(o)) return equation_by_frame(o);

  const int64_t group = o.q.size(1) / o.k.size(1);
  const at::Tensor k = o.k.repeat_interleave(group, 1), v = o.v.repeat_interleave(group, 1);
  const at::Tensor diagonal = diagonals(o), in_frame = diagonal >= 0;
  at::Tensor product, seen;
  for (const SweepOperand& sweep : o.sweeps) {
    const auto turned_q = [&](const at::Tensor& q) {
      return rotated(q, sweep.rotation, positions(o, sweep.query_rotary_positions, true, q.size(2)),
                     sweep.query_offset, +1);
    };
    const at::Tensor keys =
        rotated(k, sweep.rotation, positions(o, sweep.key_rotary_positions, false, k.size(2)),
                sweep.key_offset, -1)
            .transpose(2, 3);
    at::Tensor p = at::matmul(turned_q(o.q), keys);
    if (o.on_query.rows.defined()) p = p + against(o.q, gathered(o.on_query, diagonal));
    if (o.on_key.rows.defined()) {
      const at::Tensor rows = gathered(o.on_key, diagonal);
      p = p + (k.narrow(3, 0, rows.size(3)).unsqueeze(2) * rows).sum(-1);
    }
    if (o.q_imag.defined()) p = (p.square() + at::matmul(turned_q(o.q_imag), keys).square()).sqrt();
    const at::Tensor here =
        at::logical_and(in_runs(sweep.key_ranges, k.size(2)), in_frame).unsqueeze(1);
    product = product.defined() ? at::where(here, p, product) : p;
    seen = seen.defined() ? at::logical_or(seen, here) : here;
  }
  const at::Tensor ranges = seen;
  if (o.mask.defined()) seen = at::logical_and(seen, o.mask);
  at::Tensor scores = o.scale * product;
  if (o.weight.rows.defined()) scores = scores * gathered(o.weight, diagonal).squeeze(3);
  if (o.softcap > 0) scores = o.softcap * (scores / o.softcap).tanh();
  if (o.bias.rows.defined()) scores = scores + gathered(o.bias, diagonal).squeeze(3);
  if (o.query_bias.defined()) {
    const at::Tensor all = o.query_bias.expand({o.q.size(0), o.q.size(1), -1, -1});
    scores = scores + all.gather(3, diagonal.clamp_min(0).expand_as(scores));
  }
  at::Tensor origin = at::zeros({1, 1, 1}, o.q.options());  // the largest c in a query's ranges
  if (o.key_bias.defined()) {
    const at::Tensor bias = o.key_bias.expand({o.q.size(0), o.q.size(1), -1});
    // Queries without a key have no origin.
    origin = bias.unsqueeze(2)
                 .masked_fill(ranges.logical_not(), -std::numeric_limits<double>::infinity())
                 .amax(-1)
                 .masked_fill(ranges.any(-1).logical_not(), 0)
                 .detach();
    scores = scores + (bias.unsqueeze(2) - origin.unsqueeze(3));
  }
  scores = scores.masked_fill(seen.logical_not(), -kInfinity);

  at::Tensor all = scores;
  if (o.sink.defined())
    all = at::cat({scores, (o.sink.view({1, -1, 1}) - origin)
                               .expand({scores.size(0), -1, scores.size(2)})
                               .unsqueeze(3)},
                  3);
  const at::Tensor lse = all.logsumexp(-1);
  at::Tensor p = (scores - lse.unsqueeze(3)).exp().masked_fill(seen.logical_not(), 0);
  if (o.dropout.p > 0) p = p * dropout_factors(o);
  at::Tensor out = at::matmul(p, v);
  if (o.on_value.rows.defined())
    out = out + (p.unsqueeze(4) * gathered(o.on_value, diagonal)).sum(3);
  return {out, lse};
}

TensorOperands every_term() {
  constexpr int64_t kBatch = 2, kHeads = 4, kKeyHeads = 2, kQueries = 7, kKeys = 9, kDim = 6;
  const auto longs = [](std::initializer_list<int64_t> values, std::vector<int64_t> sizes) {
    return at::tensor(at::ArrayRef<int64_t>(values), at::kLong).view(sizes);
  };
  TensorOperands o;
  o.q = normal({kBatch, kHeads, kQueries, kDim}, 1);
  o.k = normal({kBatch, kKeyHeads, kKeys, kDim}, 2);
  o.v = normal({kBatch, kKeyHeads, kKeys, 5}, 3);
  o.scale = 0.4;
  // Queries 0 .. 2 are at positions 2 .. 4 with keys at 0 .. 4, queries 3 .. 6 at 0 .. 3 with keys
  // at 0 .. 3.
  o.frames = longs({-1, 0, 3, 2, 0, 5, 0, -1, 3, 4, 0, 5, 4, 0}, {2, 7});
  // `near` covers distances -1 .. 1, `far` 2 and more. The last query sees no key.
  const at::Tensor near = longs({1, 4, 2, 5, 3, 5, 5, 7, 5, 8, 6, 9, 9, 5}, {1, kQueries, 2});
  const at::Tensor far = longs({0, 1, 0, 2, 0, 3, 0, 0, 0, 0, 5, 6, 0, 0}, {1, kQueries, 2});
  const Turns slow = turns(0.3), fast = turns(1.7);
  const auto rotary_positions = [&](int64_t rows, int64_t first) {
    return at::stack(
               {at::arange(first, first + rows, at::kLong), at::arange(rows, at::kLong) * 3 - 5})
        .unsqueeze(0);
  };
  SweepOperand close, beyond;
  close.key_ranges = near;
  close.rotation.pairs = {{.first = 0, .second = 1, .frequency = fast, .growth = 0.02},
                          {.first = 4, .second = 2, .frequency = slow, .axis = 1}};
  close.rotation.gain = 1.1;
  close.query_rotary_positions = rotary_positions(kQueries, 4).expand({kBatch, 2, kQueries});
  close.key_rotary_positions = rotary_positions(kKeys, 0);
  beyond.key_ranges = far;
  beyond.rotation.pairs = {{.first = 3, .second = 5, .frequency = slow}};
  beyond.query_rotary_positions = rotary_positions(kQueries, 4);
  beyond.key_rotary_positions = rotary_positions(kKeys, 0);
  beyond.query_offset = {fast};
  o.sweeps = {close, beyond};
  o.farthest = 4;  // diagonals 0 .. 7 are distances 4 .. -3
  const at::Tensor map = at::tensor({0, 1, 2, 2, 0, 1, 1, 0}, at::kInt);
  o.weight = {.rows = normal({kHeads, 3}, 4) + 1.5, .row_at = map};
  o.bias = {.rows = normal({1, 8}, 5)};
  o.on_query = {.rows = normal({1, 3, 4}, 6), .row_at = map};
  o.on_key = {.rows = normal({kHeads, 3, kDim}, 7), .row_at = map.flip(0)};
  o.on_value = {.rows = normal({1, 3, 5}, 8), .row_at = map};
  o.query_bias = normal({1, kHeads, kQueries, 8}, 12);
  o.sink = normal({kHeads}, 9);
  o.mask = normal({kBatch, 1, kQueries, kKeys}, 10) > -1.3;
  return o;
}

std::vector<at::Tensor*> differentiable(TensorOperands& o) {
  std::vector<at::Tensor*> result;
  for (at::Tensor* x : {&o.q, &o.k, &o.v, &o.q_imag, &o.weight.rows, &o.bias.rows, &o.on_query.rows,
                        &o.on_key.rows, &o.on_value.rows, &o.sink, &o.query_bias, &o.key_bias})
    if (x->defined()) result.push_back(x);
  return result;
}

std::vector<std::string> names(const TensorOperands& operands) {
  TensorOperands o = operands;
  const at::Tensor* all[] = {&o.q,
                             &o.k,
                             &o.v,
                             &o.q_imag,
                             &o.weight.rows,
                             &o.bias.rows,
                             &o.on_query.rows,
                             &o.on_key.rows,
                             &o.on_value.rows,
                             &o.sink,
                             &o.query_bias,
                             &o.key_bias};
  const char* text[] = {"q",        "k",      "v",        "q_imag", "weight",     "bias",
                        "on_query", "on_key", "on_value", "sink",   "query_bias", "key_bias"};
  std::vector<std::string> result;
  for (size_t n = 0; n < std::size(all); ++n)
    if (all[n]->defined()) result.push_back(text[n]);
  return result;
}

}  // namespace sextant::testing
