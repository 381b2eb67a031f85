// torch.autocast during the tensor code of methods.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace sextant {

// Products of methods, such as DeBERTa's projections, keep their type on a CUDA device.
struct WithoutCudaAutocast {
  const c10::impl::ExcludeDispatchKeyGuard guard{
      c10::DispatchKeySet(c10::DispatchKey::AutocastCUDA)};
};

}  // namespace sextant
