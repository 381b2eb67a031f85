// The kernels over rows, and of sums beside the tiles.
#include "sextant/attention/cuda/kernels/axes.cuh"
#include "sextant/attention/cuda/kernels/find.h"
#include "sextant/attention/cuda/kernels/sums.cuh"

namespace sextant::cuda {

Function find_of_rows(Kernel kernel) {
  switch (kernel) {
    case Kernel::kFill:
      return fill;
    case Kernel::kAngles:
      return angles;
    case Kernel::kRotate:
      return rotate;
    case Kernel::kOrigins:
      return origins;
    case Kernel::kMeans:
      return means;
    case Kernel::kSinkGradient:
      return sink_gradient;
    case Kernel::kFoldTable:
      return fold_table;
    case Kernel::kAxisProducts:
      return axis_products;
    case Kernel::kAxisRowsGrad:
      return axis_rows_grad;
    case Kernel::kAxisTableGrad:
      return axis_table_grad;
    case Kernel::kAxisBiasGrad:
      return axis_bias_grad;
    default:
      return nullptr;
  }
}

}  // namespace sextant::cuda
