// dual-chunk: rotary positions that start again in each chunk of the text.
//
// An et al. 2024 (Training-Free Long-Context Scaling, arXiv 2402.17463; github.com/HKUNLP/ChunkLlama;
// Qwen2.5-1M, vLLM): with chunks of c = chunk_size - local_window, key j stands at j mod c, and query i at
//
//   i mod c                        towards the keys of its own chunk
//   min(i mod c + c, chunk_size)   towards those of the chunk before, so that near ones keep their distance
//   min(2c - 1, chunk_size)        towards older ones
//
// No relative position exceeds chunk_size. Without the causal mask, of which the paper knows nothing, the
// future is the mirror of the past: the relative position of (i, j) is minus that of (j, i).
//
// A key is turned once and for all, so a cache may hold it turned. The official code's defaults for a model
// trained on L are the options' (chunk_size 3L/4, local_window L/8). Its mscale, 0.05 log(length / L) + 1 once
// a text is longer than L, multiplies turned queries and turned keys: `mscale` here, a number.
#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_max.h>
#include <ATen/ops/full_like.h>

#include <nlohmann/json_fwd.hpp>

#include "sextant/torch/method.h"
#include "sextant/torch/methods/options.h"
#include "sextant/torch/methods/rotary_options.h"
#include "sextant/torch/methods/runs.h"

namespace sextant {
namespace {

// Where rows stand towards the keys, or queries, of their own chunk, of the one beside it, and beyond.
struct Stands {
  at::Tensor own, beside, beyond;
};

class DualChunk final : public Method {
 public:
  DualChunk(const Spectrum& spectrum, int64_t size, int64_t local)
      : rotation_(rotation(spectrum)), size_(size), chunk_(size - local) {}

  bool relative() const override { return false; }

  void place(Operands& operands, const Placement& placement, int64_t, Parameters) const override {
    const at::Tensor runs = operands.sweeps.at(0).runs;
    const at::Tensor own = chunk_runs(placement, chunk_, 0);
    const at::Tensor beside = chunk_runs(placement, chunk_, 0, 1);
    const at::Tensor near = intersection(runs, beside);
    const Stands query = stands(query_times(placement, 1)), key = stands(key_times(placement, 1));
    operands.sweeps = {sweep(intersection(runs, own), query.own, key.own),
                       sweep(before(near, own), query.beside, key.own),
                       sweep(before(runs, beside), query.beyond, key.own)};
    if (placement.causal) return;
    operands.sweeps.push_back(sweep(after(near, own), query.own, key.beside));
    operands.sweeps.push_back(sweep(after(runs, beside), query.own, key.beyond));
  }

 private:
  Stands stands(const at::Tensor& times) const {
    const at::Tensor within = times.remainder(chunk_);
    return {.own = within,
            .beside = at::clamp_max(within + chunk_, size_),
            .beyond = at::full_like(times, std::min(2 * chunk_ - 1, size_))};
  }
  SweepOperand sweep(const at::Tensor& runs, const at::Tensor& query, const at::Tensor& key) const {
    return {.runs = runs, .rotation = rotation_, .query_times = query, .key_times = key};
  }

  Rotation rotation_;
  int64_t size_, chunk_;
};

std::unique_ptr<Method> make(const ModelShape& shape, const nlohmann::json& json) {
  const Options options("dual-chunk", json);
  const int64_t length = shape.train_length;
  const int64_t size = options.integer_or("chunk_size", (3 * length + 3) / 4, 1, int64_t{1} << 52);
  const int64_t local = options.integer_or("local_window", length / 8, 0, size - 1);
  Spectrum spectrum = one_axis_spectrum(options, shape.head_dim);
  spectrum.gain *= options.number("mscale", 1e-3, 1e3);
  return std::make_unique<DualChunk>(spectrum, size, local);
}

}  // namespace

MethodInfo dual_chunk_method() {
  return {.name = "dual-chunk",
          .summary = "Rotary, positions start again in each chunk (An et al. 2024)",
          .defaults = rotary_defaults("half-split") +
                      R"(, "chunk_size": null, "local_window": null, "mscale": 1.0})",
          .make = make};
}

}  // namespace sextant
