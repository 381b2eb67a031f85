#include "sextant/torch/methods/over.h"

#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/stack.h>

namespace sextant {

at::Tensor intersection(const at::Tensor& a, const at::Tensor& b) {
  return at::stack({at::maximum(a.select(-1, 0), b.select(-1, 0)),
                    at::minimum(a.select(-1, 1), b.select(-1, 1))},
                   -1);
}

}  // namespace sextant
