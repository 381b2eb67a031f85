// A byte reader for .npy files, and their header. Private to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sextant::npy {

inline constexpr std::string_view kMagic = "\x93NUMPY";
inline constexpr size_t kMaxAxes = 64;  // NumPy 2's own limit

// Reads bytes from the front, each once. Errors name the file, a field and the byte.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  // Throws Error: "npy: <name>: <field>: expected <complaint> (byte <n>)".
  [[noreturn]] void wrong(std::string_view field, const std::string& complaint) const;

  size_t left() const { return bytes_.size() - at_; }
  std::span<const std::byte> take(size_t count, std::string_view field);
  uint32_t take_number(size_t width, std::string_view field);  // width <= 4

  // Starts the header's text, the next `length` bytes; the functions below stay within it.
  void open_header(size_t length) { end_ = at_ + length; }
  bool header_is_over() const { return at_ == end_; }
  void skip_blanks();
  bool accept(char c);
  void expect(char c, std::string_view field);
  std::string take_word(std::string_view field);
  std::string take_string(std::string_view field);

 private:
  char peek() const { return header_is_over() ? '\0' : static_cast<char>(bytes_[at_]); }
  std::string shown(char c) const;

  std::span<const std::byte> bytes_;
  std::string_view name_;
  size_t at_ = 0;
  size_t end_ = 0;
};

struct Header {
  std::string descr;
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

Header take_header(Reader& in);

}  // namespace sextant::npy
