// Methods with operands that the kernels for CUDA do not read; their calls are refused.
#pragma once

#include <algorithm>
#include <string_view>

namespace sextant::testing {

inline bool cuda_refuses(std::string_view method) {
  constexpr std::string_view kRefused[] = {"alibi-2d", "beit", "inkling", "layoutlm",
                                           "sam",      "swin", "wavlm"};
  return std::ranges::find(kRefused, method) != std::end(kRefused);
}

// The words of the refusal.
inline constexpr const char* kCudaRefusal = "whose kernels do not read it";

}  // namespace sextant::testing
