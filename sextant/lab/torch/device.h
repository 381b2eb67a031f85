// The devices of libtorch by their names in settings (plan/settings.h).
#pragma once

#include <c10/core/Device.h>

#include <string>

#include "sextant/lab/plan/settings.h"

namespace sextant::lab {

// Throws Error with the reason if libtorch or Sextant cannot compute there. The first call for a
// GPU loads libtorch's CUDA part and must come before any other work: libtorch decides once whether
// it has CUDA.
c10::Device device_named(const std::string& name);

// Throws Error if the arm cannot be computed on any device of this name: an encoding of one's own
// is computed on the CPU.
void check_device_of(const Arm& arm, const std::string& name);

// The GPU's name as its driver says it, or "cuda".
std::string gpu_name(c10::Device device);

}  // namespace sextant::lab
