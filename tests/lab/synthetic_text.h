// Text from which a tiny model learns something in a second: sentences of a few words, with regular
// spelling and word order and random content.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sextant/base/random.h"

namespace sextant {

inline std::string synthetic_document(uint64_t number, size_t bytes) {
  constexpr std::array<const char*, 8> kNouns{"ship", "captain", "star",  "chart",
                                              "sea",  "island",  "storm", "compass"};
  constexpr std::array<const char*, 5> kVerbs{"finds", "follows", "leaves", "loses", "reads"};
  const CounterRandom random(number, "synthetic");
  std::string text;
  for (uint64_t n = 0; text.size() < bytes; n += 3) {
    text += std::string("the ") + kNouns[random.below(8, n)] + " " +
            kVerbs[random.below(5, n + 1)] + " the " + kNouns[random.below(8, n + 2)] + ".\n";
  }
  text.resize(bytes);
  return text;
}

inline std::vector<std::string> synthetic_documents(uint64_t count, size_t bytes) {
  std::vector<std::string> documents;
  for (uint64_t n = 0; n < count; ++n) documents.push_back(synthetic_document(n, bytes));
  return documents;
}

}  // namespace sextant
