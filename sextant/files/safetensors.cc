#include "sextant/files/safetensors.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/base/printable.h"

namespace sextant {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMostHeaderBytes = 100'000'000;  // the reference reader's own limit
constexpr size_t kMostTensors = 1'000'000;
constexpr size_t kMostDimensions = 8;
constexpr size_t kMostNameBytes = 65'536;
constexpr const char* kMetadataKey = "__metadata__";

constexpr std::pair<std::string_view, uint64_t> kTypes[] = {
    {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
    {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
    {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};

[[noreturn]] void wrong(const std::string& what) { fail("safetensors: " + what); }

[[noreturn]] void wrong_tensor(const std::string& name, const std::string& what) {
  wrong("tensor " + name + ": " + what);
}

// The number of bytes of an array; null if it exceeds 63 bits.
std::optional<uint64_t> checked_bytes(uint64_t element, std::span<const int64_t> shape) {
  uint64_t bytes = element;
  for (const int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<uint64_t>(size), &bytes) || bytes >> 63 != 0)
      return std::nullopt;
  }
  return bytes;
}

uint64_t element_bytes(const std::string& tensor, const std::string& dtype) {
  for (const auto& [name, bytes] : kTypes)
    if (name == dtype) return bytes;
  wrong_tensor(tensor, "dtype: expected one of safetensors' types, but got " + dtype);
}

// Names appear in terminals and messages.
void check_name(const std::string& name) {
  if (name.empty() || name.size() > kMostNameBytes || printable(name) != name)
    wrong("name: expected 1 to 65536 bytes without control characters, but got " +
          nlohmann::json(name).dump().substr(0, 80));
}

struct Entry {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<int64_t>> shape;
  std::optional<std::vector<int64_t>> offsets;
};

// Reads the header event by event, so that a deviation from the exact form is refused at its
// position, however deep or long the input is, and a duplicate key is detected. (A document tree
// keeps the last one.)
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;

  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("a truth value"); }
  bool number_float(number_float_t, const string_t&) override { unexpected("a fraction"); }
  bool binary(binary_t&) override { unexpected("binary"); }
  bool number_integer(number_integer_t) override { unexpected("a negative number"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != HeaderPart::kShape && place_ != HeaderPart::kOffsets) unexpected("a number");
    if (value >> 63 != 0) unexpected("a number of 64 bits");
    std::vector<int64_t>& numbers =
        place_ == HeaderPart::kShape ? *entries.back().shape : *entries.back().offsets;
    if (numbers.size() == kMostDimensions) unexpected("more than 8 numbers");
    numbers.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == HeaderPart::kMetadata) {
      metadata[key_] = value;
    } else if (place_ == HeaderPart::kTensor && key_ == "dtype") {
      entries.back().dtype = value;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool start_object(size_t) override {
    if (place_ == HeaderPart::kOutside) {
      place_ = HeaderPart::kHeader;
    } else if (place_ == HeaderPart::kHeader && key_ == kMetadataKey) {
      place_ = HeaderPart::kMetadata;
    } else if (place_ == HeaderPart::kHeader) {
      if (entries.size() == kMostTensors) unexpected("more than a million tensors");
      place_ = HeaderPart::kTensor;
      entries.push_back({.name = key_});
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(string_t& name) override {
    if (place_ == HeaderPart::kHeader) {
      once(names_, name);
      if (name != kMetadataKey) check_name(name);
      fields_.clear();
    } else {
      once(fields_, name);
    }
    if (place_ == HeaderPart::kTensor && name != "dtype" && name != "shape" &&
        name != "data_offsets") {
      wrong_tensor(entries.back().name, "expected dtype, shape and data_offsets only, but got " +
                                            nlohmann::json(name).dump().substr(0, 80));
    }
    key_ = name;
    return true;
  }

  bool end_object() override {
    place_ = place_ == HeaderPart::kHeader ? HeaderPart::kOutside : HeaderPart::kHeader;
    return true;
  }

  bool start_array(size_t) override {
    if (place_ != HeaderPart::kTensor || key_ == "dtype") unexpected("an array");
    place_ = key_ == "shape" ? HeaderPart::kShape : HeaderPart::kOffsets;
    (place_ == HeaderPart::kShape ? entries.back().shape : entries.back().offsets).emplace();
    return true;
  }

  bool end_array() override {
    place_ = HeaderPart::kTensor;
    return true;
  }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    wrong("header: expected JSON, but byte " + std::to_string(kLengthBytes + position) +
          " of the file is not");
  }

 private:
  enum class HeaderPart { kOutside, kHeader, kMetadata, kTensor, kShape, kOffsets };

  [[noreturn]] void unexpected(const std::string& got) const {
    const std::string where = entries.empty() ? "start" : "tensor " + entries.back().name;
    wrong("header: near " + where + ": expected another kind of value, but got " + got);
  }

  static void once(std::set<std::string>& seen, const std::string& name) {
    if (!seen.insert(name).second)
      wrong("header: expected each name once, but got " +
            nlohmann::json(name).dump().substr(0, 80) + " twice");
  }

  HeaderPart place_ = HeaderPart::kOutside;
  std::string key_;
  std::set<std::string> names_, fields_;
};

TensorBytes checked(const Entry& entry, std::string_view data) {
  if (!entry.dtype || !entry.shape || !entry.offsets)
    wrong_tensor(entry.name, "expected dtype, shape and data_offsets, but one is missing");
  const std::vector<int64_t>& offsets = *entry.offsets;
  if (offsets.size() != 2 || offsets[0] > offsets[1] ||
      static_cast<uint64_t>(offsets[1]) > data.size()) {
    wrong_tensor(entry.name, "data_offsets: expected a begin and an end within " +
                                 std::to_string(data.size()) + " bytes, but got others");
  }
  const auto begin = static_cast<uint64_t>(offsets[0]);
  const uint64_t bytes = static_cast<uint64_t>(offsets[1]) - begin;
  if (checked_bytes(element_bytes(entry.name, *entry.dtype), *entry.shape) != bytes)
    wrong_tensor(entry.name,
                 "shape: expected what fills " + std::to_string(bytes) + " bytes, but got another");
  return {entry.name, *entry.dtype, *entry.shape, data.substr(begin, bytes)};
}

void check_cover(std::vector<TensorBytes>& tensors, std::string_view data) {
  // Empty arrays share their offset with the array after them.
  std::ranges::stable_sort(tensors, {}, [](const TensorBytes& tensor) {
    return std::pair(tensor.bytes.data(), tensor.bytes.size());
  });
  const char* end = data.data();
  for (const TensorBytes& tensor : tensors) {
    if (tensor.bytes.data() != end)
      wrong_tensor(tensor.name, "data_offsets: expected to begin where the one before ends (" +
                                    std::to_string(end - data.data()) + "), but got " +
                                    std::to_string(tensor.bytes.data() - data.data()));
    end += tensor.bytes.size();
  }
  if (end != data.data() + data.size())
    wrong("data: expected " + std::to_string(end - data.data()) + " bytes, but got " +
          std::to_string(data.size()));
}

}  // namespace

Safetensors parse_safetensors(std::string_view file) {
  if (file.size() < kLengthBytes)
    wrong("length: expected 8 bytes, but the file has " + std::to_string(file.size()));
  uint64_t length = 0;
  std::copy_n(file.data(), kLengthBytes, reinterpret_cast<char*>(&length));
  const uint64_t there = file.size() - kLengthBytes;
  if (length > std::min(there, kMostHeaderBytes))
    wrong("length: expected a header of at most " +
          std::to_string(std::min(there, kMostHeaderBytes)) + " bytes, but got " +
          std::to_string(length));
  const std::string_view header = file.substr(kLengthBytes, length);
  if (!header.starts_with('{')) wrong("header: expected { as its first byte");
  HeaderReader reader;
  nlohmann::json::sax_parse(header, &reader);

  const std::string_view data = file.substr(kLengthBytes + length);
  Safetensors content{.metadata = std::move(reader.metadata)};
  content.tensors.reserve(reader.entries.size());
  for (const Entry& entry : reader.entries) content.tensors.push_back(checked(entry, data));
  check_cover(content.tensors, data);
  return content;
}

std::string safetensors_file(const Safetensors& content) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!content.metadata.empty()) header[kMetadataKey] = content.metadata;
  uint64_t offset = 0;
  for (const TensorBytes& tensor : content.tensors) {
    check_name(tensor.name);
    const bool positive = std::ranges::all_of(tensor.shape, [](int64_t size) { return size >= 0; });
    if (header.contains(tensor.name) || tensor.name == kMetadataKey)
      wrong_tensor(tensor.name, "name: expected each once, but got it twice");
    if (!positive || checked_bytes(element_bytes(tensor.name, tensor.dtype), tensor.shape) !=
                         tensor.bytes.size()) {
      wrong_tensor(tensor.name, "shape: expected what fills " +
                                    std::to_string(tensor.bytes.size()) +
                                    " bytes, but got another");
    }
    header[tensor.name] = {{"dtype", tensor.dtype},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  uint64_t length = text.size();
  std::string file(reinterpret_cast<const char*>(&length), kLengthBytes);
  file += text;
  file.reserve(file.size() + offset);
  for (const TensorBytes& tensor : content.tensors) file += tensor.bytes;
  return file;
}

}  // namespace sextant
