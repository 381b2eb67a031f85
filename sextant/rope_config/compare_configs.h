// The differences in position between two configurations, layer by layer, and what llama.cpp does
// otherwise than a GGUF file says.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sextant/rope_config/read_config.h"

namespace sextant {

// One difference, for all layers that have it.
struct ConfigFinding {
  std::vector<int64_t> layers;  // numbers from 0; empty: all, or all of `kind`
  std::string kind;             // RopeConfig::layers, if layers were compared by kind; or empty
  // "rotates", "positions", "rotated channels", "pairing", "frequencies", "attention factor",
  // "softmax scale", "window", "chunk", "query law", "layers" or "configuration".
  std::string field;
  std::string expected, got;  // values of the first and of the second configuration
  std::string cause;          // a sentence; empty: not known
  bool warning = false;       // the configuration is doubtful; otherwise positions differ
};

// A quantity that could not be compared. layers: as in ConfigFinding.
struct Unjudged {
  std::vector<int64_t> layers;
  std::string what, why;
};

struct ConfigComparison {
  std::vector<ConfigFinding> findings;
  std::vector<std::string> notes;  // differences that change no position, as the order of pairs
  std::vector<Unjudged> unjudged;
};

// Adds a finding or a reason of one layer, or of all if it has no number. Entries that differ in
// their layers only become one.
void add_finding(ConfigComparison& to, const ConfigFinding& finding, std::optional<int64_t> layer);
void add_unjudged(ConfigComparison& to, const std::string& what, const std::string& why,
                  std::optional<int64_t> layer);

// "4096 keys", "64 keys to each side" (a window of 65) or "all keys"; "chunks of 8192" or "no
// chunks".
std::string window_words(int64_t window, bool both_sides = false);
std::string chunk_words(int64_t chunk);

// Compares each layer of `b` with the same layer of `a`, or, if one of them does not number its
// layers, each kind of layers with the kind of that name. Numbers that differ by rounding to
// float32 are equal. Stretches that depend on the length are compared at the original length L and
// beyond it: at L + 1, 2 L and factor x L.
ConfigComparison compare_configs(const ReadRopeConfig& a, const ReadRopeConfig& b);

// Adds the differences of the vision parts of two files, and the doubts about those of one file.
void compare_vision(const ReadRopeConfig& a, const ReadRopeConfig& b, ConfigComparison& to);
void check_vision(const ReadRopeConfig& read, ConfigComparison& to);

// The keys of a GGUF file that llama.cpp does not read for its architecture or reads with another
// effect, by explain's warnings, and doubts about vision parts.
ConfigComparison check_config(const ReadRopeConfig& read);

}  // namespace sextant
