#include "sextant/lab/data/masked_text.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/base/random.h"
#include "sextant/lab/data/retrieval_task.h"

namespace sextant::lab {
namespace {

constexpr uint64_t kMaskedTestSeed = 0;  // training uses another random stream
constexpr double kAsked = 0.15, kMasked = 0.8, kRandom = 0.1;
constexpr uint64_t kShortOneOf = 10;
constexpr int64_t kShortest = 4;  // a short sequence has at least length / kShortest bytes
constexpr int64_t kBytes = 256;
constexpr int64_t kPermutedOneOf = 6;  // XLNet's K

// Shuffles values in place (Fisher and Yates) with the random numbers from `next` on. Returns the
// number behind the last one that was used.
uint64_t shuffle(std::span<int64_t> values, const CounterRandom& random, uint64_t next) {
  for (size_t last = values.size() - 1; last > 0; --last)
    std::swap(values[last], values[random.below(last + 1, next++)]);
  return next;
}

int64_t checked_length(const std::string& kind, std::string_view text) {
  if (text.size() >= 2) return static_cast<int64_t>(text.size());
  fail(kind + " text: length: expected at least 2, but got " + std::to_string(text.size()));
}

}  // namespace

MaskedText masked_training_text(std::string_view text, uint64_t seed, uint64_t n) {
  const int64_t length = checked_length("masked", text);
  const CounterRandom random(seed, "masked");
  uint64_t next = n << 32;
  int64_t end = length;
  if (random.below(kShortOneOf, next++) == 0) {
    const int64_t shortest = std::max<int64_t>(2, length / kShortest);
    end = shortest +
          static_cast<int64_t>(random.below(static_cast<uint64_t>(length - shortest + 1), next++));
  }
  MaskedText masked{.tokens = std::vector<int64_t>(text.size(), kPaddingToken),
                    .answers = std::vector<int64_t>(text.size(), kNotAsked)};
  // One position is asked in any case, so that each sequence has a loss.
  const auto certain = static_cast<int64_t>(random.below(static_cast<uint64_t>(end), next++));
  for (int64_t place = 0; place < end; ++place) {
    const auto at = static_cast<size_t>(place);
    const int64_t byte = static_cast<uint8_t>(text[at]);
    masked.tokens[at] = byte;
    const bool asked = random.uniform(next++) < kAsked;
    const double kind = random.uniform(next++);
    const auto other = static_cast<int64_t>(random.below(kBytes, next++));
    if (!asked && place != certain) continue;
    masked.answers[at] = byte;
    if (kind < kMasked) {
      masked.tokens[at] = kMaskToken;
    } else if (kind < kMasked + kRandom) {
      masked.tokens[at] = other;
    }
  }
  return masked;
}

PermutedText permuted_training_text(std::string_view text, uint64_t seed, uint64_t n) {
  const int64_t length = checked_length("permuted", text);
  const CounterRandom random(seed, "permuted");
  PermutedText permuted{.order = std::vector<int64_t>(text.size())};
  std::iota(permuted.order.begin(), permuted.order.end(), 0);
  shuffle(permuted.order, random, n << 32);
  const int64_t first_asked = length - std::max<int64_t>(1, length / kPermutedOneOf);
  for (size_t at = 0; at < text.size(); ++at) {
    permuted.tokens.push_back(static_cast<uint8_t>(text[at]));
    permuted.answers.push_back(permuted.order[at] < first_asked ? kNotAsked : permuted.tokens[at]);
  }
  return permuted;
}

std::vector<int64_t> passes_of_block(int64_t length, uint64_t n) {
  const CounterRandom random(kMaskedTestSeed, "masked/test");
  uint64_t next = n << 32;
  std::vector<int64_t> passes;
  while (static_cast<int64_t>(passes.size()) < length) {
    std::array<int64_t, kMaskPasses> order{};
    std::iota(order.begin(), order.end(), 0);
    next = shuffle(order, random, next);
    passes.insert(passes.end(), order.begin(), order.end());
  }
  passes.resize(static_cast<size_t>(length));
  return passes;
}

}  // namespace sextant::lab
