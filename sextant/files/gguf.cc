#include "sextant/files/gguf.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "sextant/base/error.h"
#include "sextant/base/printable.h"
#include "sextant/files/checked_bytes.h"

namespace sextant {
namespace {

constexpr uint64_t kLongestString = 1 << 20;  // chat templates are long
constexpr uint64_t kMostElements = 1 << 24;   // vocabularies
constexpr uint64_t kMostPairs = 1 << 16, kMostTensors = 1 << 20;
constexpr uint64_t kMostDimensions = 8, kLongestVector = 65536;
constexpr uint64_t kMostNumbers = 1 << 20;  // of arrays, kept as values

// Value types, in the format's numbering.
enum Type : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64
};

class Reader {
 public:
  explicit Reader(const std::string& bytes) : bytes_(bytes) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }

  [[noreturn]] void bad(const std::string& what, const std::string& expected) const {
    fail("gguf: " + what + ": expected " + expected + " at byte " + std::to_string(at_));
  }

  template <class T>
  T number(const std::string& what) {
    if (left() < sizeof(T)) bad(what, std::to_string(sizeof(T)) + " bytes");
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }

  std::string text(const std::string& what) {
    const auto length = number<uint64_t>(what + ".length");
    if (length > kLongestString || length > left())
      bad(what, "a text of at most " + std::to_string(std::min(kLongestString, left())) +
                    " bytes, but got " + std::to_string(length));
    at_ += length;
    return bytes_.substr(at_ - length, length);
  }

  void skip_to(uint64_t at) { at_ = std::min<uint64_t>(at, bytes_.size()); }

  // Whether so many numbers more may be kept.
  bool keep(uint64_t count) {
    if (count > kLongestVector || count > numbers_left_) return false;
    numbers_left_ -= count;
    return true;
  }

 private:
  const std::string& bytes_;
  uint64_t at_ = 0;
  uint64_t numbers_left_ = kMostNumbers;
};

// Prepares a name from the file for messages.
std::string shown(const std::string& name) {
  return printable(name.size() > 64 ? name.substr(0, 64) + "..." : name);
}

GgufValue scalar(Reader& in, uint32_t type, const std::string& what) {
  if (type == kUint8) return uint64_t{in.number<uint8_t>(what)};
  if (type == kInt8) return int64_t{in.number<int8_t>(what)};
  if (type == kUint16) return uint64_t{in.number<uint16_t>(what)};
  if (type == kInt16) return int64_t{in.number<int16_t>(what)};
  if (type == kUint32) return uint64_t{in.number<uint32_t>(what)};
  if (type == kInt32) return int64_t{in.number<int32_t>(what)};
  if (type == kUint64) return in.number<uint64_t>(what);
  if (type == kInt64) return in.number<int64_t>(what);
  if (type == kFloat32) return double{in.number<float>(what)};
  if (type == kFloat64) return in.number<double>(what);
  if (type == kString) return in.text(what);
  if (type != kBool) in.bad(what, "a type from 0 to 12, but got " + std::to_string(type));
  const auto flag = in.number<uint8_t>(what);
  if (flag > 1) in.bad(what, "0 or 1");
  return flag == 1;
}

GgufArray array(Reader& in, const std::string& what) {
  const auto type = in.number<uint32_t>(what + ".type");
  if (type == kArray) in.bad(what, "elements that are no arrays");
  GgufArray result;
  result.count = in.number<uint64_t>(what + ".count");
  // Each element takes at least one byte.
  if (result.count > kMostElements || result.count > in.left())
    in.bad(what, "at most " + std::to_string(std::min(kMostElements, in.left())) +
                     " elements, but got " + std::to_string(result.count));
  const bool kept = type == kString || in.keep(result.count);
  for (uint64_t n = 0; n < result.count; ++n) {
    const GgufValue value = scalar(in, type, what);
    if (!kept) continue;
    const auto keep = [&](const auto& x) {
      if constexpr (requires { static_cast<double>(x); })
        result.numbers.push_back(static_cast<double>(x));
    };
    std::visit(keep, value);
  }
  return result;
}

void read_metadata(Reader& in, uint64_t pairs, Gguf& gguf) {
  for (uint64_t n = 0; n < pairs; ++n) {
    const std::string key = in.text("key " + std::to_string(n));
    const std::string what = shown(key);
    if (key.empty()) in.bad("key " + std::to_string(n), "a name");
    const auto type = in.number<uint32_t>(what + ".type");
    GgufValue value = type == kArray ? GgufValue(array(in, what)) : scalar(in, type, what);
    if (!gguf.metadata.emplace(key, std::move(value)).second) in.bad(what, "one such key, not two");
  }
}

