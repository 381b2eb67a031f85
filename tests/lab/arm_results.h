// Results of arms that were never run: trained at 32, tested at 32 and 64.
#pragma once

#include <cstdint>
#include <string>

#include "sextant/lab/result.h"

namespace sextant::lab {

// change: by how much every loss is higher at 64.
inline ArmResult arm_result(const std::string& label, uint64_t seed, double change) {
  ArmResult result;
  result.arm = {.label = label, .method = label, .options = "{}", .seed = seed};
  result.lengths = {{.length = 32, .loss = {2, 0.1}, .sliding = {1.5, 0.1}},
                    {.length = 64,
                     .loss = {2 + change, 0.1},
                     .sliding = {1.5 + change, 0.1},
                     .loss_change = {change, 0.01},
                     .sliding_change = {change, 0.01}}};
  result.loss_at = {2, 2 + change};
  result.train_loss = {3, 2.5};
  return result;
}

}  // namespace sextant::lab
