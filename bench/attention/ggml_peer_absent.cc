// The functions of ggml_peer.h in a build without ggml.
#include "bench/attention/ggml_peer.h"
#include "sextant/base/error.h"

namespace sextant::bench {

bool has_ggml() { return false; }

std::function<at::Tensor()> ggml_attention(const GgmlAttention&, int) {
  fail("bench: expected a build that found ggml (-DCMAKE_PREFIX_PATH=), but this one did not");
}

}  // namespace sextant::bench
