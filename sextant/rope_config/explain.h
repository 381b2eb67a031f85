// The effect of a rotary setting, in numbers: each pair's wavelength before and after, where it
// leaves what training covered, and what float32 makes of it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sextant/rope_config/rope_config.h"

namespace sextant {

struct PairExplained {
  double speed = 0, stretched = 0;  // radians per position
  double turns = 0;                 // within the trained length, as trained
  // How much of the way from "divided by the factor" to "kept" it is: 1 kept, 0 interpolated. NaN
  // where nothing is stretched.
  double kept = 0;
  // The first distance at which its angle is one that training on L tokens never met: 0 if it meets
  // them all, having gone round within L, or if no query of these layers sees so far.
  int64_t leaves = 0;
  int axis = 0;  // which of a row's positions it follows: time, height, width
};

struct Explained {
  int64_t trained = 0;  // L; 0: not known
  int64_t target = 0;   // the length that is spoken of; 0: not known
  double factor = 1;    // by which the slowest pair is divided
  double gain = 1;      // multiplies turned queries and keys
  double scale =
      1;  // of scores of channels that do not turn: 1/sqrt(head_dim) times what the model adds
  double turned_scale = 1;   // of those that do: times gain^2
  double float32_error = 0;  // the largest of cos and sin over the last positions before the target
  int64_t reach = 0;         // the largest distance in these layers; 0: any
  int64_t first_leaving = 0;  // of all pairs, the first distance beyond; 0: none leaves
  std::vector<PairExplained> pairs;
};

// length: the target; 0: what the setting says itself. Throws Error if a number is out of range.
Explained explain(const RopeConfig& setting, int64_t length);

// The factor of q·k without the rotation's gain and without score_factor; 0: not known.
double plain_scale(const RopeConfig& setting);

// "YaRN", "Llama 3's scaling", ...: the method in words that can be looked up, and where it comes
// from.
struct Named {
  std::string name, source, meaning;
};
Named name_of(const RopeScaling& scaling);

// "YaRN", or where layers do not rotate "NoPE" or what they have instead: "alibi".
std::string method_of(const RopeConfig& setting);

// "half-split" or "interleaved"; empty: not known, or nothing rotates.
std::string pairing_of(const RopeConfig& setting);

// The method's parameters, with defaults filled in: {"factor": 4, "beta_fast": 32, ...}.
nlohmann::json parameters_of(const RopeConfig& setting);

// "max(1, ln(i + 1) / ln 8192)", of a query at position i; empty: nothing.
std::string law_of(const QueryScale& scale);

// The law of a group's queries, in numbers or in its family's words; empty: none.
std::string query_law_of(const RopeConfig& setting);

}  // namespace sextant
