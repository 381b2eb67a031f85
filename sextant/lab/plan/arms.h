// Arms of a survey from the methods that the user lists.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "sextant/lab/plan/settings.h"

namespace sextant::lab {

// A requested method.
struct ArmRequest {
  std::string label;           // its name in tables
  std::string method;          // name of a method or a stretch
  std::string options = "{}";  // JSON object: options of the method, and of the survey (below)
};

// Parses "rope:base=1e6:dim=16"; the text becomes the label. VALUE is JSON, or else a string.
// Throws Error for an option of another form, and for one that is given twice; `where` begins the
// message.
ArmRequest request_of(const std::string& text, const std::string& where = "methods");

// Options that every arm has by default.
struct ArmDefaults {
  int64_t memory = 0;
  int64_t tune = 0;  // steps; 0: no tuning
};

// Makes the arms of the requests. A method that is only tested (window, rerope, a stretch or
// another method that changes how a trained rope is applied) adds the arm that trains its weights.
// Options of the survey itself:
//   weights   the method or request whose weights are used: "rope" for any method that has rope's
//             parameters; "own" trains a method that would otherwise use other weights
//   causal    true: with masked bytes, attention to earlier positions only
//   two_streams  true: with masked bytes, a permutation language model (XLNet)
//   memory    positions; in the label if it comes from all.memory
//   tune      steps of further training at the longest length, from the weights that are used. With
//             all.tune each such arm, and the method that was trained, also gets a tuned copy.
//   drop_channels  channels of the vector added to the input that are zero in the test, drawn from
//             the seed. The weights are those of the same method with all channels.
// "alien-clock" stands for clock:system=alien.
// Values such as "L", "2L" or "L/4" are relative to the training length. Each request gives an arm
// for the survey's objective and, unless settings.retrieval.steps is 0 or the arm has a memory, one
// for its small task.
std::vector<Arm> make_arms(std::span<const ArmRequest> requests, int64_t seeds,
                           const Settings& settings, const ArmDefaults& all = {});
std::vector<Arm> make_arms(const std::vector<std::string>& methods, int64_t seeds,
                           const Settings& settings, const ArmDefaults& all = {});

// The arms, and after each one that is trained and whose method adds a vector to the input, arms
// with these numbers of its channels dropped. added_channels(arm) is the number of channels that
// the arm's method adds to. Throws Error for a number below 1.
std::vector<Arm> with_dropped_arms(std::span<const Arm> arms, std::span<const int64_t> counts,
                                   const std::function<int64_t(const Arm&)>& added_channels);

// The methods of a survey without a method list, by its objective. kCausal: some that are trained,
// and all stretches that are not dynamic. kMasked: five that are trained.
std::vector<std::string> default_methods(Objective objective);

// Stretches of a trained rope past its length, by factor = longest length / L: pi, ntk, yarn,
// rerope, window, ...
std::vector<std::string> stretches();

}  // namespace sextant::lab
