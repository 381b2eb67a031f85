// Masked bytes, BERT's training task (Devlin et al. 2019, arXiv 1810.04805, section 3.1 and
// appendix A.2): some bytes of a sequence are hidden, and a model that sees both directions
// predicts them.
//
// In training 15 % of the bytes are chosen; of these 80 % become kMaskToken, 10 % a random byte and
// 10 % stay. One sequence of ten is shorter and padded.
//
// A test hides every byte of a block once: in each of kMaskPasses passes another seventh of the
// bytes (14.3 %), all of them by kMaskToken. The passes depend on a byte's place in its block only,
// so a byte is predicted from the same visible bytes at every length, and from more of them at
// longer lengths.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sextant::lab {

// Token ids: bytes, then these two.
inline constexpr int64_t kMaskToken = 256, kPaddingToken = 257, kMaskedVocabulary = 258;
inline constexpr int64_t kMaskPasses = 7;

struct MaskedText {
  std::vector<int64_t> tokens;   // [length], kPaddingToken behind the end of a shorter sequence
  std::vector<int64_t> answers;  // [length]: the byte where it is asked for, elsewhere kNotAsked
};

// The n-th training sequence of a seed, from a window of the text. At least one byte is asked for.
// text: 2 bytes or more.
MaskedText masked_training_text(std::string_view text, uint64_t seed, uint64_t n);

// A sequence of permutation language modelling (Yang et al. 2019, XLNet, arXiv 1906.08237, section
// 2.3): each position has a rank in a random order, and the last sixth of the order is predicted,
// each byte from those of lower rank.
struct PermutedText {
  std::vector<int64_t> tokens = {}, answers = {},
                       order = {};  // [length] each; answers: kNotAsked elsewhere
};

// The n-th training sequence of a seed. text: 2 bytes or more.
PermutedText permuted_training_text(std::string_view text, uint64_t seed, uint64_t n);

// The pass that hides each byte of the n-th test block: [length] of 0 to kMaskPasses - 1. Of any
// kMaskPasses consecutive bytes that start at a multiple of kMaskPasses, each pass hides one.
std::vector<int64_t> passes_of_block(int64_t length, uint64_t n);

}  // namespace sextant::lab
