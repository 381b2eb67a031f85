#include "sextant/files/npy_header.h"

#include <bit>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include "sextant/base/error.h"

namespace sextant::npy {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie");

void Reader::wrong(std::string_view field, const std::string& complaint) const {
  fail("npy: " + std::string(name_) + ": " + std::string(field) + ": expected " + complaint +
       " (byte " + std::to_string(at_) + ")");
}

std::span<const std::byte> Reader::take(size_t count, std::string_view field) {
  if (count > left()) {
    wrong(field, std::to_string(count) + " bytes, but got the end after " + std::to_string(left()));
  }
  const auto taken = bytes_.subspan(at_, count);
  at_ += count;
  return taken;
}

uint32_t Reader::take_number(size_t width, std::string_view field) {
  uint32_t value = 0;
  std::memcpy(&value, take(width, field).data(), width);
  return value;
}

void Reader::skip_blanks() {
  while (peek() == ' ' || peek() == '\n') ++at_;
}

bool Reader::accept(char c) {
  skip_blanks();
  if (peek() != c) return false;
  ++at_;
  return true;
}

void Reader::expect(char c, std::string_view field) {
  if (!accept(c)) wrong(field, std::string("'") + c + "', but got " + shown(peek()));
}

std::string Reader::take_word(std::string_view field) {
  skip_blanks();
  std::string word;
  const auto goes_on = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  while (goes_on(peek())) word += static_cast<char>(bytes_[at_++]);
  if (word.empty()) wrong(field, "a word, but got " + shown(peek()));
  return word;
}

std::string Reader::take_string(std::string_view field) {
  skip_blanks();
  const char quote = peek();
  if (quote != '\'' && quote != '"') wrong(field, "a string, but got " + shown(quote));
  ++at_;
  std::string text;
  while (peek() != quote) {
    if (peek() < ' ' || peek() > '~' || peek() == '\\') {
      wrong(field, "a string of plain ASCII, but got " + shown(peek()));
    }
    text += static_cast<char>(bytes_[at_++]);
  }
  ++at_;
  return text;
}

std::string Reader::shown(char c) const {
  if (header_is_over()) return "the end of the header";
  if (c >= ' ' && c <= '~') return std::string("'") + c + "'";
  return "byte value " + std::to_string(static_cast<unsigned char>(c));
}

namespace {

int64_t take_axis(Reader& in) {
  const std::string word = in.take_word("shape");
  int64_t value = 0;
  for (const char c : word) {
    if (c < '0' || c > '9') in.wrong("shape", "whole numbers, but got '" + word + "'");
    const int64_t digit = c - '0';
    if (value > (std::numeric_limits<int64_t>::max() - digit) / 10) {
      in.wrong("shape", "numbers below 2^63, but got '" + word + "'");
    }
    value = value * 10 + digit;
  }
  return value;
}

std::vector<int64_t> take_shape(Reader& in) {
  in.expect('(', "shape");
  std::vector<int64_t> shape;
  while (!in.accept(')')) {
    if (shape.size() == kMaxAxes) in.wrong("shape", "at most 64 axes, but got more");
    shape.push_back(take_axis(in));
    if (!in.accept(',')) {
      in.expect(')', "shape");
      break;
    }
  }
  return shape;
}

bool take_truth(Reader& in) {
  const std::string word = in.take_word("fortran_order");
  if (word != "True" && word != "False") {
    in.wrong("fortran_order", "True or False, but got '" + word + "'");
  }
  return word == "True";
}

Header take_dictionary(Reader& in) {
  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> shape;
  in.expect('{', "header");
  while (!in.accept('}')) {
    const std::string key = in.take_string("header");
    in.expect(':', "header");
    if (key == "descr" && !descr) {
      descr = in.take_string("descr");  // structured types are lists and end here
    } else if (key == "fortran_order" && !fortran_order) {
      fortran_order = take_truth(in);
    } else if (key == "shape" && !shape) {
      shape = take_shape(in);
    } else {
      in.wrong("header", "descr, fortran_order and shape, once each, but got '" + key + "'");
    }
    if (!in.accept(',')) {
      in.expect('}', "header");
      break;
    }
  }
  in.skip_blanks();
  if (!in.header_is_over()) in.wrong("header", "nothing after '}', but got more");
  if (!descr) in.wrong("descr", "the type of the elements, but got none");
  if (!fortran_order) in.wrong("fortran_order", "True or False, but got none");
  if (!shape) in.wrong("shape", "a tuple, but got none");
  return {*std::move(descr), *fortran_order, *std::move(shape)};
}

}  // namespace

Header take_header(Reader& in) {
  const auto magic = in.take(kMagic.size(), "magic");
  if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0) {
    in.wrong("magic", "\\x93NUMPY, but got no .npy file");
  }
  const uint32_t major = in.take_number(1, "version");
  const uint32_t minor = in.take_number(1, "version");
  if (major < 1 || major > 3 || minor != 0) {
    in.wrong("version",
             "1.0, 2.0 or 3.0, but got " + std::to_string(major) + "." + std::to_string(minor));
  }
  const uint32_t length = in.take_number(major == 1 ? 2 : 4, "header length");
  if (length > in.left()) {
    in.wrong("header length", "at most " + std::to_string(in.left()) +
                                  ", the bytes that follow, but got " + std::to_string(length));
  }
  in.open_header(length);
  return take_dictionary(in);
}

}  // namespace sextant::npy
