// tokenizer.json: bytes as tokens, a byte's token being its number.
//
// Byte-level BPE (Radford et al. 2019, GPT-2) without merges. The format holds text, so each byte
// is written as a printable character: itself where it is one in Latin-1, and U+0100, U+0101, ...
// for the 68 others in their order. transformers' PreTrainedTokenizerFast and the library
// tokenizers read it.
#pragma once

#include <string>

namespace sextant::hugging_face {

inline constexpr int kByteTokens = 256;

std::string byte_tokenizer();

// tokenizer_config.json: what AutoTokenizer goes by.
std::string byte_tokenizer_config();

}  // namespace sextant::hugging_face
