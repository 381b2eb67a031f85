#include "bench/decode_step/core_step.h"

#include <memory>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/cache/kv_cache.h"
#include "sextant/position/spectrum.h"

namespace sextant::bench {
namespace {

// [1, heads, rows, columns], contiguous.
struct Heads {
  int64_t heads, rows, columns;
  std::vector<float> data;

  Heads(int64_t h, int64_t r, int64_t c)
      : heads(h), rows(r), columns(c), data(static_cast<size_t>(h * r * c)) {
    for (size_t n = 0; n < data.size(); ++n)
      data[n] = static_cast<float>((n * 2654435761U) % 1024) / 512 - 1;
  }
  View<float> view() {
    return {data.data(), 1, heads, rows, columns, 0, rows * columns, columns, 1};
  }
};

class CoreStep {
 public:
  CoreStep(const StepSizes& sizes, const Executor& executor)
      : sizes_(sizes),
        context_(executor),
        rope_(rotation(rotary({.dim = static_cast<int>(sizes.head_dim)}))),
        q_(sizes.heads, 1, sizes.head_dim),
        k_(sizes.key_heads, 1, sizes.head_dim),
        v_(sizes.key_heads, 1, sizes.head_dim),
        out_(sizes.heads, 1, sizes.head_dim),
        lse_(sizes.heads, 1, 1) {
    context_.workspace = &memory_;
    Heads k(sizes.key_heads, sizes.keys - 1, sizes.head_dim), v = k;
    for (int64_t n = 0; n < sizes.layers; ++n) {
      caches_.emplace_back(KvCacheShape{.key_heads = sizes.key_heads,
                                        .key_columns = sizes.head_dim,
                                        .value_columns = sizes.head_dim});
      sequence_ = caches_.back().add();
      caches_.back().append(sequence_, k.view(), v.view());
    }
  }

  void run() {
    for (KvCache& cache : caches_) cache.append(sequence_, k_.view(), v_.view());
    // The caches of all layers have the same pages, hence one plan.
    const CachedBatch::Entry entries[] = {{sequence_, &rope_}};
    const CachedBatch batch(caches_[0], entries, /*queries=*/1);
    Operands<float> operands = {.q = q_.view(), .scale = 0.125};
    batch.set_keys(operands, caches_[0]);
    const PlanShape shape = shape_of(operands, batch.plan());
    const PreparedPlan plan(batch.plan(), shape, cpu_backend(), context_, Passes::kForward);
    for (const KvCache& cache : caches_) {
      batch.set_keys(operands, cache);
      attend<float>(operands, plan, {out_.view(), lse_.view()}, context_);
    }
    for (KvCache& cache : caches_) cache.truncate(sequence_, sizes_.keys - 1);
  }

 private:
  StepSizes sizes_;
  Context context_;
  Workspace memory_;
  Rotation rope_;
  Heads q_, k_, v_, out_, lse_;
  std::vector<KvCache> caches_;
  int64_t sequence_ = 0;
};

}  // namespace

std::function<void()> core_step(const StepSizes& sizes, const Executor& executor) {
  return [step = std::make_shared<CoreStep>(sizes, executor)] { step->run(); };
}

}  // namespace sextant::bench
