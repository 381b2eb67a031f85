// The stand-in of ggml_engine.cc in a build without ggml.
#include "bench/decode/engine.h"
#include "sextant/base/error.h"

namespace sextant::bench {

bool has_ggml_decode() { return false; }

std::function<void()> ggml_call(const DecodeData&, int, std::span<float>) {
  fail("bench: ggml: expected a build that found it");
}

}  // namespace sextant::bench
