#include "sextant/base/workspace.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace sextant {
namespace {

TEST(Workspace, KeepsItsMemoryForTheNextCall) {
  Workspace memory;
  float* const first = memory.floats(100);
  float* const second = memory.floats(3);
  EXPECT_NE(first, second);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(second) % 64, 0U);
  memory.reset();
  EXPECT_EQ(memory.floats(50), first);
  EXPECT_EQ(memory.floats(3), second);
}

TEST(Workspace, TrimFreesLargeBlocks) {
  Workspace memory;
  float* const small = memory.floats(10);
  memory.floats(1000);
  memory.reset();
  memory.trim(100);
  EXPECT_EQ(memory.floats(10), small);
  float* const large = memory.floats(2000);
  large[1999] = 1;  // it is there
}

}  // namespace
}  // namespace sextant
