// The functions by which host code uses a GPU: memory, and launches of the kernels of this folder.
// They form a C table, so that libsextant_cuda.so, which has the kernels and the CUDA runtime, is
// opened when the first call needs it. Tests have a table whose kernels run on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sextant/attention/cuda/arguments.h"

namespace sextant::cuda {

// The kernels. A number and the types of `Instance` select a function of the library.
enum class Kernel : int32_t {
  kFill,             // kernels/rows.cuh
  kAngles,           // kernels/rows.cuh
  kRotate,           // kernels/rows.cuh
  kOrigins,          // kernels/sums.cuh
  kMeans,            // kernels/sums.cuh
  kSinkGradient,     // kernels/sums.cuh
  kFoldTable,        // kernels/sums.cuh
  kAxisProducts,     // kernels/axes.cuh
  kAxisRowsGrad,     // kernels/axes.cuh
  kAxisTableGrad,    // kernels/axes.cuh
  kAxisBiasGrad,     // kernels/axes.cuh
  kForward,          // kernels/forward.cuh
  kQueryGradients,   // kernels/query_gradients.cuh
  kKeyGradients,     // kernels/key_gradients.cuh
  kValueGradients,   // kernels/key_gradients.cuh
  kTableGradients,   // kernels/table_gradients.cuh
  kScalarGradients,  // kernels/table_gradients.cuh
  kAxisGradients,    // kernels/axis_gradients.cuh
};

// The type of products, the most columns of a row, and the queries and keys of a tile. Kernels of
// kernels/rows.cuh and sums.h have the type only.
struct Instance {
  Stored type = Stored::kFloat32;
  int32_t width = 0, tile = 0;
};

struct Grid {
  int64_t x = 1;
  int32_t y = 1, z = 1;
  int32_t threads = 32;
  int32_t shared_bytes = 0;
};

// A function that fails returns a message, and null if it succeeds. Messages are static or valid
// until the next call of this thread.
struct Driver {
  int32_t version;  // kDriverVersion of the library's build
  // The number of usable devices, or a message, e.g. that there is no driver.
  const char* (*device_count)(int32_t* count);
  // The most bytes of shared memory that a block of the current device can have.
  const char* (*most_shared_bytes)(int32_t* bytes);
  // Memory of a plan, for calls on any stream. Giving it back waits for what uses it.
  const char* (*allocate_lasting)(size_t bytes, void** memory);
  const char* (*release_lasting)(void* memory);
  // Memory in the order of a stream: a block may be given back while kernels still use it.
  const char* (*allocate)(size_t bytes, void* stream, void** memory);
  const char* (*release)(void* memory, void* stream);
  // Copies memory of the host, which may be changed as soon as the call returns. The copy is then
  // complete for all streams.
  const char* (*upload)(void* to, const void* from, size_t bytes, void* stream);
  // Copies memory of the device, after the work that is queued on the stream, and waits for it.
  const char* (*download)(void* to, const void* from, size_t bytes, void* stream);
  // Waits for all that was queued on a stream.
  const char* (*wait)(void* stream);
  // Whether the library has this kernel, for this instance.
  bool (*has)(Kernel kernel, Instance instance);
  const char* (*launch)(Kernel kernel, Instance instance, const Grid* grid,
                        const Arguments* arguments, void* stream);
};

inline constexpr int32_t kDriverVersion = 3;

}  // namespace sextant::cuda

// The one symbol of libsextant_cuda.so.
extern "C" const sextant::cuda::Driver* sextant_cuda_driver();
