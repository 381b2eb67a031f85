// A process group of c10d behind a Group. Only the sources of Group include c10d's headers.
#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <chrono>
#include <functional>

namespace sextant {

struct GroupConnection {
  c10::intrusive_ptr<c10d::ProcessGroup> group;
  // The longest that a transfer takes; 0: the group's own timeout.
  std::chrono::milliseconds exchange{0};
  // Closes all connections, so that the other ranks see that this one has failed; or empty.
  std::function<void()> close = {};
};

}  // namespace sextant
