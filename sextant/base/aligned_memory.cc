#include "sextant/base/aligned_memory.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace sextant {
namespace {

constexpr size_t kLine = 64, kHugePage = size_t{1} << 21;  // bytes

// Whether glibc maps a block of this size anew at each allocation (mallopt(3), M_MMAP_THRESHOLD: at
// most 32 MiB). It soon reuses the pages of smaller blocks.
bool is_mapped_anew(size_t bytes) { return bytes >= 16 * kHugePage; }

std::align_val_t alignment(size_t bytes) {
  return std::align_val_t{is_mapped_anew(bytes) ? kHugePage : kLine};
}

}  // namespace

void ask_for_huge_pages([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#if defined(MADV_HUGEPAGE)
  if (!is_mapped_anew(bytes)) return;
  void* first = data;
  if (!std::align(kHugePage, kHugePage, first, bytes)) return;
  // A kernel without huge pages may refuse; the memory then stays as it is.
  madvise(first, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
}

void* allocate_lines(size_t bytes) {
  void* const data = ::operator new(bytes, alignment(bytes));
  ask_for_huge_pages(data, bytes);
  return data;
}

void free_lines(void* data, size_t bytes) { ::operator delete(data, alignment(bytes)); }

AlignedFloats::AlignedFloats(int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  data_ = {static_cast<float*>(allocate_lines(bytes)), Free{bytes}};
}

}  // namespace sextant
