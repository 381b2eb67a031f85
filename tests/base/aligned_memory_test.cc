// Aligned memory for vectors; a vector that grows into huge pages keeps its contents.
#include "sextant/base/aligned_memory.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace sextant {
namespace {

bool is_aligned(const void* data, uintptr_t to) {
  return reinterpret_cast<uintptr_t>(data) % to == 0;
}

TEST(AlignedFloats, LieOnLinesAndInHugePages) {
  EXPECT_TRUE(is_aligned(AlignedFloats(3).data(), 64));
  EXPECT_TRUE(is_aligned(AlignedFloats(int64_t{1} << 23).data(), uintptr_t{1} << 21));
}

TEST(LinesAllocator, KeepsWhatAGrowingVectorHolds) {
  constexpr size_t kStep = 3000001;  // odd, so that no block ends with a page
  std::vector<uint32_t, LinesAllocator<uint32_t>> numbers;
  for (size_t size = kStep; size <= 5 * kStep; size += kStep) {  // 12 to 60 MB
    for (size_t n = numbers.size(); n < size; ++n) numbers.push_back(static_cast<uint32_t>(n));
    EXPECT_TRUE(is_aligned(numbers.data(), 64));
    size_t wrong = 0;
    for (size_t n = 0; n < size; ++n) wrong += numbers[n] != n ? 1 : 0;
    EXPECT_EQ(wrong, 0);
  }
}

// With an odd address, an odd length, or less than a huge page, the contents stay unchanged.
TEST(AskForHugePages, LeavesMemoryAsItIs) {
  std::vector<unsigned char> bytes(size_t{40} << 20, 7);
  ask_for_huge_pages(bytes.data() + 1, bytes.size() - 3);
  ask_for_huge_pages(bytes.data(), 5);
  size_t wrong = 0;
  for (const unsigned char byte : bytes) wrong += byte != 7 ? 1 : 0;
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace sextant
