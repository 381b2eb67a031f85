// A single call is a plan that is used once.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/attention/check_score.h"
#include "sextant/base/joint_call.h"
#include "sextant/c/call_layout.h"
#include "sextant/c/guard.h"
#include "sextant/c/handles.h"

using namespace sextant;
using sextant::c::guarded;
using sextant::c::need;

namespace {

// A call as its caller describes it.
struct Call {
  sextant_attention attention;
  sextant_terms terms;

  explicit Call(const sextant_attention* from)
      : attention(c::read(from, "attention")), terms(c::read_or_none(attention.terms, "terms")) {}
};

struct Results {
  const sextant_array *out, *lse;
};

// The data of a call.
Operands<float> operands_of(const Call& call, int64_t keys) {
  const sextant_attention& a = call.attention;
  Operands<float> o = {.q = c::operand_of(a.q, "q"),
                       .k = c::operand_of(a.k, "k"),
                       .v = c::operand_of(a.v, "v"),
                       .scale = c::scale_of(a.scale, a.q.columns)};
  c::set_terms(call.terms, keys, o);
  return o;
}

// Checks q, k, v and out against each other, before memory is spent on a plan for them.
void check_shapes(const Operands<float>& operands, const Plan& plan, const AnyView<float>& out) {
  check_qkv(operands, plan);
  check_out<float>(operands, out);
}

// The shape of a call whose arrays need no data.
PlanShape shape_of(const sextant_attention& a, const sextant_terms& terms, const Plan& plan) {
  // check_qkv() wants data where there are elements, and reads none.
  float unread = 0;
  const auto shape_only = [&](const sextant_array& array, const char* name) {
    AnyView<float> view = c::view_of(array, name);
    if (!view) view.data = &unread;
    return view;
  };
  Operands<float> o = {.q = shape_only(a.q, "q"),
                       .k = shape_only(a.k, "k"),
                       .v = shape_only(a.v, "v"),
                       .scale = c::scale_of(a.scale, a.q.columns)};
  if (!c::is_absent(terms.on_key.table)) o.on_key = contiguous(&unread, {});
  check_qkv(o, plan);
  return sextant::shape_of(o, plan);
}

// The threads among which the work of a plan is divided.
int threads_of(const Call& call) {
  const int threads = call.attention.threads;
  if (threads < 0 || threads > kMostThreads)
    fail("attention: threads: expected 0 to " + std::to_string(kMostThreads) + ", but got " +
         std::to_string(threads));
  return threads == 0 ? 1 : threads;
}

const Backend& host_backend(const char* name) {
  const Backend& chosen = name ? backend(name) : cpu_backend();
  if (chosen.device != Device::kHost)
    fail("plan: backend: expected one with arrays in host memory, but got \"" +
         std::string(chosen.name) + "\"");
  return chosen;
}

}  // namespace

struct sextant_plan {
  explicit sextant_plan(const Backend& on) : backend(on) {}

  void set(const Call& call, const Executor& executor) {
    ready = false;
    layout.set(call.attention, call.terms);
    const PlanShape shape = ::shape_of(call.attention, call.terms, layout.plan());
    if (prepared)
      prepared->renew(layout.plan(), shape, executor);
    else
      prepared.emplace(layout.plan(), shape, backend, executor, Passes::kForward);
    ready = true;
  }

  void attend(const Call& call, const Results& to, const Executor& executor) {
    if (!ready) fail("plan: expected a sextant_plan_renew() that succeeds before a call");
    const c::OneCall use(in_use, "plan");
    const sextant_attention& a = call.attention;
    layout.check_call(a, call.terms);
    const Operands<float> operands = operands_of(call, prepared->shape().keys);
    const Attended<float> result = c::results_of(a.q, a.k, a.v, to.out, to.lse, lse);
    check_shapes(operands, layout.plan(), result.out);
    Context context(executor);
    context.workspace = &memory;
    sextant::attend<float>(operands, *prepared, result, context);
  }

  const Backend& backend;
  c::CallLayout layout;
  std::optional<PreparedPlan> prepared;
  Workspace memory;
  std::vector<float> lse;
  JointCall joint;
  std::atomic<bool> in_use = false;
  bool ready = false;
  c::Tag<sextant_plan> tag;
};

sextant_status sextant_attention_diagonals(const sextant_attention* attention, int64_t* farthest,
                                           int64_t* count) {
  return guarded([&] {
    const sextant_attention a = c::read(attention, "attention");
    c::view_of(a.q, "q"), c::view_of(a.k, "k");  // their sizes are valid
    const Diagonals diagonals = c::diagonals_of(a);
    int64_t& to = need(count, "count");
    need(farthest, "farthest") = diagonals.farthest;
    to = diagonals.count;
  });
}

sextant_status sextant_attend(const sextant_attention* attention, const sextant_array* out,
                              const sextant_array* lse, const sextant_pool* pool) {
  return guarded([&] {
    const Call call(attention);
    const Executor& executor = c::executor_of(pool);
    const sextant_layout* layout = call.attention.layout;
    const bool paged = layout && c::read(layout, "layout").pages;
    const Operands<float> o = operands_of(call, call.attention.k.rows);
    const Plan pages = {.pages = {.at = paged ? layout->pages : nullptr}};
    check_shapes(o, pages, c::output_of(need(out, "out"), "out"));
    sextant_plan plan(cpu_backend());
    plan.set(call, executor);
    plan.attend(call, {out, lse}, executor);
  });
}

sextant_status sextant_plan_create(const sextant_attention* attention, const char* backend,
                                   sextant_plan** plan) {
  return guarded([&] {
    sextant_plan*& to = need(plan, "plan");
    auto made = std::make_unique<sextant_plan>(host_backend(backend));
    const Call call(attention);
    made->set(call, c::PlanningFor(threads_of(call)));
    to = made.release();
  });
}

void sextant_plan_destroy(sextant_plan* plan) { c::destroy(plan, "plan"); }

sextant_status sextant_plan_renew(sextant_plan* plan, const sextant_attention* attention) {
  return guarded([&] {
    const Call call(attention);
    need(plan, "plan").set(call, c::PlanningFor(threads_of(call)));
  });
}

sextant_status sextant_plan_attend(sextant_plan* plan, const sextant_attention* attention,
                                   const sextant_array* out, const sextant_array* lse,
                                   const sextant_pool* pool) {
  return guarded([&] {
    need(plan, "plan").attend(Call(attention), {out, lse}, c::executor_of(pool));
  });
}

sextant_status sextant_plan_attend_share(sextant_plan* plan, const sextant_attention* attention,
                                         const sextant_array* out, const sextant_array* lse,
                                         int ith, int nth) {
  return guarded([&] {
    sextant_plan& own = need(plan, "plan");
    const auto attend = [&](const Executor& executor) {
      own.attend(Call(attention), {out, lse}, executor);
    };
    own.joint.run(ith, nth, std::cref(attend));
  });
}
