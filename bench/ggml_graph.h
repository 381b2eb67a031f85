// ggml as a peer: a graph of tensors in the caller's memory, computed by threads of its own.
#pragma once

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
  // Adds the computation of a tensor, whose memory is set.
  void add(ggml_tensor* result) { ggml_build_forward_expand(graph_, result); }
  // Plans the computation, after the last add().
  void plan(int threads);
  void compute();

 private:
  std::unique_ptr<ggml_context, void (*)(ggml_context*)> context_;
  std::unique_ptr<ggml_threadpool, void (*)(ggml_threadpool*)> pool_{nullptr, ggml_threadpool_free};
  ggml_cgraph* graph_;
  ggml_cplan plan_ = {};
  std::vector<uint8_t> work_;
};

}  // namespace sextant::bench
