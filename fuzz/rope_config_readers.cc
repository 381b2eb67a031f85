#include "fuzz/rope_config_readers.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "fuzz/rope_config_samples.h"
#include "sextant/base/error.h"
#include "sextant/files/gguf.h"
#include "sextant/files/yaml.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/families/expression.h"
#include "sextant/rope_config/families/family.h"
#include "sextant/rope_config/layers.h"
#include "sextant/rope_config/parameters.h"
#include "sextant/rope_config/read_config.h"
#include "sextant/rope_config/write_config.h"

namespace sextant::fuzz {
namespace {

using nlohmann::json;

// A wrong result throws another exception than Error, so that it ends the run.
void must(bool holds, const std::string& what) {
  if (!holds) throw std::logic_error(what);
}

void read_gguf(const std::string& bytes) { parse_gguf(bytes); }

void explain_all(const ReadRopeConfig& read) {
  must(!read.configs.empty(), "a configuration was read as no layers");
  for (const RopeConfig& rope : read.configs) {
    for (const int64_t length : {0, 8192}) {
      const Explained explained = explain(rope, length);
      must(std::isfinite(explained.rotated_scale), "scores are scaled by no number");
      for (const PairExplained& pair : explained.pairs) {
        must(std::isfinite(pair.stretched) && pair.leaves >= 0, "a pair has no frequency");
      }
    }
  }
}

// Does what `sextant explain` does with a file.
void explain_bytes(const std::string& bytes) { explain_all(read_rope_config_bytes(bytes, {})); }

// Flags do not contain the size of heads.
constexpr Overrides kBesideFlags = {.base = 10000, .head_dim = 8};

void explain_flags(const std::string& bytes) {
  explain_all(read_rope_config_bytes(bytes, kBesideFlags, read_yaml));
}

// Does what `sextant convert` does with a file, in each dialect. A dialect that cannot express the
// configurations throws an Error; the output of the others is parsed again.
void convert_bytes(const std::string& bytes) {
  Overrides overrides;
  if (!bytes.starts_with("{") && !bytes.starts_with("GGUF")) overrides = kBesideFlags;
  const ReadRopeConfig read = read_rope_config_bytes(bytes, overrides, read_yaml);
  constexpr std::array kDialects = {"hf5", "hf4", "gguf", "llama.cpp", "vllm"};
  for (const char* to : kDialects) {
    std::string written;
    try {
      written = write_rope_config(read, to);
    } catch (const Error&) {
      continue;
    }
    const RopeConfig first = distinct_rotations(read.configs).at(0);
    try {
      read_rope_config_bytes(written, {.base = first.base, .head_dim = first.head_dim});
    } catch (const Error& error) {
      must(false, std::string(to) + " cannot be read again: " + error.what() + "\n" + written);
    }
  }
}

std::vector<std::string> samples_of_all() {
  std::vector<std::string> all = config_samples();
  const std::vector<std::string> flags = flag_samples();
  all.insert(all.end(), flags.begin(), flags.end());
  return all;
}

// The layers of almost empty configurations, for each family of a table.
void read_families(const std::string& bytes) {
  const json configs[] = {
      json::object(),
      {{"layer_types", {"sliding_attention", "full_attention", "mlp"}}, {"rope_interleave", true}}};
  for (const Family& family : parse_families(bytes)) {
    for (const json& config : configs) {
      ModelFields fields(config, &family, {}, "config.json");
      std::vector<std::string> missing;
      layer_groups(fields, rope_parameters(fields), missing);
    }
  }
}

json value_of(const std::string& name) {
  static const json values = {{"i", 5},
                              {"n", 8},
                              {"kind", "sliding_attention"},
                              {"number", 1e300},
                              {"interval", 0},
                              {"nested", true},
                              {"list", {1, 0, 3, "x", nullptr, 1.5}},
                              {"by_layer", {{"05", {{"head_dim", 512}}}, {"6", nullptr}}},
                              {"object", {{"a", {{"b", 2}}}}}};
  return values.value(name, json());
}

// Text with a value is a valid expression, and its numbers are finite.
void read_expression(const std::string& text) {
  const json value = evaluate(text, value_of);
  must(!value.is_number() || std::isfinite(value.get<double>()), "an expression is no number");
  is_true(value);
  try {
    check_expression(text);
  } catch (const Error& error) {
    must(false, std::string("it has a value and is refused: ") + error.what());
  }
}

constexpr Reader kReaders[] = {
    {"gguf", read_gguf, gguf_samples},
    {"rope-config", explain_bytes, config_samples},
    {"flags", explain_flags, flag_samples},
    {"convert", convert_bytes, samples_of_all},
    {"families", read_families, family_samples},
    {"expression", read_expression, expression_samples},
};

}  // namespace

std::span<const Reader> rope_config_readers() { return kReaders; }

}  // namespace sextant::fuzz
