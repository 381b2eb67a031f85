#include "sextant/sextant_config.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "sextant/c/guard.h"
#include "sextant/c/handles.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/explain_json.h"
#include "sextant/rope_config/read_config.h"
#include "sextant/rope_config/write_config.h"

using namespace sextant;
using sextant::c::guarded;
using sextant::c::need;

namespace {

// The configuration of a layer, from groups of layers that may all list their layers.
const RopeConfig& config_of_layer(const std::vector<RopeConfig>& groups, int64_t layer) {
  for (const RopeConfig& group : groups)
    if (std::ranges::find(group.layer_numbers, layer) != group.layer_numbers.end()) return group;
  const bool numbered = std::ranges::any_of(
      groups, [](const RopeConfig& group) { return !group.layer_numbers.empty(); });
  if (groups.size() == 1 && !numbered && layer >= 0) return groups.front();
  fail("config: layer: expected one that the configuration describes, but got " +
       std::to_string(layer));
}

ReadRopeConfig read_bytes(const char* config, size_t bytes, int64_t length = 0) {
  return read_rope_config_bytes(std::string(&need(config, "config"), bytes), {.length = length});
}

void expect_length(int64_t length, int64_t least) {
  if (length < least || length > kLongestSequence)
    fail("config: length: expected " + std::to_string(least) + " to 2^40 tokens, but got " +
         std::to_string(length));
}

void give_text(const std::string& text, char** json) {
  char*& to = need(json, "json");
  char* copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  to = copy;
}

}  // namespace

sextant_status sextant_rope_create_from_config(const char* config, size_t bytes, int64_t layer,
                                               int64_t length, sextant_rope** rope, double* scale) {
  return guarded([&] {
    expect_length(length, 1);
    const ReadRopeConfig read = read_bytes(config, bytes);
    const RopeConfig& group = config_of_layer(read.configs, layer);
    if (!group.rotates)
      fail("config: layer: expected a layer that rotates, but layer " + std::to_string(layer) +
           " does not");
    c::give_rope(rope, spectrum_of(group, length));
    if (scale) *scale = group.scaling.score_factor * plain_scale(group);
  });
}

sextant_status sextant_explain_json(const char* config, size_t bytes, int64_t length, char** json) {
  return guarded([&] {
    expect_length(length, 0);
    give_text(explain_json(read_bytes(config, bytes, length)), json);
  });
}

sextant_status sextant_convert_json(const char* config, size_t bytes, const char* to, char** json) {
  return guarded([&] {
    constexpr std::array<std::string_view, 4> kFormats = {"hf5", "hf4", "llama.cpp", "vllm"};
    const std::string format = &need(to, "to");
    if (std::ranges::find(kFormats, format) == kFormats.end())
      fail("config: to: expected hf5, hf4, llama.cpp or vllm, but got " + format);
    std::vector<std::string> warnings;
    const std::string written = write_rope_config(read_bytes(config, bytes), format, warnings);
    give_text(nlohmann::json({{"to", format}, {"written", written}, {"warnings", warnings}})
                  .dump(1, ' ', false, nlohmann::json::error_handler_t::replace),
              json);
  });
}

void sextant_free(char* text) { delete[] text; }
