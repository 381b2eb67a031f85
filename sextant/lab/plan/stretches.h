// How far a trained rope is stretched, by the names that surveys and `sextant extend` give to the
// ways.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::lab {

// "pi", "ntk", "ntk-mixed", "yarn", "yarn-paper", "yarn-8-turns", "dynamic-pi", "dynamic-ntk",
// "dynamic-yarn", in this order.
std::vector<std::string> stretch_names();

// What rope takes as its option "stretch" (JSON object), so that texts `factor` times as long as
// those of training are read; the dynamic ones go by the length of each text. Null for a name that
// is none of them.
nlohmann::json stretch_named(std::string_view name, double factor);

// A pair makes at most L / 2 pi turns within L, 20 in 128: of a model trained on short texts,
// YaRN's 32 leave no pair as it was by the paper's ramp, and the fastest alone by that of the code.
inline constexpr double kFewTurns = 8;

// The options by which a piecewise rotation (leaky-rerope, self-extend) shrinks distances beyond
// its default window so far that `reach`, the longest, is one of training (L = `trained`, below
// `reach`). Empty for others.
nlohmann::json piecewise_options(std::string_view method, int64_t trained, int64_t reach);

}  // namespace sextant::lab
