#include "bench/decode_products.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "bench/filled.h"
#include "sextant/attention/attend.h"
#include "sextant/attention/cpu/forward/forward.h"
#include "sextant/base/simd/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/decode_products.cc"
#include "hwy/foreach_target.h"  // compiles this file once for each target
//
#include "sextant/attention/cpu/forward/decode_pv-inl.h"
#include "sextant/attention/cpu/forward/decode_qk-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sextant::bench {
namespace HWY_NAMESPACE {
using namespace cpu;
using namespace cpu::HWY_NAMESPACE;

// copy: buffer for one unit of keys or values.
void multiply_head(const Problem& p, const BatchFrame& batch_frame, int64_t key_head,
                   const GroupedQueries& grouped, float* copy) {
  const int64_t keys = batch_frame.frame.keys, queries = p.group * batch_frame.frame.queries;
  for (int64_t first = 0; first < keys; first += p.unit) {
    const KeyRange keys_of_unit = {0, std::min(p.unit, keys - first)};
    const DecodeUnit unit = {{p, batch_frame, Side::kKey, first, keys_of_unit.last},
                             key_head,
                             keys_of_unit,
                             keys - first,
                             rows_at_once(p.score, queries)};
    multiply_plain_keys(unit, rounded_out(keys_of_unit), queries, 0, copy, grouped);
    decode_pv(unit, keys_of_unit, queries, copy, grouped);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace sextant::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sextant::bench {
namespace {
HWY_EXPORT(multiply_head);

// The buffers of a worker.
struct Scratch {
  explicit Scratch(const cpu::Problem& p)
      : memory(filled([&](cpu::Arena& arena) {
          grouped.emplace(p, p.score.q.rows, arena);
          copy = arena.floats(p.unit * std::max(p.depth16, p.width16));
        })) {}

  std::optional<cpu::GroupedQueries> grouped;
  float* copy = nullptr;
  AlignedFloats memory;  // the last member, since its initializer sets the pointers above
};

}  // namespace

void multiply_cached(const Score<float>& score, const Executor& executor) {
  const HostScore<float> host(score, score);
  cpu::PassPlan plan;
  plan.renew(score.frames, score.sweeps, score.diagonals, shape_of<float>(score, score), cpu::kUnit,
             executor);
  Workspace memory;
  const cpu::Problem problem(host, cpu::Pass::kForward, plan, plan.unit, memory, executor);
  std::vector<Scratch> scratches;
  scratches.reserve(static_cast<size_t>(executor.workers()));
  for (int worker = 0; worker < executor.workers(); ++worker) scratches.emplace_back(problem);
  const int64_t heads = score.k.heads;
  executor.run(heads * static_cast<int64_t>(problem.blocks.size()), [&](int64_t n, int worker) {
    Scratch& scratch = scratches[static_cast<size_t>(worker)];
    HWY_DYNAMIC_DISPATCH(multiply_head)
    (problem, problem.blocks[static_cast<size_t>(n / heads)], n % heads, *scratch.grouped,
     scratch.copy);
  });
}

}  // namespace sextant::bench
#endif
