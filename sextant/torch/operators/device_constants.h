// Copies of constants on devices. Methods compute slopes, sinusoids and indices on the CPU in every
// call, with the same values for all layers and many calls. Their copies are kept, so that such
// calls copy nothing to the device, which would wait for it.
#pragma once

#include <ATen/core/Tensor.h>

namespace sextant {

// x, a tensor on the CPU without gradient, on the device of `like`: x itself, or a kept copy, which
// must not be changed. Throws Error if a CUDA graph is being captured and there is no copy yet.
at::Tensor on_device_of(const at::Tensor& like, const at::Tensor& x);

// The same for a tensor that the caller keeps and never changes. Copies are found by the tensor,
// not by its values, which may be many.
at::Tensor table_on_device_of(const at::Tensor& like, const at::Tensor& table);

}  // namespace sextant
