// ggml as a peer: a graph of tensors, computed by threads of its own.
#pragma once

#include <ggml-alloc.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sextant::bench {

class GgmlGraph {
 public:
  // tensors: the most tensors that the graph has.
  explicit GgmlGraph(size_t tensors);

  ggml_context* context() const { return context_.get(); }
  // A tensor in the caller's memory, which no operation writes. ggml counts dimensions from the
  // innermost one. Views of it are made after this.
  ggml_tensor* constant(ggml_type type, const void* data, int64_t ne0, int64_t ne1, int64_t ne2 = 1,
                        int64_t ne3 = 1);
  // Adds the computation of a tensor.
  void add(ggml_tensor* result) { ggml_build_forward_expand(graph_, result); }
  // Gives memory to all tensors that have none, as engines do: a buffer in which tensors share the
  // space of those that are no longer needed. Returns its bytes. After the last add().
  size_t allocate();
  // Plans the computation, after the last add().
  void plan(int threads);
  size_t work_bytes() const { return work_.size(); }
  void compute();

 private:
  std::unique_ptr<ggml_context, void (*)(ggml_context*)> context_;
  std::unique_ptr<ggml_threadpool, void (*)(ggml_threadpool*)> pool_{nullptr, ggml_threadpool_free};
  std::unique_ptr<ggml_gallocr, void (*)(ggml_gallocr*)> memory_{nullptr, ggml_gallocr_free};
  ggml_cgraph* graph_;
  ggml_cplan plan_ = {};
  std::vector<uint8_t> work_;
};

}  // namespace sextant::bench
