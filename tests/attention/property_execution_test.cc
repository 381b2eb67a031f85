// Results do not depend on how attention is executed: threads, batches, packing, chunks, shared
// heads, sweeps.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tests/attention/property.h"

namespace sextant::oracle {
namespace {

class Execution : public Property {};

TEST_P(Execution, AnyNumberOfThreadsGivesTheSameBits) {
  std::vector<std::unique_ptr<Executor>> pools;
  for (const int threads : {1, 2, 3, 8}) pools.push_back(make_thread_pool(threads));
  check([&](const Draw& draw) {
    const Problem<float> p = make_problem(draw);
    const Tensor<float> d_out = random_d_out(p, draw.seed);
    const Outcome serial = outcome(p, d_out, backend());
    for (const auto& pool : pools) {
      const std::string wrong = difference_in_bits(serial, outcome(p, d_out, backend(), *pool));
      if (!wrong.empty()) return std::to_string(pool->workers()) + " threads: " + wrong;
    }
    return std::string();
  });
}

// Batch entry b as a batch of one.
Problem<float> entry(const Problem<float>& p, int64_t b) {
  Problem<float> one = p;
  one.q = batch_of(p.q, b, 1);
  one.k = batch_of(p.k, b, 1);
  one.v = batch_of(p.v, b, 1);
  one.q_imag = batch_of(p.q_imag, b, 1);
  return one;
}

TEST_P(Execution, BatchEntriesDoNotSeeEachOther) {
  check([&](Draw draw) -> std::string {
    draw.batch = 3;
    const Problem<float> p = make_problem(draw);
    const Tensor<float> d_out = random_d_out(p, draw.seed);
    const Outcome all = outcome(p, d_out, backend());
    for (int64_t b = 0; b < draw.batch; ++b) {
      const Outcome one = outcome(entry(p, b), batch_of(d_out, b, 1), backend());
      for (const auto& [name, together, alone] :
           {std::tuple{"out", &all.result.out, &one.result.out},
            std::tuple{"lse", &all.result.lse, &one.result.lse},
            std::tuple{"dq", &all.gradients.q, &one.gradients.q},
            std::tuple{"dk", &all.gradients.k, &one.gradients.k},
            std::tuple{"dv", &all.gradients.v, &one.gradients.v}}) {
        const std::string wrong = difference_in_bits(name, batch_of(*together, b, 1), *alone);
        if (!wrong.empty()) return wrong;
      }
    }
    return "";
  });
}

// [batch, heads, rows, columns] -> [1, heads, batch * rows, columns]
Tensor<float> one_after_the_other(const Tensor<float>& x) {
  Tensor<float> y(1, x.heads, x.batch * x.rows, x.columns);
  for (int64_t b = 0; b < x.batch; ++b) {
    for (int64_t h = 0; h < x.heads; ++h) {
      for (int64_t i = 0; i < x.rows; ++i) {
        for (int64_t c = 0; c < x.columns; ++c) y(0, h, b * x.rows + i, c) = x(b, h, i, c);
      }
    }
  }
  return y;
}

// The batch as sequences packed into one batch entry, with a frame for each.
Problem<float> packed(const Problem<float>& p) {
  Problem<float> all = p;
  all.q = one_after_the_other(p.q);
  all.k = one_after_the_other(p.k);
  all.v = one_after_the_other(p.v);
  all.q_imag = one_after_the_other(p.q_imag);
  const Frame frame = p.frames.at(0);
  OwnedSweep& sweep = all.sweeps.at(0);
  all.frames.clear();
  sweep.key_ranges.clear();
  sweep.query_rotary_positions.clear();
  sweep.key_rotary_positions.clear();
  for (int64_t b = 0; b < p.q.batch; ++b) {
    const int64_t key_row = b * p.k.rows;
    all.frames.push_back(frame);
    all.frames.back().query_row = b * p.q.rows;
    all.frames.back().key_row = key_row;
    for (const KeyRange& range : p.sweeps[0].key_ranges) {
      sweep.key_ranges.push_back({range.first + key_row, range.last + key_row});
    }
    const auto append = [](std::vector<int64_t>& to, const std::vector<int64_t>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(sweep.query_rotary_positions, p.sweeps[0].query_rotary_positions);
    append(sweep.key_rotary_positions, p.sweeps[0].key_rotary_positions);
  }
  return all;
}

TEST_P(Execution, PackedTextsGiveWhatABatchGives) {
  check([&](Draw draw) -> std::string {
    draw.batch = 3;
    const Problem<float> p = make_problem(draw);
    const Tensor<float> d_out = random_d_out(p, draw.seed);
    const Outcome batch = outcome(p, d_out, backend());
    const Outcome pack = outcome(packed(p), one_after_the_other(d_out), backend());
    for (const auto& [name, a, b] : {std::tuple{"out", &batch.result.out, &pack.result.out},
                                     std::tuple{"lse", &batch.result.lse, &pack.result.lse},
                                     std::tuple{"dq", &batch.gradients.q, &pack.gradients.q},
                                     std::tuple{"dk", &batch.gradients.k, &pack.gradients.k},
                                     std::tuple{"dv", &batch.gradients.v, &pack.gradients.v}}) {
      const std::string wrong = difference_in_bits(name, one_after_the_other(*a), *b);
      if (!wrong.empty()) return wrong;
    }
    const Bounds bounds = bounds_of(p, d_out);
    std::string wrong =
        difference("d_bias", batch.gradients.bias, pack.gradients.bias, bounds.gradients.bias);
    if (wrong.empty()) {
      wrong = difference("d_on_value", batch.gradients.on_value, pack.gradients.on_value,
                         bounds.gradients.on_value);
    }
    return wrong;
  });
}

// Queries [first, first + count) and the first `keys` keys of a problem of one frame and one sweep.
Problem<float> chunk(const Problem<float>& p, int64_t first, int64_t count, int64_t keys) {
  Problem<float> part = p;
  part.q = rows_of(p.q, first, count);
  part.k = rows_of(p.k, 0, keys);
  part.v = rows_of(p.v, 0, keys);
  if (!p.q_imag.data.empty()) part.q_imag = rows_of(p.q_imag, first, count);
  Frame& frame = part.frames.at(0);
  frame.query_position += first;
  frame.queries = count;
  frame.keys = keys;
  const auto cut = [](auto& list, int64_t from, int64_t length) {
    if (!list.empty()) list = {list.begin() + from, list.begin() + from + length};
  };
  OwnedSweep& sweep = part.sweeps.at(0);
  cut(sweep.key_ranges, first, count);
  cut(sweep.query_rotary_positions, first, count);
  cut(sweep.key_rotary_positions, 0, keys);
  return part;
}

std::string difference_of_chunks(const Problem<float>& p, const std::vector<int64_t>& cuts,
                                 const Backend& backend) {
  const Result<float> whole = attend(p.score(), backend);
  for (size_t n = 0; n + 1 < cuts.size(); ++n) {
    const int64_t first = cuts[n], count = cuts[n + 1] - cuts[n];
    int64_t keys = 1;  // the keys that a cache would hold by then
    for (int64_t i = first; i < first + count; ++i) {
      keys = std::max(keys, p.sweeps[0].key_ranges[static_cast<size_t>(i)].last);
    }
    const Problem<float> part = chunk(p, first, count, std::min(keys, p.k.rows));
    const Result<float> result = attend(part.score(), backend);
    std::string wrong =
        difference_beside(backend, "out", rows_of(whole.out, first, count), result.out);
    if (wrong.empty()) {
      wrong = difference_beside(backend, "lse", rows_of(whole.lse, first, count), result.lse);
    }
    if (!wrong.empty()) return "queries from " + std::to_string(first) + ": " + wrong;
  }
  return "";
}

TEST_P(Execution, ChunksGiveWhatTheWholeGives) {
  check([&](const Draw& draw) {
    const int64_t first = *rc::gen::inRange<int64_t>(0, draw.queries);
    const int64_t second = *rc::gen::inRange<int64_t>(first, draw.queries);
    std::vector<int64_t> cuts = {0, first, second, draw.queries};
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    return difference_of_chunks(make_problem(draw), cuts, backend());
  });
}

TEST_P(Execution, DecodingTokenByTokenGivesWhatTheWholeGives) {
  check([&](Draw draw) {
    draw.queries = std::min<int64_t>(draw.queries, 40);
    std::vector<int64_t> cuts;
    for (int64_t i = 0; i <= draw.queries; ++i) cuts.push_back(i);
    return difference_of_chunks(make_problem(draw), cuts, backend());
  });
}

// Repeats key heads: head h of the result is key head h / group.
Tensor<float> repeated(const Tensor<float>& x, int64_t group) {
  Tensor<float> y(x.batch, x.heads * group, x.rows, x.columns);
  for (int64_t b = 0; b < y.batch; ++b) {
    for (int64_t h = 0; h < y.heads; ++h) {
      for (int64_t i = 0; i < y.rows; ++i) {
        for (int64_t c = 0; c < y.columns; ++c) y(b, h, i, c) = x(b, h / group, i, c);
      }
    }
  }
  return y;
}
Tensor<float> summed(const Tensor<float>& x, int64_t group) {
  Tensor<float> y(x.batch, x.heads / group, x.rows, x.columns);
  for (int64_t b = 0; b < x.batch; ++b) {
    for (int64_t h = 0; h < x.heads; ++h) {
      for (int64_t i = 0; i < x.rows; ++i) {
        for (int64_t c = 0; c < x.columns; ++c) y(b, h / group, i, c) += x(b, h, i, c);
      }
    }
  }
  return y;
}

TEST_P(Execution, SharedKeyHeadsGiveWhatRepeatedOnesGive) {
  check([&](const Draw& draw) -> std::string {
    const Problem<float> p = make_problem(draw);
    Problem<float> repeats = p;
    repeats.k = repeated(p.k, draw.heads / draw.key_heads);
    repeats.v = repeated(p.v, draw.heads / draw.key_heads);
    const Tensor<float> d_out = random_d_out(p, draw.seed);
    const Outcome shared = outcome(p, d_out, backend());
    Outcome other = outcome(repeats, d_out, backend());
    for (const auto& [name, a, b] : {std::tuple{"out", &shared.result.out, &other.result.out},
                                     std::tuple{"lse", &shared.result.lse, &other.result.lse},
                                     std::tuple{"dq", &shared.gradients.q, &other.gradients.q}}) {
      const std::string wrong = difference_in_bits(name, *a, *b);
      if (!wrong.empty()) return wrong;
    }
    other.gradients.k = summed(other.gradients.k, draw.heads / draw.key_heads);
    other.gradients.v = summed(other.gradients.v, draw.heads / draw.key_heads);
    return difference(shared, other, bounds_of(p, d_out));
  });
}

TEST_P(Execution, OneRunCutIntoSweepsGivesWhatItGaveWhole) {
  check([&](const Draw& draw) {
    const Problem<float> p = make_problem(draw);
    Problem<float> cut = p;
    const auto parts = static_cast<size_t>(*rc::gen::inRange(2, 4));
    cut.sweeps.assign(parts, p.sweeps[0]);
    for (size_t i = 0; i < p.sweeps[0].key_ranges.size(); ++i) {
      const auto range = p.sweeps[0].key_ranges[i];
      const int64_t length = std::max<int64_t>(range.last - range.first, 0);
      for (size_t n = 0; n < parts; ++n) {
        const auto at = [&](size_t part) {
          return range.first + length * static_cast<int64_t>(part) / static_cast<int64_t>(parts);
        };
        cut.sweeps[n].key_ranges[i] = {at(n), at(n + 1)};
      }
    }
    const Tensor<float> d_out = random_d_out(p, draw.seed);
    return difference(outcome(p, d_out, backend()), outcome(cut, d_out, backend()),
                      bounds_of(p, d_out));
  });
}

TEST_P(Execution, AMaskGivesWhatRunsGive) {
  check([&](const Draw& draw) {
    const Problem<float> p = make_problem(draw);
    Problem<float> masked = p;
    masked.sweeps[0].key_ranges = whole_ranges(draw.queries, draw.keys);
    masked.mask = {1, 1, draw.queries, draw.keys};
    for (int64_t i = 0; i < draw.queries; ++i) {
      const auto range = p.sweeps[0].key_ranges[static_cast<size_t>(i)];
      for (int64_t j = std::max<int64_t>(range.first, 0); j < std::min(range.last, draw.keys);
           ++j) {
        masked.mask(0, 0, i, j) = 1;
      }
    }
    const Tensor<float> d_out = random_d_out(p, draw.seed);
    return difference(outcome(p, d_out, backend()), outcome(masked, d_out, backend()),
                      bounds_of(p, d_out));
  });
}

INSTANTIATE_TEST_SUITE_P(Backends, Execution, testing::ValuesIn(float32_backends()), backend_name);

}  // namespace
}  // namespace sextant::oracle
