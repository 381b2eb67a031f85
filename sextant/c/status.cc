// Errors, structs with a size, and pools. Messages of the core name members of its C++ structs;
// in_c() names those of C's instead.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <string>
#include <string_view>

#include "sextant/c/guard.h"
#include "sextant/c/handles.h"

namespace sextant::c {
namespace {

std::string& message_of_thread() {
  static thread_local std::string message;
  return message;
}

// The beginning of a field of attention in C++, the member in C, and text after the field's name.
struct Member {
  std::string_view cpp, c, after = "";
};
constexpr std::array kMembers = {Member{"row_at.", "terms.", ".rows"},
                                 Member{"weight.", "terms.weight.table."},
                                 Member{"bias.", "terms.bias.table."},
                                 Member{"on_query.", "terms.on_query.table."},
                                 Member{"on_key.", "terms.on_key.table."},
                                 Member{"on_value.", "terms.on_value.table."},
                                 Member{"on_key:", "terms.on_key.table:"},
                                 Member{"query_bias", "terms.query_bias"},
                                 Member{"axis_bias", "terms.axis_bias"},
                                 Member{"axis_on_query", "terms.axis_on_query"},
                                 Member{"table_query", "terms.table_query"},
                                 Member{"query_sink", "terms.query_sink"},
                                 Member{"axes", "terms.axes"},
                                 Member{"key_bias", "terms.key_bias"},
                                 Member{"mask", "terms.mask"},
                                 Member{"softcap", "terms.softcap"},
                                 Member{"sink", "terms.sink"},
                                 Member{"frames", "layout.frames"},
                                 Member{"sweeps", "layout.sweeps"},
                                 Member{"diagonals", "layout.diagonals"},
                                 Member{"pages.at", "layout.pages"},
                                 Member{"pages:", "layout.pages:"},
                                 Member{"pages.rows", "layout.keys"},
                                 Member{"counts", "queries"}};

// Runs tasks on the threads of a caller.
class CallersThreads final : public Executor {
 public:
  explicit CallersThreads(const sextant_threads& threads) : threads_(threads) {}
  int workers() const override { return threads_.workers; }

  void run(int64_t tasks, const std::function<void(int64_t, int)>& task) const override {
    Job job = {.task = &task, .tasks = tasks, .workers = threads_.workers};
    if (tasks > 0) threads_.run(threads_.user, tasks, &CallersThreads::run_task, &job);
    if (job.error) std::rethrow_exception(job.error);
    if (job.done != tasks)
      fail("threads: run: expected " + std::to_string(tasks) + " calls of task, but got " +
           std::to_string(job.done));
  }

 private:
  struct Job {
    const std::function<void(int64_t, int)>* task;
    int64_t tasks;
    int workers;
    std::atomic<int64_t> done = 0;
    std::mutex errors = {};
    std::exception_ptr error = {};
  };

  static void run_task(void* state, int64_t index, int worker) {
    Job& job = *static_cast<Job*>(state);
    try {
      if (index < 0 || index >= job.tasks || worker < 0 || worker >= job.workers)
        fail("threads: run: expected an index below " + std::to_string(job.tasks) +
             " and a worker below " + std::to_string(job.workers) + ", but got " +
             std::to_string(index) + " and " + std::to_string(worker));
      (*job.task)(index, worker);
    } catch (...) {
      const std::lock_guard lock(job.errors);
      if (!job.error) job.error = std::current_exception();
    }
    ++job.done;
  }

  sextant_threads threads_;
};

// The message of an Error of the core with the names of members in C.
std::string in_c(std::string message) {
  for (const std::string_view of : {"attention: ", "kv cache: decoding: ", "kv cache: "}) {
    if (!message.starts_with(of)) continue;
    for (const Member& member : kMembers)
      if (std::string_view(message).substr(of.size()).starts_with(member.cpp)) {
        const size_t end = message.find(": ", of.size());
        if (end != std::string::npos) message.insert(end, member.after);
        message.replace(of.size(), member.cpp.size(), member.c);
        break;
      }
  }
  return message;
}

}  // namespace

void read_struct(const void* from, size_t bytes, const char* name, void* to) {
  size_t size;
  std::memcpy(&size, &need(static_cast<const std::byte*>(from), name), sizeof size);
  if (size < bytes)
    fail(std::string(name) + ".size: expected sizeof(sextant_" + name + "), " +
         std::to_string(bytes) + " in version " + sextant_version() + ", but got " +
         std::to_string(size));
  constexpr size_t kMost = 1 << 12;  // more than any struct will have
  const auto* const rest = static_cast<const std::byte*>(from);
  if (size > kMost ||
      std::any_of(rest + bytes, rest + size, [](auto b) { return b != std::byte{}; }))
    fail(std::string(name) + ".size: expected zero in members that version " + sextant_version() +
         " does not have, beyond its " + std::to_string(bytes) + " bytes, but got a struct of " +
         std::to_string(size) + " bytes with others");
  std::memcpy(to, from, bytes);
}

const Executor& executor_of(const sextant_pool* pool) {
  return pool ? *need(pool, "pool").executor : serial_executor();
}

}  // namespace sextant::c

using sextant::c::give;
using sextant::c::guarded;

const char* sextant_error() { return sextant::c::message_of_thread().c_str(); }

sextant_status sextant_fail(sextant_status status, const char* message) {
  std::string& kept = sextant::c::message_of_thread();
  try {
    kept = message ? message : "";
    if (status == SEXTANT_BAD_ARGUMENT) kept = sextant::c::in_c(kept);
  } catch (...) {
    kept.clear();
  }
  return status;
}

const char* sextant_version() { return sextant::version().data(); }

sextant_status sextant_pool_create(int threads, sextant_pool** pool) {
  return guarded([&] { give(pool, "pool", sextant::make_thread_pool(threads)); });
}

sextant_status sextant_pool_create_from(const sextant_threads* threads, sextant_pool** pool) {
  return guarded([&] {
    const sextant_threads own = sextant::c::read(threads, "threads");
    if (!own.run) sextant::fail("threads: run: expected a function, but got NULL");
    if (own.workers < 1 || own.workers > sextant::kMostThreads)
      sextant::fail("threads: workers: expected 1 to " + std::to_string(sextant::kMostThreads) +
                    ", but got " + std::to_string(own.workers));
    give(pool, "pool", std::make_unique<sextant::c::CallersThreads>(own));
  });
}

void sextant_pool_destroy(sextant_pool* pool) { sextant::c::destroy(pool, "pool"); }
