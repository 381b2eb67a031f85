// dual-chunk: rotary positions that restart in each chunk of the sequence.
//
// An et al. 2024 (Training-Free Long-Context Scaling, arXiv 2402.17463;
// github.com/HKUNLP/ChunkLlama; Qwen2.5-1M, vLLM): with chunks of c = chunk_size - local_window,
// key j has the rotary position j mod c, and query i has
//
//   i mod c                        for keys of its own chunk
//   min(i mod c + c, chunk_size)   for keys of the chunk before; near keys keep their distance
//   min(2c - 1, chunk_size)        for older keys
//
// No relative position exceeds chunk_size. The paper has only the causal mask. Without it, the
// future mirrors the past: the relative position of (i, j) is minus that of (j, i).
//
// Each key is rotated by one angle only, so a cache may hold rotated keys. The defaults are those
// of the official code for a model trained on L (chunk_size 3L/4, local_window L/8).
//
// `mscale` sharpens attention over sequences longer than L. It is a number that multiplies rotated
// queries and rotated keys, or a law of s = length / L for s above 1:
//
//   "chunk-llama"   0.05 ln s + 1 on rotated queries and rotated keys, as in that code
//   "qwen"          0.1 ln s + 1 on queries, as in vLLM for Qwen2.5-1M
//
// `dynamic` chooses the length: "query" is each query's own position + 1, so that results do not
// depend on how a sequence is split into calls; "length" is that of the sequence so far, as in both
// codes.
#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/full_like.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "sextant/position/stretch/yarn.h"
#include "sextant/torch/method.h"
#include "sextant/torch/methods/shared/options.h"
#include "sextant/torch/methods/shared/rotary_plan.h"
#include "sextant/torch/methods/shared/tensors.h"
#include "sextant/torch/operators/device_constants.h"

namespace sextant {
namespace {

// Rotary positions of rows for pairs within one chunk, of neighbouring chunks, and of chunks
// farther apart.
struct Stands {
  at::Tensor own, beside, beyond;
};

// The factor of scores beyond the training length.
struct Sharpening {
  enum class Law { kNone, kChunkLlama, kQwen } law = Law::kNone;
  bool query_blocks = true;
  double train_length = 0;

  double factor(int64_t length) const {
    const double s = static_cast<double>(length) / train_length;
    const double both = yarn_temperature(s, 0.5);
    return law == Law::kQwen ? yarn_temperature(s) : both * both;
  }
};

class DualChunk final : public Method {
 public:
  DualChunk(const Spectrum& spectrum, int64_t size, int64_t local, const Sharpening& sharpening)
      : rotation_(rotation(spectrum)), size_(size), chunk_(size - local), sharpening_(sharpening) {}

  bool relative() const override { return false; }

  void apply(TensorOperands& operands, const Layout& layout, int64_t, Parameters) const override {
    if (sharpening_.law != Sharpening::Law::kNone) sharpen(operands, layout);
    const at::Tensor key_ranges = operands.sweeps.at(0).key_ranges;
    const at::Tensor own = chunk_ranges(layout, chunk_, 0);
    const at::Tensor beside = chunk_ranges(layout, chunk_, 0, 1);
    const at::Tensor near = intersection(key_ranges, beside);
    const Stands query = stands(query_rotary_positions(layout, 1)),
                 key = stands(key_rotary_positions(layout, 1));
    operands.sweeps = {sweep(intersection(key_ranges, own), query.own, key.own),
                       sweep(before(near, own), query.beside, key.own),
                       sweep(before(key_ranges, beside), query.beyond, key.own)};
    if (layout.causal) return;
    operands.sweeps.push_back(sweep(after(near, own), query.own, key.beside));
    operands.sweeps.push_back(sweep(after(key_ranges, beside), query.own, key.beyond));
  }

 private:
  void sharpen(TensorOperands& operands, const Layout& layout) const {
    std::vector<double> factors(static_cast<size_t>(layout.queries), 1);
    for (const Frame& sequence : sequences(layout))
      for (int64_t n = 0; n < sequence.queries; ++n)
        factors[static_cast<size_t>(sequence.query_row + n)] =
            sharpening_.factor(sharpening_.query_blocks ? sequence.query_position + n + 1
                                                        : sequence.key_position + sequence.keys);
    // ChunkLlama's factor applies to rotated channels, Qwen's to all channels.
    const int64_t columns = operands.q.size(3);
    const bool all = sharpening_.law == Sharpening::Law::kQwen;
    std::vector<double> rotated(static_cast<size_t>(columns), all ? 1 : 0);
    for (const Rotation::Pair& pair : rotation_.pairs)
      for (const int column : {pair.first, pair.second}) rotated[static_cast<size_t>(column)] = 1;
    const at::Tensor more = tensor_of(factors, {1, 1, layout.queries, 1}) - 1;
    const at::Tensor factor = 1 + more * tensor_of(rotated, {1, 1, 1, columns});
    operands.q = operands.q * on_device_of(operands.q, factor.to(operands.q.scalar_type()));
  }
  Stands stands(const at::Tensor& rotary_positions) const {
    const at::Tensor within = rotary_positions.remainder(chunk_);
    return {.own = within,
            .beside = at::clamp_max(within + chunk_, size_),
            .beyond = at::full_like(rotary_positions, std::min(2 * chunk_ - 1, size_))};
  }
  SweepOperand sweep(const at::Tensor& key_ranges, const at::Tensor& query,
                     const at::Tensor& key) const {
    return {.key_ranges = key_ranges,
            .rotation = rotation_,
            .query_rotary_positions = query,
            .key_rotary_positions = key};
  }

  Rotation rotation_;
  int64_t size_, chunk_;
  Sharpening sharpening_;
};

Sharpening read_sharpening(const Options& options, int64_t train_length) {
  using Law = Sharpening::Law;
  Sharpening sharpening = {.query_blocks = options.choice("dynamic", {"query", "length"}) == 0,
                           .train_length = static_cast<double>(train_length)};
  if (options.value("mscale").is_number()) return sharpening;
  sharpening.law =
      options.choice("mscale", {"chunk-llama", "qwen"}) == 0 ? Law::kChunkLlama : Law::kQwen;
  if (train_length < 1) options.refuse("mscale", "a number, as train_length is 0");
  return sharpening;
}

std::unique_ptr<Method> make_dual_chunk(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("dual-chunk", json);
  const int64_t length = shape.train_length;
  const int64_t size = options.integer_or("chunk_size", (3 * length + 3) / 4, 1, int64_t{1} << 52);
  const int64_t local = options.integer_or("local_window", length / 8, 0, size - 1);
  Spectrum spectrum = one_axis_spectrum(options, shape);
  const Sharpening sharpening = read_sharpening(options, length);
  if (sharpening.law == Sharpening::Law::kNone)
    spectrum.gain *= options.number("mscale", 1e-3, 1e3);
  return std::make_unique<DualChunk>(spectrum, size, local, sharpening);
}

}  // namespace

MethodInfo dual_chunk_method() {
  return {.name = "dual-chunk",
          .summary = "Rotary, positions start again in each chunk (An et al. 2024)",
          .formula =
              "c = chunk_size - local_window; key j stands at j mod c, query i at i mod c towards "
              "the keys of its own chunk; min(i mod c + c, chunk_size) towards those of the chunk "
              "before; min(2c - 1, chunk_size) towards older ones",
          .defaults =
              one_axis_defaults() +
              R"(, "chunk_size": null, "local_window": null, "mscale": 1.0, "dynamic": "query"})",
          .make = make_dual_chunk};
}

}  // namespace sextant
