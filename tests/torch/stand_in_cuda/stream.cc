// The functions of libc10_cuda.so that sextant_torch looks for.
#include "tests/torch/stand_in_cuda/stream.h"

#include <c10/core/Stream.h>

namespace sextant::testing {

StandInStream& stand_in_stream() {
  static StandInStream stream;
  return stream;
}

}  // namespace sextant::testing

namespace c10::cuda {

class CUDAStream {
 public:
  void* stream() const;

 private:
  Stream stream_;
};

void* CUDAStream::stream() const {
  return stream_.device().is_cuda() ? sextant::testing::stand_in_stream().handle : nullptr;
}

}  // namespace c10::cuda

extern "C" int cudaStreamIsCapturing(void* stream, int* status) {
  const auto& current = sextant::testing::stand_in_stream();
  *status = stream == current.handle && current.captured ? 1 : 0;
  return 0;
}
