// Memory of a device, and launches, through a driver's table of functions. Errors become
// exceptions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sextant/attention/cuda/driver.h"
#include "sextant/base/error.h"

namespace sextant::cuda {

inline void expect_success(const char* action, const char* message) {
  if (message) fail("cuda: " + std::string(action) + ": " + message);
}

// A block of memory that is given back in the order of its stream or, if it is lasting, once
// nothing uses it.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(const Driver& driver, int64_t bytes) : driver_(&driver), lasting_(true) {
    if (bytes > 0)
      expect_success(("memory of " + std::to_string(bytes) + " bytes").c_str(),
                     driver.allocate_lasting(static_cast<size_t>(bytes), &data_));
  }
  DeviceMemory(const Driver& driver, void* stream, int64_t bytes)
      : driver_(&driver), stream_(stream) {
    if (bytes > 0)
      expect_success(("memory of " + std::to_string(bytes) + " bytes").c_str(),
                     driver.allocate(static_cast<size_t>(bytes), stream, &data_));
  }
  DeviceMemory(DeviceMemory&& other) noexcept
      : driver_(other.driver_),
        stream_(other.stream_),
        data_(std::exchange(other.data_, nullptr)),
        lasting_(other.lasting_) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(driver_, other.driver_);
    std::swap(stream_, other.stream_);
    std::swap(data_, other.data_);
    std::swap(lasting_, other.lasting_);
    return *this;
  }
  ~DeviceMemory() {
    // A message here could only repeat one of an earlier launch, which has thrown.
    if (!data_) return;
    if (lasting_)
      driver_->release_lasting(data_);
    else
      driver_->release(data_, stream_);
  }

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  const Driver* driver_ = nullptr;
  void* stream_ = nullptr;
  void* data_ = nullptr;
  bool lasting_ = false;
};

// A lasting copy of host memory.
template <class T>
DeviceMemory uploaded(const Driver& driver, void* stream, const std::vector<T>& from) {
  const auto bytes = static_cast<int64_t>(from.size() * sizeof(T));
  DeviceMemory memory(driver, bytes);
  if (bytes > 0)
    expect_success("upload", driver.upload(memory.as<void>(), from.data(),
                                           static_cast<size_t>(bytes), stream));
  return memory;
}

}  // namespace sextant::cuda
