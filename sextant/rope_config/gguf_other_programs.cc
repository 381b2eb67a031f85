#include "sextant/rope_config/gguf_other_programs.h"

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/rope_config/families/llama_cpp.h"

namespace sextant {
namespace {

std::string keys_of(const GgufKeys& keys, const OtherProgram& program) {
  std::string found;
  for (const std::string& key : program.keys) {
    if (!keys.has(keys.own(key))) continue;
    found += (found.empty() ? "" : ", ") + keys.own(key);
  }
  return found;
}

}  // namespace

void refuse_other_programs(GgufKeys& keys, double base) {
  for (const OtherProgram& program : other_programs()) {
    const std::string found = keys_of(keys, program);
    const auto named = program.architectures.find(keys.arch());
    if (named != program.architectures.end()) {
      fail("gguf: general.architecture: expected an architecture of llama.cpp, but got \"" +
           keys.arch() + "\", a type of model that " + program.name + " writes for its own engine" +
           (named->second.empty() ? "" : " (" + named->second + " in llama.cpp)") +
           (found.empty() ? "" : ", with keys of its own (" + found + ")") + ": " + program.advice);
    }
    if (!found.empty()) {
      GgufKeys::bad(found, "keys of llama.cpp, but got keys that " + program.name +
                               " writes for its own engine, and llama.cpp would compute other "
                               "positions: " +
                               program.advice);
    }
    const auto taken = program.bases.find(keys.arch());
    if (base > 0 || taken == program.bases.end() || keys.has(keys.own("rope.freq_base"))) continue;
    GgufKeys::bad(keys.own("rope.freq_base"),
                  "the base of the frequencies, which llama.cpp's converter always writes for " +
                      keys.arch() + ", but it is missing: in such a file of its own " +
                      program.name + " takes " + nlohmann::json(taken->second).dump() +
                      ", and llama.cpp would take 10000: give --base, or " +
                      program.advice.substr(5));
  }
}

}  // namespace sextant
