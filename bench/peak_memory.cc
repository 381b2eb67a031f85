#include "bench/peak_memory.h"

#include <malloc.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace sextant::bench {
namespace {

// A line of /proc/self/status such as "VmHWM:    1234 kB", in bytes.
std::optional<int64_t> status(const std::string& field) {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;) {
    if (word != field + ":") continue;
    if (int64_t kilobytes = 0; in >> kilobytes) return kilobytes * 1024;
  }
  return std::nullopt;
}

bool reset_peak() {
  std::ofstream out("/proc/self/clear_refs");
  out << "5" << std::flush;  // see proc(5)
  return static_cast<bool>(out);
}

}  // namespace

std::optional<int64_t> peak_memory(const std::function<void()>& work) {
  malloc_trim(0);
  if (!reset_peak()) return std::nullopt;
  const auto before = status("VmRSS");
  work();
  const auto peak = status("VmHWM");
  if (!before || !peak) return std::nullopt;
  return std::max<int64_t>(*peak - *before, 0);
}

}  // namespace sextant::bench
