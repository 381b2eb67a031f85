// The machines that arms of one comparison ran on.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/result/result.h"

namespace sextant::lab {

// A processor with its torch, and the number of arms that ran there.
struct Machine {
  std::string name;
  size_t arms = 0;
};
// In the order of the arms, whose machines these are. Empty names are left out.
std::vector<Machine> machines_of(std::span<const std::string> names);
std::vector<Machine> machines_of(std::span<const ArmResult> results);

// A warning if there are several; else empty.
std::string unlike_machines_text(std::span<const Machine> machines);

}  // namespace sextant::lab
