// Names of devices that the laboratory computes on: "cpu", "cuda" (the first GPU), "cuda:1".
#pragma once

#include <string>

namespace sextant::lab {

inline constexpr const char* kCpu = "cpu";

// Throws Error for another name. Whether the machine has the device: see device.h of lab/torch.
void check_device_name(const std::string& name);

// Of a device that has a name: 0 for "cpu" and "cuda".
int device_index(const std::string& name);

}  // namespace sextant::lab
