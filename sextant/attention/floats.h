// Memory for vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace sextant {

// Uninitialised floats on a cache line of their own. Tens of MiB lie in huge pages where the kernel gives those to who
// asks: the first touch of a page of 4 KiB may take microseconds on a virtual machine.
class Floats {
 public:
  Floats() = default;
  explicit Floats(int64_t count);
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }

 private:
  struct Free {
    size_t bytes;
    void operator()(float* p) const;
  };
  std::unique_ptr<float, Free> data_;
};

}  // namespace sextant
