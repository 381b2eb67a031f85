#include "bench/decode_step/core_step.h"

#include <memory>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/sextant.h"

namespace sextant::bench {
namespace {

void expect_ok(sextant_status status) {
  if (status != SEXTANT_OK) fail(sextant_error());
}

// [1, heads, rows, columns], contiguous.
struct Heads {
  std::vector<float> data;
  sextant_array array;

  Heads(int64_t heads, int64_t rows, int64_t columns)
      : data(static_cast<size_t>(heads * rows * columns)),
        array(sextant_contiguous(data.data(), SEXTANT_FLOAT32, 1, heads, rows, columns)) {
    for (size_t n = 0; n < data.size(); ++n)
      data[n] = static_cast<float>((n * 2654435761U) % 1024) / 512 - 1;
  }
};

template <auto destroy>
struct Destroy {
  void operator()(auto* object) const { destroy(object); }
};
template <class T, auto destroy>
using Owned = std::unique_ptr<T, Destroy<destroy>>;

class CoreStep {
 public:
  CoreStep(const StepSizes& sizes, int threads)
      : keys_(sizes.keys),
        q_(sizes.heads, 1, sizes.head_dim),
        k_(sizes.key_heads, 1, sizes.head_dim),
        v_(sizes.key_heads, 1, sizes.head_dim),
        out_(sizes.heads, 1, sizes.head_dim) {
    sextant_pool* pool = nullptr;
    expect_ok(sextant_pool_create(threads, &pool));
    pool_.reset(pool);
    sextant_rope* rope = nullptr;
    expect_ok(sextant_rope_create(sizes.head_dim, 1e4, SEXTANT_HALF_SPLIT, 0, &rope));
    rope_.reset(rope);
    const Heads prompt(sizes.key_heads, sizes.keys - 1, sizes.head_dim);
    const sextant_cache_shape shape = {
        sizeof shape, sizes.key_heads, sizes.head_dim, sizes.head_dim, 0, SEXTANT_FLOAT32};
    for (int64_t n = 0; n < sizes.layers; ++n) {
      sextant_cache* cache = nullptr;
      expect_ok(sextant_cache_create(&shape, &cache));
      caches_.emplace_back(cache);
      expect_ok(sextant_cache_add(cache, 0, &sequence_));
      expect_ok(sextant_cache_reserve(cache, sequence_, sizes.keys));
      expect_ok(sextant_cache_append(cache, sequence_, &prompt.array, &prompt.array));
    }
    SEXTANT_NEW(sextant_decode_plan_options, options);
    options.sequences = &sequence_;
    options.count = options.queries = 1;
    options.heads = sizes.heads;
    options.most_rows = sizes.keys;
    options.rope = rope_.get();
    options.pool = pool_.get();
    sextant_decode_plan* plan = nullptr;
    expect_ok(sextant_decode_plan_create(caches_[0].get(), &options, &plan));
    plan_.reset(plan);
  }

  void run() {
    SEXTANT_NEW(sextant_decode_plan_call, call);
    call.q = q_.array;
    for (const auto& cache : caches_) {
      expect_ok(sextant_cache_append(cache.get(), sequence_, &k_.array, &v_.array));
      // The caches of all layers have the same pages, hence one plan.
      if (cache == caches_.front())
        expect_ok(sextant_decode_plan_step(plan_.get(), cache.get(), nullptr));
      expect_ok(sextant_decode_plan_attend(plan_.get(), cache.get(), &call, &out_.array, nullptr));
    }
    for (const auto& cache : caches_)
      expect_ok(sextant_cache_truncate(cache.get(), sequence_, keys_ - 1));
  }

 private:
  int64_t keys_, sequence_ = 0;
  Owned<sextant_pool, sextant_pool_destroy> pool_;
  Owned<sextant_rope, sextant_rope_destroy> rope_;
  std::vector<Owned<sextant_cache, sextant_cache_destroy>> caches_;
  Owned<sextant_decode_plan, sextant_decode_plan_destroy> plan_;
  Heads q_, k_, v_, out_;
};

}  // namespace

std::function<void()> core_step(const StepSizes& sizes, int threads) {
  return [step = std::make_shared<CoreStep>(sizes, threads)] { step->run(); };
}

}  // namespace sextant::bench
