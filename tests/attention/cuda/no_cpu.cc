// The CPU backends of a build without Highway, which is not on every machine with a GPU: they serve
// no type. scripts/build_cuda.sh compiles this file in place of sextant/attention/cpu/.
#include "sextant/attention/attend.h"

namespace sextant {
namespace {

constexpr std::string_view kWhy = "not in this build";

}  // namespace

const Backend& cpu_backend() {
  static const Backend backend = {.name = "cpu", .description = kWhy};
  return backend;
}
const Backend& cpu_bfloat16_backend() {
  static const Backend backend = {.name = "cpu-bf16", .description = kWhy};
  return backend;
}
const Backend& cpu_bf16x3_backend() {
  static const Backend backend = {.name = "cpu-bf16x3", .description = kWhy};
  return backend;
}
bool multiplies_bfloat16() { return false; }
bool multiplies_by_amx() { return false; }

}  // namespace sextant
