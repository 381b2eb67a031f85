#include "sextant/attention/floats.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace sextant {
namespace {

constexpr size_t kLine = 64, kHugePage = size_t{1} << 21;  // bytes

// Blocks that glibc maps anew each time (mallopt(3), M_MMAP_THRESHOLD: at most 32 MiB); of smaller ones it soon
// keeps the pages.
bool is_mapped_anew(size_t bytes) { return bytes >= 16 * kHugePage; }

std::align_val_t alignment(size_t bytes) {
  return std::align_val_t{is_mapped_anew(bytes) ? kHugePage : kLine};
}

}  // namespace

Floats::Floats(int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  data_ = {static_cast<float*>(::operator new(bytes, alignment(bytes))), Free{bytes}};
#if defined(MADV_HUGEPAGE)
  // A kernel that has none may refuse: then all is as it was.
  if (is_mapped_anew(bytes)) madvise(data_.get(), bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
#endif
}

void Floats::Free::operator()(float* p) const { ::operator delete(p, alignment(bytes)); }

}  // namespace sextant
