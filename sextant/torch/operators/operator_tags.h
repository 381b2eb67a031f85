// The tags of our operators. They tell torch.compile that the shape functions are complete.
#pragma once

#include <ATen/core/enum_tag.h>
#include <torch/version.h>

#include <vector>

namespace sextant {

inline std::vector<at::Tag> operator_tags() {
#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 2)
  return {at::Tag::pt2_compliant_tag};
#else
  return {};  // these versions have neither the tag nor torch.compile
#endif
}

}  // namespace sextant
