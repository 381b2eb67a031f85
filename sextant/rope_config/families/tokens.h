// Splits an expression into tokens: numbers, names, strings and operators.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sextant {

class Tokens {
 public:
  // `text` must outlive the tokens. Throws Error as bad() does.
  explicit Tokens(std::string_view text) : text_(text) { next(); }

  // The current token; empty at the end.
  std::string_view now() const { return token_; }
  bool is_name() const { return !token_.empty() && in_name(token_[0]); }
  bool is_number() const { return !token_.empty() && token_[0] >= '0' && token_[0] <= '9'; }

  void next();
  bool take(std::string_view token);
  void need(std::string_view token);

  // place() is the start of the current token; back_to() returns there.
  size_t place() const { return at_ - token_.size(); }
  void back_to(size_t place);

  [[noreturn]] void bad(const std::string& expected) const;
  std::string text() const { return std::string(text_); }

 private:
  static bool in_name(char c);
  void pass_number();
  void pass_quoted();

  std::string_view text_, token_;
  size_t at_ = 0;
};

}  // namespace sextant
