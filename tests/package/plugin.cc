// A library with one function, into which the static core is linked.
#include <vector>

#include "sextant/attention/attend.h"
#include "sextant/attention/layouts.h"
#include "sextant/base/error.h"
#include "sextant/version.h"

extern "C" __attribute__((visibility("default"))) const char* plugin_version() {
  try {
    const sextant::OwnedPlan layout = sextant::causal({.queries = 1, .keys = 1});
    sextant::attend<float>({{}, layout.plan()}, {}, sextant::cpu_backend());
  } catch (const sextant::Error&) {
    return sextant::version().data();
  }
  return "";
}
