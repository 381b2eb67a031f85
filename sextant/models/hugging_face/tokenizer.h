// tokenizer.json: bytes as tokens; a byte's value is its token id.
//
// Byte-level BPE (Radford et al. 2019, GPT-2) without merges. The format holds text, so each byte
// is written as a printable character: as itself if it is printable in Latin-1; the 68 others as
// U+0100, U+0101, ... in their order. transformers' PreTrainedTokenizerFast and the library
// tokenizers load it.
#pragma once

#include <string>

namespace sextant::hugging_face {

inline constexpr int kByteTokens = 256;

std::string byte_tokenizer();

// tokenizer_config.json, which AutoTokenizer needs.
std::string byte_tokenizer_config();

}  // namespace sextant::hugging_face
