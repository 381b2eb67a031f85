#include "sextant/rope_config/families/tokens.h"

#include "sextant/base/error.h"

namespace sextant {

bool Tokens::in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

void Tokens::bad(const std::string& expected) const {
  fail("expression: " + text() + ": expected " + expected +
       (token_.empty() ? ", but it ends" : ", but got \"" + std::string(token_) + "\""));
}

// Accepts "1e-5" as one number.
void Tokens::pass_number() {
  const auto in_number = [&] {
    const char c = text_[at_];
    return in_name(c) || c == '.' || ((c == '-' || c == '+') && text_[at_ - 1] == 'e');
  };
  while (at_ < text_.size() && in_number()) ++at_;
}

void Tokens::pass_quoted() {
  at_ = text_.find('\'', at_ + 1);
  if (at_ == std::string_view::npos) {
    at_ = text_.size();
    token_ = {};
    bad("a closing '");
  }
  ++at_;
}

void Tokens::next() {
  while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  const size_t start = at_;
  if (at_ == text_.size()) {
    token_ = {};
    return;
  }
  const char c = text_[at_];
  if (c >= '0' && c <= '9') {
    pass_number();
  } else if (in_name(c)) {
    while (at_ < text_.size() && in_name(text_[at_])) ++at_;
  } else if (c == '\'') {
    pass_quoted();
  } else {
    const std::string_view two = text_.substr(at_, 2);
    const bool pair =
        two == "**" || two == "//" || two == "==" || two == "!=" || two == "<=" || two == ">=";
    at_ += pair ? 2 : 1;
  }
  token_ = text_.substr(start, at_ - start);
}

bool Tokens::take(std::string_view token) {
  if (token_ != token) return false;
  next();
  return true;
}

void Tokens::need(std::string_view token) {
  if (!take(token)) bad("\"" + std::string(token) + "\"");
}

void Tokens::back_to(size_t place) {
  at_ = place;
  next();
}

}  // namespace sextant
