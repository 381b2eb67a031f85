// The functions of the kernels, selected by number and instance.
#pragma once

#include "sextant/attention/cuda/driver.h"

namespace sextant::cuda {

using Function = void (*)(Arguments);

// Null if there is no such function.
Function find_float32(Kernel kernel, Instance instance);
Function find_bfloat16(Kernel kernel, Instance instance);
Function find_float16(Kernel kernel, Instance instance);
Function find_of_rows(Kernel kernel);

inline Function find(Kernel kernel, Instance instance) {
  if (const Function function = find_of_rows(kernel)) return function;
  switch (instance.type) {
    case Stored::kBfloat16:
      return find_bfloat16(kernel, instance);
    case Stored::kFloat16:
      return find_float16(kernel, instance);
    default:
      return find_float32(kernel, instance);
  }
}

}  // namespace sextant::cuda
