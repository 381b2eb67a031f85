// The forward pass of a call.
#include <limits>

#include "sextant/attention/cuda/launcher.h"

namespace sextant::cuda {

void attend(const Machine& machine, const Operands<float>& operands, const PreparedPlan& plan,
            const Attended<float>& result, void* stream) {
  const PlanShape& shape = plan.shape();
  if (shape.batch == 0 || shape.heads == 0 || shape.queries == 0) return;
  Launcher launcher(machine, operands, plan, PassOf::kForward, stream);
  Arguments& a = launcher.arguments();
  a.out = rows_of(result.out);
  a.lse = rows_of(result.lse);
  if (!covers_queries(plan.plan(), shape)) {
    launcher.fill(a.out, shape.batch, shape.heads, 0, shape.queries, 0);
    launcher.fill(a.lse, shape.batch, shape.heads, 0, shape.queries,
                  -std::numeric_limits<float>::infinity());
  }
  for (const DevicePass& pass : launcher.passes()) {
    launcher.enter(pass);
    launcher.launch_tiles(Kernel::kForward, a, static_cast<int64_t>(pass.host.query_tiles.size()),
                          a.heads);
  }
}

}  // namespace sextant::cuda
