// Ring attention as operators for Python: torch.ops.sextant.ring_attention and ring_unsharded.
//
// A group is the name of a process group of torch.distributed; an empty name is this process alone.
// Both are functions of differentiable operators, and calls of the group that a tracer cannot
// record: torch.compile breaks its graph here.
#include <ATen/core/Tensor.h>
#include <c10/util/Optional.h>
#include <torch/library.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/torch/bindings/call_arguments.h"
#include "sextant/torch/bindings/check_call.h"
#include "sextant/torch/bindings/method_cache.h"
#include "sextant/torch/ring.h"

namespace sextant {
namespace {

Group group_of(const std::string& name) { return name.empty() ? Group() : Group::named(name); }

std::tuple<at::Tensor, at::Tensor> ring_attention(
    const std::string& name, at::IntArrayRef shape, const std::string& options,
    const std::vector<at::Tensor>& parameters, const at::Tensor& q, const at::Tensor& k,
    const at::Tensor& v, const std::string& group, const std::string& shards, int64_t layer,
    bool causal, c10::optional<double> scale, const c10::optional<at::Tensor>& sink,
    const c10::optional<at::Tensor>& key_bias, at::IntArrayRef window, double softcap) {
  if (!q.is_cpu())
    fail("ring_attention: q: expected a tensor on cpu, but got one on " + q.device().str());
  const CachedMethod method = cached_method(name, shape.vec(), options);
  check_call({name, shape.vec()}, *method, q, k, v, layer);
  CallTerms terms = {.sink = sink.value_or(at::Tensor()),
                     .key_bias = key_bias.value_or(at::Tensor()),
                     .window = window_of(window.vec()),
                     .softcap = softcap};
  if (scale) terms.scale = *scale;
  const RingLayout layout = {.shards = shards_of(shards), .causal = causal};
  return attend_ring(group_of(group), *method, q, k, v, layout, layer, parameters, terms);
}

at::Tensor ring_unsharded(const at::Tensor& x, int64_t dim, const std::string& group,
                          const std::string& shards) {
  if (dim < -x.dim() || dim >= x.dim())
    fail("ring_unshard: dim: expected " + std::to_string(-x.dim()) + " to " +
         std::to_string(x.dim() - 1) + ", but got " + std::to_string(dim));
  return unsharded(x, dim < 0 ? dim + x.dim() : dim, shards_of(shards), group_of(group));
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(sextant, library) {
  library.def("has_named_groups() -> bool", &Group::has_names);
  library.def(
      "ring_attention(str method, int[] shape, str options, Tensor[] parameters, Tensor q, "
      "Tensor k, Tensor v, *, str group=\"\", str shards=\"zigzag\", int layer=0, "
      "bool causal=True, float? scale=None, Tensor? sink=None, Tensor? key_bias=None, "
      "int[] window=[], float softcap=0) -> (Tensor out, Tensor lse)",
      ring_attention);
  library.def(
      "ring_unsharded(Tensor x, int dim, *, str group=\"\", str shards=\"zigzag\") -> Tensor",
      ring_unsharded);
}

}  // namespace sextant
