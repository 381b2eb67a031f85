// Cache-line-aligned memory, backed by huge pages where it is large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "sextant/base/export.h"

namespace sextant {

// Allocates memory that shares no cache line with other memory. Allocations of 32 MiB and more use
// huge pages where the kernel grants them: the first touch of a page of 4 KiB may take microseconds
// on a virtual machine, and reads from memory are faster with huge pages.
SEXTANT_API void* allocate_lines(size_t bytes);
SEXTANT_API void free_lines(void* data, size_t bytes);
// Requests huge pages for memory that was allocated elsewhere and not touched yet.
SEXTANT_API void ask_for_huge_pages(void* data, size_t bytes);

// An array of uninitialised floats from allocate_lines().
class SEXTANT_API AlignedFloats {
 public:
  AlignedFloats() = default;
  explicit AlignedFloats(int64_t count);
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }

 private:
  struct Free {
    size_t bytes;
    void operator()(float* p) const { free_lines(p, bytes); }
  };
  std::unique_ptr<float, Free> data_;
};

// An allocator for std::vector on top of allocate_lines().
template <class T>
struct LinesAllocator {
  using value_type = T;

  LinesAllocator() = default;
  template <class U>
  explicit LinesAllocator(const LinesAllocator<U>&) {}
  T* allocate(size_t count) { return static_cast<T*>(allocate_lines(count * sizeof(T))); }
  void deallocate(T* data, size_t count) { free_lines(data, count * sizeof(T)); }
  template <class U>
  bool operator==(const LinesAllocator<U>&) const {
    return true;
  }
};

}  // namespace sextant
