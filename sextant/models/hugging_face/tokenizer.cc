#include "sextant/models/hugging_face/tokenizer.h"

#include <nlohmann/json.hpp>

#include "sextant/base/unicode.h"

namespace sextant::hugging_face {
namespace {

bool is_printable(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

}  // namespace

std::string byte_tokenizer() {
  nlohmann::json vocabulary;
  char32_t next = 0x100;
  for (int byte = 0; byte < kByteTokens; ++byte) {
    std::string character;
    append_utf8(character, is_printable(byte) ? static_cast<char32_t>(byte) : next++);
    vocabulary[character] = byte;
  }
  const nlohmann::json bytes = {{"type", "ByteLevel"},
                                {"add_prefix_space", false},
                                {"trim_offsets", true},
                                {"use_regex", false}};
  const nlohmann::json tokenizer = {{"version", "1.0"},
                                    {"truncation", nullptr},
                                    {"padding", nullptr},
                                    {"added_tokens", nlohmann::json::array()},
                                    {"normalizer", nullptr},
                                    {"pre_tokenizer", bytes},
                                    {"post_processor", nullptr},
                                    {"decoder", bytes},
                                    {"model",
                                     {{"type", "BPE"},
                                      {"dropout", nullptr},
                                      {"unk_token", nullptr},
                                      {"continuing_subword_prefix", nullptr},
                                      {"end_of_word_suffix", nullptr},
                                      {"fuse_unk", false},
                                      {"byte_fallback", false},
                                      {"ignore_merges", false},
                                      {"vocab", vocabulary},
                                      {"merges", nlohmann::json::array()}}}};
  return tokenizer.dump(2) + "\n";
}

std::string byte_tokenizer_config() {
  const nlohmann::json config = {{"tokenizer_class", "PreTrainedTokenizerFast"},
                                 {"clean_up_tokenization_spaces", false},
                                 {"add_prefix_space", false}};
  return config.dump(2) + "\n";
}

}  // namespace sextant::hugging_face