void read_tensors(Reader& in, uint64_t count, Gguf& gguf) {
  for (uint64_t n = 0; n < count; ++n) {
    const std::string name = in.text("tensor " + std::to_string(n));
    const std::string what = shown(name);
    GgufTensor tensor;
    const auto dimensions = in.number<uint32_t>(what + ".dimensions");
    if (dimensions > kMostDimensions) in.bad(what + ".dimensions", "at most 8");
    for (uint32_t d = 0; d < dimensions; ++d)
      tensor.sizes.push_back(in.number<uint64_t>(what + ".sizes"));
    tensor.type = in.number<uint32_t>(what + ".type");
    tensor.offset = in.number<uint64_t>(what + ".offset");
    if (!gguf.tensors.emplace(name, tensor).second) in.bad(what, "one such tensor, not two");
  }
}

uint64_t alignment_of(const Reader& in, const Gguf& gguf) {
  const auto found = gguf.metadata.find("general.alignment");
  if (found == gguf.metadata.end()) return 32;
  const auto* alignment = std::get_if<uint64_t>(&found->second);
  if (!alignment || !std::has_single_bit(*alignment) || *alignment > (1 << 20))
    in.bad("general.alignment", "a power of two up to 1048576");
  return *alignment;
}

void read_vectors(Reader& in, uint64_t data, Gguf& gguf, uint64_t bytes) {
  for (const auto& [name, tensor] : gguf.tensors) {
    if (tensor.type != 0 || tensor.sizes.size() != 1 || tensor.sizes[0] > kLongestVector) continue;
    const uint64_t size = 4 * tensor.sizes[0];
    if (data > bytes || tensor.offset > bytes - data || size > bytes - data - tensor.offset)
      continue;
    in.skip_to(data + tensor.offset);
    std::vector<float>& vector = gguf.vectors[name];
    for (uint64_t n = 0; n < tensor.sizes[0]; ++n) vector.push_back(in.number<float>(shown(name)));
  }
}

// --- writing ---

void put_text(std::string& out, const std::string& text) {
  put<uint64_t>(out, text.size());
  out += text;
}

void put_value(std::string& out, const std::string& key, const GgufValue& value) {
  put_text(out, key);
  if (const auto* flag = std::get_if<bool>(&value)) {
    put<uint32_t>(out, kBool);
    put<uint8_t>(out, *flag ? 1 : 0);
  } else if (const auto* number = std::get_if<uint64_t>(&value)) {
    if (*number > std::numeric_limits<uint32_t>::max())
      fail("gguf: " + key + ": expected a number below 2^32, but got " + std::to_string(*number));
    put<uint32_t>(out, kUint32);
    put(out, static_cast<uint32_t>(*number));
  } else if (const auto* real = std::get_if<double>(&value)) {
    put<uint32_t>(out, kFloat32);
    put(out, static_cast<float>(*real));
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    put<uint32_t>(out, kString);
    put_text(out, *text);
  } else if (const auto* array = std::get_if<GgufArray>(&value)) {
    put<uint32_t>(out, kArray);
    put<uint32_t>(out, kInt32);
    put<uint64_t>(out, array->numbers.size());
    for (const double x : array->numbers) put(out, static_cast<int32_t>(x));
  } else {
    fail("gguf: " + key + ": expected a flag, a count, a number, a text or an array");
  }
}

}  // namespace

bool is_gguf(const std::string& bytes) { return bytes.starts_with("GGUF"); }

Gguf parse_gguf(const std::string& bytes) {
  Reader in(bytes);
  if (!is_gguf(bytes)) in.bad("magic", "GGUF");
  in.skip_to(4);
  const auto version = in.number<uint32_t>("version");
  if (version != 2 && version != 3) in.bad("version", "2 or 3, but got " + std::to_string(version));
  const auto tensors = in.number<uint64_t>("tensors");
  const auto pairs = in.number<uint64_t>("pairs");
  if (tensors > kMostTensors) in.bad("tensors", "at most " + std::to_string(kMostTensors));
  if (pairs > kMostPairs) in.bad("pairs", "at most " + std::to_string(kMostPairs));
  Gguf gguf;
  read_metadata(in, pairs, gguf);
  read_tensors(in, tensors, gguf);
  const uint64_t alignment = alignment_of(in, gguf);
  const uint64_t data = (in.at() + alignment - 1) / alignment * alignment;  // both below 2^29
  read_vectors(in, data, gguf, bytes.size());
  return gguf;
}

std::string gguf_bytes(const std::map<std::string, GgufValue>& metadata,
                       const std::map<std::string, std::vector<float>>& vectors) {
  constexpr uint64_t kAlignment = 32;
  std::string out = "GGUF";
  put<uint32_t>(out, 3);
  put<uint64_t>(out, vectors.size());
  put<uint64_t>(out, metadata.size());
  for (const auto& [key, value] : metadata) put_value(out, key, value);
  std::string data;
  for (const auto& [name, vector] : vectors) {
    data.resize((data.size() + kAlignment - 1) / kAlignment * kAlignment);
    put_text(out, name);
    put<uint32_t>(out, 1);
    put<uint64_t>(out, vector.size());
    put<uint32_t>(out, 0);
    put<uint64_t>(out, data.size());
    for (const float x : vector) put(data, x);
  }
  out.resize((out.size() + kAlignment - 1) / kAlignment * kAlignment);
  return out + data;
}

}  // namespace sextant
