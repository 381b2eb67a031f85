// Memory for vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace sextant {

// Uninitialised floats on a cache line of their own.
class Floats {
 public:
  Floats() = default;
  explicit Floats(int64_t count)
      : data_(static_cast<float*>(::operator new (static_cast<size_t>(count) * sizeof(float),
                                                  std::align_val_t{kAlignment}))) {}
  float* data() { return data_.get(); }
  const float* data() const { return data_.get(); }

 private:
  static constexpr size_t kAlignment = 64;
  struct Free {
    void operator()(float* p) const { ::operator delete (p, std::align_val_t{kAlignment}); }
  };
  std::unique_ptr<float, Free> data_;
};

}  // namespace sextant
