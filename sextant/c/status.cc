#include <string>

#include "sextant/c/guard.h"
#include "sextant/c/handles.h"

namespace sextant::c {
namespace {

std::string& message_of_thread() {
  static thread_local std::string message;
  return message;
}

}  // namespace

const Executor& executor_of(const sextant_pool* pool) {
  return pool ? *pool->executor : serial_executor();
}

}  // namespace sextant::c

using sextant::c::give;
using sextant::c::guarded;

const char* sextant_error() { return sextant::c::message_of_thread().c_str(); }

sextant_status sextant_fail(sextant_status status, const char* message) {
  std::string& kept = sextant::c::message_of_thread();
  try {
    kept = message ? message : "";
  } catch (...) {
    kept.clear();
  }
  return status;
}

const char* sextant_version() { return sextant::version().data(); }

sextant_status sextant_pool_create(int threads, sextant_pool** pool) {
  return guarded([&] { give(pool, "pool", sextant::make_thread_pool(threads)); });
}

void sextant_pool_destroy(sextant_pool* pool) { delete pool; }
