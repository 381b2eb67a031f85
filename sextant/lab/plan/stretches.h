// Stretches of a trained rope by name, as surveys and `sextant extend` use them.
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

// Returns rope's option "stretch" (JSON object) for sequences `factor` times as long as in
// training. Dynamic stretches ignore `factor`: rope derives it from the positions of each sequence.
// Null for an unknown name.
nlohmann::json stretch_named(std::string_view name, double factor);

// A pair of channels makes at most L / (2 pi) rotations within L, 20 for L = 128. For models
// trained on short sequences, YaRN's threshold of 32 rotations keeps no pair unchanged with the
// paper's ramp, and only the fastest pair with the ramp of the authors' code.
inline constexpr double kFewTurns = 8;

// The methods' own defaults for a model that was trained on `trained` positions: `window` of
// rerope, leaky-rerope and self-extend, `chunk_size` and `local_window` of dual-chunk.
int64_t default_window(std::string_view method, int64_t trained);
struct ChunkSizes {
  int64_t size = 0, local = 0;
};
ChunkSizes default_chunks(int64_t trained);

// The options with which a piecewise rotation (leaky-rerope, self-extend) shrinks the distances
// beyond its default window so that the longest distance, `reach`, maps to at most `trained` (L,
// smaller than `reach`). Empty for other methods.
nlohmann::json piecewise_options(std::string_view method, int64_t trained, int64_t reach);

}  // namespace sextant::lab
