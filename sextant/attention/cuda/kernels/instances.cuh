// The instances of the kernels over tiles, for the sources that compile one type each.
#pragma once

#include "sextant/attention/cuda/kernels/axis_gradients.cuh"
#include "sextant/attention/cuda/kernels/find.h"
#include "sextant/attention/cuda/kernels/query_gradients.cuh"
#include "sextant/attention/cuda/kernels/table_gradients.cuh"

namespace sextant::cuda {

template <class T, int kWidth, int kTile>
Function backward_kernel(Kernel kernel) {
  switch (kernel) {
    case Kernel::kQueryGradients:
      return query_gradients<T, kWidth, kTile>;
    case Kernel::kKeyGradients:
      return key_gradients<T, kWidth, kTile>;
    case Kernel::kValueGradients:
      return value_gradients<T, kWidth, kTile>;
    case Kernel::kTableGradients:
      return table_gradients<T, kWidth, kTile>;
    case Kernel::kScalarGradients:
      return scalar_gradients<T, kWidth, kTile>;
    case Kernel::kAxisGradients:
      return axis_gradients<T, kWidth, kTile>;
    default:
      return nullptr;
  }
}

template <int kWidthOf, int kTileOf>
struct Size {
  static constexpr int kWidth = kWidthOf, kTile = kTileOf;
};

// The instances of each pass. Those of the backward pass have smaller tiles, as their threads hold
// more.
template <class T, class... ASize>
Function find_forward(Kernel kernel, Instance instance) {
  Function found = nullptr;
  if (kernel == Kernel::kForward)
    ((instance.width == ASize::kWidth && instance.tile == ASize::kTile
          ? void(found = forward<T, ASize::kWidth, ASize::kTile>)
          : void()),
     ...);
  return found;
}
template <class T, class... ASize>
Function find_backward(Kernel kernel, Instance instance) {
  Function found = nullptr;
  ((instance.width == ASize::kWidth && instance.tile == ASize::kTile
        ? void(found = backward_kernel<T, ASize::kWidth, ASize::kTile>(kernel))
        : void()),
   ...);
  return found;
}

// The instances of a 16-bit type.
template <class T>
Function find_narrow(Kernel kernel, Instance instance) {
#ifdef SEXTANT_CUDA_FEW_INSTANCES
  if (const Function found = find_forward<T, Size<64, 64>, Size<128, 32>>(kernel, instance))
    return found;
  return find_backward<T, Size<64, 32>, Size<128, 32>>(kernel, instance);
#else
  if (const Function found =
          find_forward<T, Size<64, 64>, Size<64, 32>, Size<128, 64>, Size<128, 32>, Size<256, 16>>(
              kernel, instance))
    return found;
  return find_backward<T, Size<64, 32>, Size<128, 32>, Size<256, 16>>(kernel, instance);
#endif
}

}  // namespace sextant::cuda
