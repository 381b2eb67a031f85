// Every way there is to read a trained rope past its length, and which one to take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sextant/lab/report/interval.h"
#include "sextant/lab/run/model_work.h"

namespace sextant::lab {

// Of a rope with these options (JSON object; what they say of a stretch is left out), trained at
// length L, for texts of `length`: the rope as it is, first, and every stretch and piecewise
// rotation.
std::vector<StretchCandidate> stretch_candidates(const std::string& rope_options,
                                                 int64_t train_length, int64_t length);

struct Recommendation {
  size_t best = 0;                 // index into Extension::ways
  std::optional<size_t> writable;  // the best of those that config.json can say
  // Others that may be as good as the best: the 95 % interval of the difference, block by block,
  // has zero in it.
  struct Tie {
    size_t candidate = 0;
    MeanInterval behind;  // at the longest length and in what is made worse at L, together
  };
  std::vector<Tie> ties;  // the nearest first
  std::string reason;     // a sentence with the numbers; of ties, too
};

// The lowest loss at the longest length, what the way makes worse at L added to it, of those that
// see all of the text: a window has a low loss, too, and in each layer reads no further than
// before. The survey's rule is another (advice.h): here nothing was retrieved, so those that forget
// are known by their kind alone; and one model is given, which goes on reading short texts, so what
// they lose counts as much.
Recommendation recommend(const Extension& extension);

}  // namespace sextant::lab
