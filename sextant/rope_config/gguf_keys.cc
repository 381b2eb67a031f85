// Each request notes its key. finish() lists keys about positions that were never requested.
#include "sextant/rope_config/gguf_keys.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/rope_config/families/llama_cpp.h"
#include "sextant/rope_config/rope_config.h"

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

using nlohmann::json;

namespace {

// GGUF files beside a model's, by general.type (gguf-py/gguf/constants.py, read at 0c1e57098).
struct OtherFile {
  const char *type, *is;
};
constexpr OtherFile kOtherFiles[] = {{"mmproj", "an encoder of images or audio (mmproj)"},
                                     {"adapter", "a LoRA adapter"},
                                     {"imatrix", "an importance matrix (imatrix)"}};

}  // namespace

GgufKeys::GgufKeys(const Gguf& gguf)
    : gguf_(gguf), arch_(text("general.architecture").value_or("")) {
  const std::string type = arch_ == "clip" ? "mmproj" : text("general.type").value_or("");
  for (const OtherFile& other : kOtherFiles) {
    if (type != other.type) continue;
    bad("general.type", "a language model, but this file is " + std::string(other.is) +
                            "; the model's own GGUF file has its positions");
  }
  if (arch_.empty()) bad("general.architecture", "the name of an architecture");
}

void GgufKeys::bad(const std::string& key, const std::string& expected) {
  fail("gguf: " + key + ": expected " + expected);
}

std::optional<std::string> GgufKeys::text(const std::string& key) {
  const GgufValue* value = find(key);
  if (!value) return {};
  if (!std::holds_alternative<std::string>(*value)) bad(key, "a text");
  return std::get<std::string>(*value);
}

std::optional<bool> GgufKeys::flag(const std::string& key) {
  const GgufValue* value = find(key);
  if (!value) return {};
  if (!std::holds_alternative<bool>(*value)) bad(key, "true or false");
  return std::get<bool>(*value);
}

std::optional<double> GgufKeys::number(const std::string& key, double low, double high) {
  const GgufValue* value = find(key);
  if (!value) return {};
  double got = NAN;
  if (const auto* real = std::get_if<double>(value)) got = *real;
  if (const auto* whole = std::get_if<uint64_t>(value)) got = static_cast<double>(*whole);
  if (const auto* whole = std::get_if<int64_t>(value)) got = static_cast<double>(*whole);
  if (!(got >= low && got <= high)) {
    bad(key, "a number from " + json(low).dump() + " to " + json(high).dump() + ", but got " +
                 json(got).dump());
  }
  return got;
}

int64_t GgufKeys::length(const std::string& key) {
  const GgufValue* value = find(key);
  const auto* array = value ? std::get_if<GgufArray>(value) : nullptr;
  if (!array) {
    return static_cast<int64_t>(number(key, 0, static_cast<double>(kLongestSequence)).value_or(0));
  }
  const std::vector<int64_t> all = integers(key);
  const auto first = std::ranges::find_if(all, [](int64_t x) { return x > 0; });
  return first == all.end() ? 0 : *first;
}

std::vector<int64_t> GgufKeys::integers(const std::string& key) {
  const GgufValue* value = find(key);
  if (!value) return {};
  if (!std::holds_alternative<GgufArray>(*value)) {
    return {static_cast<int64_t>(*number(key, 0, 65536))};
  }
  const auto& array = std::get<GgufArray>(*value);
  if (array.numbers.size() != array.count) bad(key, "an array of at most 65536 numbers");
  std::vector<int64_t> result;
  for (const double x : array.numbers) {
    if (!(x >= 0 && x <= 65536 && x == std::floor(x))) bad(key, "whole numbers from 0 to 65536");
    result.push_back(static_cast<int64_t>(x));
  }
  return result;
}

bool GgufKeys::is_about_positions(const std::string& key) const {
  if (key.starts_with(arch_ + ".rope.")) return true;
  if (!key.starts_with(arch_ + ".attention.")) return false;
  const std::string rest = key.substr(arch_.size() + 11);
  // Keys of an indexer, and of the attention's output.
  if (rest.starts_with("indexer.") || rest == "output_scale" || rest == "value_scale") return false;
  for (const char* word : {"temperature", "sliding_window", "key_length", "rope"}) {
    if (rest.find(word) != std::string::npos) return true;
  }
  return rest == "scale" || rest.ends_with("_scale");
}

void GgufKeys::finish() const {
  std::string unknown;
  for (const auto& [key, value] : gguf_.metadata) {
    if (!is_about_positions(key) || seen_.contains(key)) continue;
    if (!unknown.empty()) unknown += ", ";
    unknown += json(key).dump(-1, ' ', true, json::error_handler_t::replace);
  }
  if (unknown.empty()) return;
  fail("gguf: " + unknown +
       ": expected no key about rotary positions that sextant does not know, but got one");
}

const GgufValue* GgufKeys::find(const std::string& key) {
  seen_.insert(key);
  const auto found = gguf_.metadata.find(key);
  return found == gguf_.metadata.end() ? nullptr : &found->second;
}

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
