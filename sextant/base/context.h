// The resources that a call runs with.
#pragma once

#include "sextant/base/executor.h"
#include "sextant/base/workspace.h"

namespace sextant {

struct Context {
  const Executor* executor = &serial_executor();  // of host code
  void* stream = nullptr;                         // of the backend's device; null: its default
  Workspace* workspace = nullptr;                 // null: memory is allocated in the call

  Context() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): an executor is all that host backends need
  Context(const Executor& runs) : executor(&runs) {}
};

}  // namespace sextant
