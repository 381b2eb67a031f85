// What our operators promise to torch.compile: that their shape functions are complete.
#pragma once

#include <ATen/core/enum_tag.h>
#include <torch/version.h>

#include <vector>

namespace sextant {

inline std::vector<at::Tag> operator_tags() {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 2)
  return {at::Tag::pt2_compliant_tag};
#else
  return {};  // the tag does not exist yet, nor does torch.compile
#endif
}

}  // namespace sextant
