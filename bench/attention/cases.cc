// The cases of bench_attention. Data that is made once per model or per length (masks, index
// matrices, cosines, ALiBi's bias) is made before the timing, for both sides. The data of the eager
// side alone grows with queries x keys, and is made only if the eager side runs.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "bench/attention/eager.h"
#include "bench/attention/workload.h"
#include "sextant/position/buckets.h"
#include "sextant/position/slopes.h"
#include "sextant/position/spectrum.h"

namespace sextant::bench {
namespace {

using Visible = std::function<KeyRange(int64_t)>;
using WorkloadPtr = std::unique_ptr<Workload>;
using Forward = Workload::Forward;

constexpr int64_t kShawClip = 16;      // the best value of the paper
constexpr int64_t kDebertaClip = 256;  // the value of released models
constexpr int64_t kBlockQueries = 256;
constexpr double kDropout = 0.1;  // the value of BERT, T5 and Transformer-XL
constexpr double kSoftcap = 50;   // the value of Gemma 2

KeyRange causal_keys(int64_t position) { return {0, position + 1}; }

int64_t window_of(const Sizes& sizes) {
  return sizes.window > 0 ? sizes.window : std::max<int64_t>(sizes.length / 8, 1);
}

// Attention of the last `queries` of `length` positions, without a position encoding.
WorkloadPtr plain(const std::string& name, const Sizes& sizes, int64_t queries,
                  const Visible& visible) {
  const int64_t n = sizes.length;
  auto made = std::make_unique<Workload>(name, sizes, queries, n, visible);
  Workload& w = *made;
  w.eager = [&w, visible, queries, n]() -> Forward {
    return [&w, mask = mask_of(queries, n, visible)] {
      return weighted(at::matmul(w.q, w.k.transpose(2, 3)) * w.score.scale, mask, w.v);
    };
  };
  w.ggml = [visible, queries, n] { return GgmlAttention{.mask = mask_of(queries, n, visible)}; };
  return made;
}

Visible all_keys(const Sizes& sizes) {
  return [n = sizes.length](int64_t) { return KeyRange{0, n}; };
}

int64_t block_of(const Sizes& sizes) { return std::min(kBlockQueries, sizes.length); }

WorkloadPtr causal(const Sizes& sizes) { return plain("causal", sizes, sizes.length, causal_keys); }
WorkloadPtr full(const Sizes& sizes) { return plain("full", sizes, sizes.length, all_keys(sizes)); }
WorkloadPtr block(const Sizes& sizes) {
  return plain("block", sizes, block_of(sizes), causal_keys);
}

WorkloadPtr window(const Sizes& sizes) {
  const int64_t width = window_of(sizes);
  return plain("window", sizes, sizes.length, [width](int64_t i) {
    return KeyRange{i - width + 1, i + 1};
  });
}

// Dropout of weights. The eager side multiplies by factors that are drawn before the timing, as
// ours must have the same; modules draw them in each call.
WorkloadPtr dropout(const Sizes& sizes) {
  WorkloadPtr made = plain("dropout", sizes, sizes.length, all_keys(sizes));
  Workload& w = *made;
  w.score.dropout = {.probability = kDropout, .seed = 1};
  w.ggml = nullptr;
  w.eager = [&w, sizes]() -> Forward {
    const int64_t n = sizes.length;
    const at::Tensor factors = at::zeros({sizes.batch, sizes.heads, n, n});
    float* to = factors.data_ptr<float>();
    for (int64_t at = 0; at < factors.numel(); ++at)
      if (keeps(w.score.dropout, at / (sizes.heads * n * n), at / (n * n) % sizes.heads, at / n % n,
                at % n))
        to[at] = 1 / (1 - static_cast<float>(kDropout));
    return [&w, factors] {
      const at::Tensor scores = at::matmul(w.q, w.k.transpose(2, 3)) * w.score.scale;
      return at::matmul(at::softmax(scores, -1) * factors, w.v);
    };
  };
  return made;
}

// Scores that tanh limits.
WorkloadPtr softcap(const Sizes& sizes) {
  WorkloadPtr made = plain("softcap", sizes, sizes.length, all_keys(sizes));
  Workload& w = *made;
  w.score.softcap = kSoftcap;
  w.ggml = nullptr;
  w.eager = [&w]() -> Forward {
    return [&w] {
      const at::Tensor scores = at::matmul(w.q, w.k.transpose(2, 3)) * w.score.scale;
      return weighted(at::tanh(scores / kSoftcap) * kSoftcap, {}, w.v);
    };
  };
  return made;
}

// A fixed bias per head and distance.
WorkloadPtr alibi(const Sizes& sizes) {
  const int64_t n = sizes.length;
  auto made = std::make_unique<Workload>("alibi", sizes, n, n, causal_keys);
  Workload& w = *made;
  const at::Tensor table =
      w.add_table(kBias, sizes.heads, w.score.diagonals.count, 1, nullptr, false);
  const std::vector<double> slopes = alibi_slopes(sizes.heads);
  for (int64_t h = 0; h < sizes.heads; ++h) {
    for (int64_t r = 0; r < table.size(2); ++r) {
      table.data_ptr<float>()[h * table.size(2) + r] =
          static_cast<float>(-slopes[static_cast<size_t>(h)]) *
          static_cast<float>(w.score.diagonals.distance(r));
    }
  }
  w.eager = [&w, table, n]() -> Forward {
    const at::Tensor diagonal =
        by_distance(n, n, [&w](int64_t d) { return w.score.diagonals.index(d); });
    const at::Tensor bias =
        table.select(0, 0).squeeze(-1).index_select(1, diagonal.flatten()).view({-1, n, n}) +
        mask_of(n, n, causal_keys);
    return [&w, bias] {
      return weighted(at::matmul(w.q, w.k.transpose(2, 3)) * w.score.scale, bias, w.v);
    };
  };
  w.ggml = [n] {
    const at::Tensor distance = by_distance(n, n, [](int64_t d) { return d; });
    return GgmlAttention{.mask = mask_of(n, n, causal_keys) - distance, .most_bias = 8};
  };
  return made;
}

// A trained bias per head and bucket.
WorkloadPtr t5(const Sizes& sizes) {
  const int64_t n = sizes.length;
  auto made = std::make_unique<Workload>("t5", sizes, n, n, causal_keys);
  Workload& w = *made;
  const T5Buckets buckets({.bidirectional = false});
  const auto bucket = [&](int64_t d) { return buckets.bucket(d); };
  const at::Tensor table = w.add_table(kBias, sizes.heads, buckets.buckets(), 1, bucket);
  w.eager = [&w, table, buckets, n]() -> Forward {
    const at::Tensor index =
        by_distance(n, n, [&buckets](int64_t d) { return buckets.bucket(d); }).flatten();
    return [&w, table, index, n, mask = mask_of(n, n, causal_keys)] {
      const at::Tensor bias =
          table.select(0, 0).squeeze(-1).index_select(1, index).view({-1, n, n});
      return weighted(at::matmul(w.q, w.k.transpose(2, 3)) * w.score.scale + bias, mask, w.v);
    };
  };
  return made;
}

// A bias per head, query and distance, for methods whose bias depends on the position of the query;
// they compute attention in blocks of queries.
WorkloadPtr query_bias(const Sizes& sizes) {
  const int64_t n = sizes.length, queries = block_of(sizes);
  auto made = std::make_unique<Workload>("query-bias", sizes, queries, n, causal_keys);
  Workload& w = *made;
  w.score.diagonals.count = n;
  const at::Tensor table = w.add_query_bias();
  w.eager = [&w, table, queries, n]() -> Forward {
    return [&w, table, mask = mask_of(queries, n, causal_keys)] {
      return weighted(at::matmul(w.q, w.k.transpose(2, 3)) * w.score.scale + rel_shift(table), mask,
                      w.v);
    };
  };
  return made;
}

// Shaw's clipped vectors on keys and, with `values`, on values; shared by the heads.
WorkloadPtr shaw(const std::string& name, const Sizes& sizes, bool values) {
  const int64_t n = sizes.length, d = sizes.head_dim;
  auto made = std::make_unique<Workload>(name, sizes, n, n, all_keys(sizes));
  Workload& w = *made;
  const auto row = [](int64_t distance) {
    return std::clamp(-distance, -kShawClip, kShawClip) + kShawClip;
  };
  const at::Tensor keys = w.add_table(kOnQuery, 1, 2 * kShawClip + 1, d, row);
  at::Tensor value_rows;
  if (values) {
    value_rows = w.add_table(kOnValue, 1, 2 * kShawClip + 1, d, row);
  }
  w.eager = [&w, keys, value_rows, sizes, n, row]() -> Forward {
    const at::Tensor index = by_distance(n, n, row).expand({sizes.batch, sizes.heads, n, n});
    return [&w, keys, value_rows, index] {
      const at::Tensor near = at::matmul(w.q, keys.transpose(2, 3)).gather(-1, index);
      const at::Tensor weights =
          at::softmax((at::matmul(w.q, w.k.transpose(2, 3)) + near) * w.score.scale, -1);
      at::Tensor out = at::matmul(weights, w.v);
      if (!value_rows.defined()) return out;
      const at::Tensor by_row =
          at::zeros({w.q.size(0), w.q.size(1), w.q.size(2), 2 * kShawClip + 1})
              .scatter_add(-1, index, weights);
      return out + at::matmul(by_row, value_rows);
    };
  };
  return made;
}
WorkloadPtr shaw_keys(const Sizes& sizes) { return shaw("shaw-keys", sizes, false); }
WorkloadPtr shaw_both(const Sizes& sizes) { return shaw("shaw", sizes, true); }

// Transformer-XL's term q_i . R[i - j], with a vector R per head and distance.
WorkloadPtr every_distance(const Sizes& sizes) {
  const int64_t n = sizes.length;
  auto made = std::make_unique<Workload>("every-distance", sizes, n, n, causal_keys);
  Workload& w = *made;
  w.score.diagonals = {.farthest = n - 1, .count = n};
  const at::Tensor table = w.add_table(kOnQuery, sizes.heads, n, sizes.head_dim);
  w.eager = [&w, table, n]() -> Forward {
    return [&w, table, mask = mask_of(n, n, causal_keys)] {
      const at::Tensor far = rel_shift(at::matmul(w.q, table.transpose(2, 3)));
      return weighted((at::matmul(w.q, w.k.transpose(2, 3)) + far) * w.score.scale, mask, w.v);
    };
  };
  return made;
}

// DeBERTa's content-to-position and position-to-content terms, clipped.
WorkloadPtr deberta(const Sizes& sizes) {
  const int64_t n = sizes.length, d = sizes.head_dim;
  auto made = std::make_unique<Workload>("deberta", sizes, n, n, all_keys(sizes));
  Workload& w = *made;
  const auto row = [](int64_t distance) {
    return std::clamp<int64_t>(distance + kDebertaClip, 0, 2 * kDebertaClip - 1);
  };
  const at::Tensor to_position = w.add_table(kOnQuery, sizes.heads, 2 * kDebertaClip, d, row);
  const at::Tensor to_content = w.add_table(kOnKey, sizes.heads, 2 * kDebertaClip, d, row);
  w.score.scale = 1 / std::sqrt(3.0 * static_cast<double>(d));
  w.eager = [&w, to_position, to_content, sizes, n, row]() -> Forward {
    const at::Tensor index = by_distance(n, n, row).expand({sizes.batch, sizes.heads, n, n});
    return [&w, to_position, to_content, index] {
      const at::Tensor c2p = at::matmul(w.q, to_position.transpose(2, 3)).gather(-1, index);
      const at::Tensor p2c = at::matmul(w.k, to_content.transpose(2, 3))
                                 .gather(-1, index.transpose(2, 3))
                                 .transpose(2, 3);
      return weighted((at::matmul(w.q, w.k.transpose(2, 3)) + c2p + p2c) * w.score.scale, {}, w.v);
    };
  };
  return made;
}

WorkloadPtr rope(const Sizes& sizes) {
  const int64_t n = sizes.length, d = sizes.head_dim;
  auto made = std::make_unique<Workload>("rope", sizes, n, n, causal_keys);
  Workload& w = *made;
  const Rotation rotation = sextant::rotation(rotary({.dim = d}));
  w.rotate(0, rotation);
  w.eager = [&w, rotation, n, d]() -> Forward {
    return [&w, at = angles(rotation, d, 0, n), mask = mask_of(n, n, causal_keys)] {
      return weighted(
          at::matmul(rotated(w.q, at), rotated(w.k, at).transpose(2, 3)) * w.score.scale, mask,
          w.v);
    };
  };
  w.ggml = [n] { return GgmlAttention{.mask = mask_of(n, n, causal_keys), .rotates = true}; };
  return made;
}

// A mask of the keys whose distance is below `width`.
at::Tensor nearer(int64_t width, int64_t n) {
  const auto is_near = [width](int64_t distance) { return distance < width ? 1 : 0; };
  return by_distance(n, n, is_near).to(at::kBool);
}

// ReRoPE: distances are clipped to the window. The official code computes both score matrices.
WorkloadPtr rerope(const Sizes& sizes) {
  const int64_t n = sizes.length, d = sizes.head_dim;
  const int64_t width = window_of(sizes);
  auto made = std::make_unique<Workload>("rerope", sizes, n, n, causal_keys);
  Workload& w = *made;
  const Rotation rotation = sextant::rotation(rotary({.dim = d}));
  w.rectify(rotation, width);
  w.eager = [&w, rotation, width, n, d]() -> Forward {
    return [&w, is_near = nearer(width, n), at = angles(rotation, d, 0, n),
            far_at = angles(rotation, d, width, 1), mask = mask_of(n, n, causal_keys)] {
      const at::Tensor near = at::matmul(rotated(w.q, at), rotated(w.k, at).transpose(2, 3));
      const at::Tensor far = at::matmul(rotated(w.q, far_at), w.k.transpose(2, 3));
      return weighted(at::where(is_near, near, far) * w.score.scale, mask, w.v);
    };
  };
  return made;
}

// Leaky ReRoPE: distances beyond a window grow at 1/16 of the rate.
WorkloadPtr leaky_rerope(const Sizes& sizes) {
  constexpr int64_t kFactor = 16;  // as in the official code
  const int64_t n = sizes.length, d = sizes.head_dim;
  const int64_t width = window_of(sizes);
  auto made = std::make_unique<Workload>("leaky-rerope", sizes, n, n, causal_keys);
  Workload& w = *made;
  const Spectrum spectrum = rotary({.dim = d});
  Spectrum slower = spectrum;
  for (Spectrum::Pair& pair : slower.pairs) pair.frequency = pair.frequency / Real(kFactor);
  const Rotation far_rotation = sextant::rotation(slower);
  w.leak(spectrum, width, kFactor);
  w.eager = [&w, rotation = sextant::rotation(spectrum), far_rotation, width, n, d]() -> Forward {
    return [&w, is_near = nearer(width, n), at = angles(rotation, d, 0, n),
            far_query = angles(far_rotation, d, width * (kFactor - 1), n),
            far_key = angles(far_rotation, d, 0, n), mask = mask_of(n, n, causal_keys)] {
      const at::Tensor near = at::matmul(rotated(w.q, at), rotated(w.k, at).transpose(2, 3));
      const at::Tensor far =
          at::matmul(rotated(w.q, far_query), rotated(w.k, far_key).transpose(2, 3));
      return weighted(at::where(is_near, near, far) * w.score.scale, mask, w.v);
    };
  };
  return made;
}

// One query for each batch entry on a long cache. The eager side treats the heads of a group as
// queries of one head, so that it does not repeat the keys.
WorkloadPtr decode(const std::string& name, Sizes sizes, int64_t group, bool rotates) {
  sizes.batch *= 4;  // so that the keys are larger than the processor's caches
  sizes.group = group;
  sizes.as_cached = true;
  auto made = std::make_unique<Workload>(name, sizes, 1, sizes.cache, causal_keys);
  Workload& w = *made;
  w.has_backward = false;
  w.bound_by_memory = true;
  const Rotation rotation = sextant::rotation(rotary({.dim = sizes.head_dim}));
  if (rotates) w.rotate(0, rotation);
  w.eager = [&w, sizes, rotation, rotates]() -> Forward {
    const int64_t n = sizes.cache, d = sizes.head_dim;
    return [&w, sizes, rotates, query_at = angles(rotation, d, n - 1, 1),
            key_at = angles(rotation, d, 0, n)] {
      const at::Tensor q = rotates ? rotated(w.q, query_at) : w.q;
      const at::Tensor k = rotates ? rotated(w.k, key_at) : w.k;
      const at::Tensor groups = q.view({sizes.batch, sizes.heads, sizes.group, sizes.head_dim});
      return weighted(at::matmul(groups, k.transpose(2, 3)) * w.score.scale, {}, w.v)
          .view(w.q.sizes());
    };
  };
  if (!rotates) w.ggml = [] { return GgmlAttention{}; };
  return made;
}
WorkloadPtr decode_each(const Sizes& sizes) { return decode("decode", sizes, 1, false); }
WorkloadPtr decode_grouped(const Sizes& sizes) { return decode("decode-gqa", sizes, 8, false); }
WorkloadPtr decode_rotated(const Sizes& sizes) { return decode("decode-rope", sizes, 1, true); }

}  // namespace

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"causal", "no positions, causal", causal},
      {"full", "no positions, every key", full},
      {"dropout", "the same, with dropout of a tenth of the weights", dropout, "full"},
      {"softcap", "no positions, every key, with scores limited by tanh", softcap, "full"},
      {"window", "the nearest keys (--window), causal", window},
      {"alibi", "a number per head and distance, fixed, causal", alibi, "causal"},
      {"t5", "a trained number per head and bucket, causal", t5, "causal"},
      {"block", "no positions, the last 256 queries, causal", block},
      {"query-bias", "a trained number per head, query and distance, the last 256 queries, causal",
       query_bias, "block"},
      {"shaw-keys", "a vector per clipped distance on keys", shaw_keys, "full"},
      {"shaw", "the same and one on values", shaw_both, "full"},
      {"every-distance", "Transformer-XL's vector per head and distance, causal", every_distance,
       "causal"},
      {"deberta", "vectors per clipped distance on queries and on keys", deberta, "full"},
      {"rope", "queries and keys rotated, causal", rope, "causal"},
      {"rerope", "two sweeps: near keys rotated, far ones at one distance, causal", rerope, "rope"},
      {"leaky-rerope", "two sweeps: near keys rotated, far ones slower, causal", leaky_rerope,
       "rope"},
      {"decode", "one query on a cache, 4 batch entries, no positions", decode_each, "", true},
      {"decode-gqa", "the same with 8 query heads to a key head", decode_grouped, "", true},
      {"decode-rope", "as decode, with keys rotated as they are read", decode_rotated, "decode",
       true},
  };
  return all;
}

}  // namespace sextant::bench
