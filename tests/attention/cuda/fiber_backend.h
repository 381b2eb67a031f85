// Backends whose kernels run on the CPU (fibers.h), with memory of the host.
#pragma once

#include "sextant/attention/attend.h"
#include "sextant/attention/cuda/driver.h"
#include "tests/attention/cuda/fibers.h"

namespace sextant::cuda {

// The table of functions over fibers and memory of the host.
const Driver& fiber_driver();

// Products in the type of the operands, and in float32.
const Backend& fiber_backend();
const Backend& fiber_float32_backend();

// The order in which warps of later launches run.
void set_order(fibers::Order order);

// The number of blocks of device memory that are in use.
int64_t blocks_in_use();

}  // namespace sextant::cuda
