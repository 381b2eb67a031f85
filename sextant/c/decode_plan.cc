#include "sextant/c/guard.h"
#include "sextant/c/handles.h"
#include "sextant/cache/decoding.h"

using namespace sextant;
using sextant::c::guarded;
using sextant::c::need;

struct sextant_decode_plan {
  // The rotation that the entries of `decoding` point to; null: none.
  std::shared_ptr<const Rotation> rotation;
  std::vector<int32_t> bias_rows;
  std::vector<float> lse;  // where the caller wants none
  int64_t batch, heads, queries;
  Decoding decoding;
  c::Tag<sextant_decode_plan> tag;

  sextant_decode_plan(const KvCache& cache, const sextant_decode_plan_options& o)
      : rotation(o.rope ? need(o.rope, "rope").rotation : nullptr),
        bias_rows(o.bias_rows ? std::vector<int32_t>(o.bias_rows, o.bias_rows + o.most_rows)
                              : std::vector<int32_t>()),
        batch(o.count),
        heads(o.heads),
        queries(o.queries),
        decoding(cache, entries(o), {.heads = heads, .queries = queries, .most_rows = o.most_rows},
                 {.bias = bias_rows}, cpu_backend(), c::executor_of(o.pool)) {
    lse.resize(static_cast<size_t>(batch * heads * queries));
  }

  std::vector<CachedBatch::Entry> entries(const sextant_decode_plan_options& o) const {
    std::vector<CachedBatch::Entry> all;
    for (int64_t b = 0; b < o.count; ++b)
      all.push_back({(&need(o.sequences, "decode plan: sequences"))[b], rotation.get()});
    return all;
  }
};

sextant_status sextant_decode_plan_create(const sextant_cache* cache,
                                          const sextant_decode_plan_options* options,
                                          sextant_decode_plan** plan) {
  return guarded([&] {
    const sextant_decode_plan_options o = c::read(options, "decode_plan_options");
    if (o.count < 0)
      fail("decode plan: count: expected at least 0, but got " + std::to_string(o.count));
    if (o.bias_rows && o.most_rows < 0)
      fail("decode plan: most_rows: expected at least 0, but got " + std::to_string(o.most_rows));
    sextant_decode_plan*& to = need(plan, "plan");
    to = new sextant_decode_plan(need(cache, "cache").cache, o);
  });
}

void sextant_decode_plan_destroy(sextant_decode_plan* plan) { c::destroy(plan, "plan"); }

sextant_status sextant_decode_plan_step(sextant_decode_plan* plan, const sextant_cache* cache) {
  return guarded([&] { need(plan, "plan").decoding.step(need(cache, "cache").cache); });
}

sextant_status sextant_decode_plan_attend(sextant_decode_plan* plan, const sextant_cache* cache,
                                          const sextant_decode_plan_call* call,
                                          const sextant_array* out, const sextant_array* lse) {
  return guarded([&] {
    sextant_decode_plan& d = need(plan, "plan");
    const sextant_decode_plan_call a = c::read(call, "decode_plan_call");
    const sextant_terms terms = c::read_or_none(a.terms, "terms");
    Operands<float> operands = {.q = c::operand_of(a.q, "q"),
                                .scale = c::scale_of(a.scale, a.q.columns)};
    c::set_terms(terms, 0, operands);
    const Attended<float> result = {
        .out = c::output_of(need(out, "out"), "out"),
        .lse = lse ? c::as_float(c::output_of(*lse, "lse"), "lse")
                   : contiguous(d.lse.data(), {d.batch, d.heads, d.queries, 1})};
    d.decoding.attend(need(cache, "cache").cache, operands, result);
  });
}
