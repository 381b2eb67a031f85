// A call of a backend whose operands, results and gradients are in a device's memory, from an
// Outcome in the host's.
#pragma once

#include <vector>

#include "sextant/attention/cuda/memory.h"
#include "tests/attention/outcome.h"

namespace sextant::cuda {

// Copies of views in a device's memory. A copy has the strides of its view and lies at the same
// address modulo 16, since kernels take 16 bytes at once where that is possible.
class DeviceCopies {
 public:
  explicit DeviceCopies(const Driver& driver) : driver_(driver) {}

  AnyView<const float> operands(const AnyView<const float>& x) { return moved(x, size_of(x)); }
  template <class T>
  View<const T> operands(const View<const T>& x) {
    return moved(x, sizeof(T));
  }
  std::span<const float> operands(std::span<const float> x) {
    return {static_cast<const float*>(block(x.data(), x.size_bytes())), x.size()};
  }

  // The same for memory that the call writes and fetch() copies back.
  AnyView<float> results(const AnyView<float>& x) { return moved(x, size_of(x), kWritten); }
  View<float> results(const View<float>& x) { return moved(x, sizeof(float), kWritten); }
  std::span<float> results(std::span<float> x) {
    return {static_cast<float*>(block(x.data(), x.size_bytes(), kWritten)), x.size()};
  }
  void fetch() const;

 private:
  static constexpr bool kWritten = true;
  struct Copy {
    DeviceMemory memory;
    void *host, *device;
    size_t bytes;
    bool written;
  };

  template <class T>
  static size_t size_of(const AnyView<T>& x) {
    return static_cast<size_t>(x.element_size());
  }
  // The device's address of a block of the host's memory.
  void* block(const void* host, size_t bytes, bool written = false);
  template <class AView>
  AView moved(AView x, size_t element, bool written = false) {
    if (!x) return x;
    int64_t first = 0, last = 0;  // elements, from the view's own address
    const auto reach = [&](int64_t size, int64_t stride) {
      (stride < 0 ? first : last) += (size - 1) * stride;
    };
    const bool empty = x.batch == 0 || x.heads == 0 || x.rows == 0 || x.columns == 0;
    if (!empty) {
      reach(x.batch, x.batch_stride);
      reach(x.heads, x.head_stride);
      reach(x.rows, x.row_stride);
      reach(x.columns, x.column_stride);
    }
    const int64_t before = first * static_cast<int64_t>(element);
    const char* const start = reinterpret_cast<const char*>(x.data) + before;
    const size_t bytes = empty ? 0 : static_cast<size_t>(last - first + 1) * element;
    x.data = reinterpret_cast<decltype(x.data)>(static_cast<char*>(block(start, bytes, written)) -
                                                before);
    return x;
  }

  const Driver& driver_;
  std::vector<Copy> copies_;
};

// Computes out and lse by a backend over the driver's memory.
void attend_on(const Driver& driver, const Score<float>& score, const Attended<float>& result,
               const Backend& backend);

// Computes results and gradients by a backend over the driver's memory.
void compute(Outcome& outcome, const Driver& driver, const Backend& backend);

}  // namespace sextant::cuda
