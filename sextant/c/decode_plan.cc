// A decode plan is a Decoding with copies of the rope and of the maps of its tables.
#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sextant/base/joint_call.h"
#include "sextant/c/guard.h"
#include "sextant/c/handles.h"
#include "sextant/cache/decoding.h"

using namespace sextant;
using sextant::c::guarded;
using sextant::c::need;

struct sextant_decode_plan {
  std::shared_ptr<const Rotation> rotation;  // to which entries point; null: none
  c::PlanningFor planning;
  const Executor& executor;  // of attend()
  c::TableMaps maps;
  std::vector<float> lse;  // where the caller wants none
  bool on_key;
  int64_t batch;
  Decoding decoding;
  JointCall joint;
  std::atomic<bool> in_use = false;
  c::Tag<sextant_decode_plan> tag;

  sextant_decode_plan(const KvCache& cache, const sextant_decode_plan_options& o,
                      const sextant_terms& terms)
      : rotation(o.rope ? need(o.rope, "rope").rotation : nullptr),
        planning(o.threads),
        executor(c::executor_of(o.pool)),
        maps(maps_of(o, terms)),
        lse(static_cast<size_t>(o.count * o.heads * o.queries)),
        on_key(!c::is_absent(terms.on_key.table)),
        batch(o.count),
        decoding(
            cache, entries(o),
            {.heads = o.heads, .queries = o.queries, .most_rows = o.most_rows, .key_table = on_key},
            maps.rows(), cpu_backend(),
            o.threads > 0 ? static_cast<const Executor&>(planning) : executor) {}

  static c::TableMaps maps_of(const sextant_decode_plan_options& o, const sextant_terms& terms) {
    c::TableMaps own;
    if (o.count > 0) own.set(terms, o.window > 0 ? std::min(o.window, o.most_rows) : o.most_rows);
    return own;
  }

  std::vector<CachedBatch::Entry> entries(const sextant_decode_plan_options& o) const {
    std::vector<CachedBatch::Entry> all;
    for (int64_t b = 0; b < o.count; ++b)
      all.push_back({(&need(o.sequences, "decode plan: sequences"))[b], rotation.get(), o.window});
    return all;
  }

  void attend(const sextant_cache* cache, const sextant_decode_plan_call* call,
              const sextant_array* out, const sextant_array* own_lse, const Executor& runs) {
    const c::OneCall use(in_use, "decode plan");
    const sextant_decode_plan_call a = c::read(call, "decode_plan_call");
    sextant_terms terms = c::read_or_none(a.terms, "terms");
    if (terms.mask || !c::is_absent(terms.key_bias))
      fail("decode plan: terms: expected neither a mask nor a key_bias, but got one");
    c::each_table(terms, maps, [&](const char* name, const sextant_table& table, const auto& map) {
      if (table.rows && map.empty() && batch > 0)
        fail(std::string("decode plan: terms.") + name + ".rows: expected NULL, as the options " +
             "have none, but got a map");
    });
    Operands<float> operands = {.q = c::operand_of(a.q, "q"),
                                .scale = c::scale_of(a.scale, a.q.columns)};
    c::refuse_axes(terms, "decode plan");
    c::set_terms(terms, 0, operands);
    const c::Use own(cache);
    decoding.attend(*own, operands, c::results_of(a.q, {}, {}, out, own_lse, lse), &runs);
  }
};

sextant_status sextant_decode_plan_create(const sextant_cache* cache,
                                          const sextant_decode_plan_options* options,
                                          sextant_decode_plan** plan) {
  return guarded([&] {
    const sextant_decode_plan_options o = c::read(options, "decode_plan_options");
    const sextant_terms terms = c::read_or_none(o.terms, "terms");
    const auto expect_between = [](const char* name, int64_t got, int64_t low, int64_t high) {
      if (got < low || got > high)
        fail(std::string("decode plan: ") + name + ": expected " + std::to_string(low) + " to " +
             std::to_string(high) + ", but got " + std::to_string(got));
    };
    constexpr int64_t kMany = 1 << 20;
    expect_between("count", o.count, 0, kMany);
    expect_between("heads", o.heads, 1, kMany);
    expect_between("queries", o.queries, 1, kMany);
    expect_between("most_rows", o.most_rows, o.queries, kFarthestPosition);
    expect_between("window", o.window, 0, std::numeric_limits<int64_t>::max());
    expect_between("threads", o.threads, 0, kMostThreads);
    sextant_decode_plan*& to = need(plan, "plan");
    to = new sextant_decode_plan(*c::Use(cache), o, terms);
  });
}

void sextant_decode_plan_destroy(sextant_decode_plan* plan) { c::destroy(plan, "plan"); }

sextant_status sextant_decode_plan_step(sextant_decode_plan* plan, const sextant_cache* cache,
                                        const int64_t* queries) {
  return guarded([&] {
    sextant_decode_plan& own = need(plan, "plan");
    const c::OneCall use(own.in_use, "decode plan");
    const auto counts = static_cast<size_t>(queries ? own.batch : 0);
    own.decoding.step(*c::Use(cache), {queries, counts});
  });
}

sextant_status sextant_decode_plan_attend(sextant_decode_plan* plan, const sextant_cache* cache,
                                          const sextant_decode_plan_call* call,
                                          const sextant_array* out, const sextant_array* lse) {
  return guarded([&] {
    sextant_decode_plan& own = need(plan, "plan");
    own.attend(cache, call, out, lse, own.executor);
  });
}

sextant_status sextant_decode_plan_attend_share(sextant_decode_plan* plan,
                                                const sextant_cache* cache,
                                                const sextant_decode_plan_call* call,
                                                const sextant_array* out, const sextant_array* lse,
                                                int ith, int nth) {
  return guarded([&] {
    sextant_decode_plan& own = need(plan, "plan");
    const auto attend = [&](const Executor& executor) {
      own.attend(cache, call, out, lse, executor);
    };
    own.joint.run(ith, nth, std::cref(attend));
  });
}
