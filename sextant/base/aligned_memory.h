// Memory for vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace sextant {

// Memory on cache lines of its own. Tens of MiB lie in huge pages where the kernel gives those to
// who asks: the first touch of a page of 4 KiB may take microseconds on a virtual machine, and what
// is read from memory comes faster.
void* allocate_lines(size_t bytes);
void free_lines(void* data, size_t bytes);
// The same for memory that someone else allocated and nobody has touched.
void ask_for_huge_pages(void* data, size_t bytes);

// Uninitialised floats in such memory.
class AlignedFloats {
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

// For a std::vector in such memory.
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
