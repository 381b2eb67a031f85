#include "sextant/lab/run/shell_word.h"

namespace sextant::lab {

std::string shell_word(std::string word) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./,=:+@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  for (size_t at = word.find('\''); at != std::string::npos; at = word.find('\'', at + 4)) {
    word.replace(at, 1, "'\\''");
  }
  word.insert(0, 1, '\'');
  word += '\'';
  return word;
}

}  // namespace sextant::lab
