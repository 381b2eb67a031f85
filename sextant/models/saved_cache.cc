#include "sextant/models/saved_cache.h"

#include <zlib.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "sextant/error.h"

namespace sextant {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "SXTKVC01";
constexpr uint32_t kVersion = 1;
constexpr uint32_t kPlain = 0xFFFFFFFF;
constexpr uint64_t kHeaderBytes = 72, kCheckedBytes = 64;
constexpr uint64_t kPairBytes = 24, kCrcBytes = 4;
constexpr uint64_t kMostColumns = uint64_t{1} << 20;
constexpr uint64_t kMostRows = uint64_t{1} << 40;
constexpr int64_t kFarthestPosition = int64_t{1} << 52;

uint32_t crc(std::string_view bytes) {
  return static_cast<uint32_t>(
      ::crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

[[noreturn]] void wrong(const char* field, uint64_t offset, const std::string& expected) {
  fail("saved cache: " + std::string(field) + " at byte " + std::to_string(offset) + ": expected " +
       expected);
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Takes from the front what is known to be there.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : bytes_(bytes) {}

  std::string_view take(const char* field, uint64_t count) {
    if (count > left())
      wrong(field, at_, std::to_string(count) + " bytes, but got " + std::to_string(left()));
    at_ += count;
    return bytes_.substr(at_ - count, count);
  }
  template <class T>
  T number(const char* field) {
    T value;
    std::memcpy(&value, take(field, sizeof value).data(), sizeof value);
    return value;
  }
  uint64_t between(const char* field, uint64_t low, uint64_t high) {
    const uint64_t at = at_, got = number<uint64_t>(field);
    if (got < low || got > high)
      wrong(
          field, at,
          std::to_string(low) + " to " + std::to_string(high) + ", but got " + std::to_string(got));
    return got;
  }
  template <class T>
  void expect(const char* field, T expected) {
    const uint64_t at = at_;
    const T got = number<T>(field);
    if (got != expected)
      wrong(field, at, std::to_string(expected) + ", but got " + std::to_string(got));
  }

  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }

 private:
  std::string_view bytes_;
  uint64_t at_ = 0;
};

struct Header {
  uint32_t pairs = 0;
  uint64_t heads = 0, key_columns = 0, value_columns = 0, rows = 0;
  int64_t first_position = 0;
  double gain = 1;

  uint64_t turned_pairs() const { return pairs == kPlain ? 0 : pairs; }
};

Header take_header(Cursor& in, std::string_view file) {
  if (in.take("magic", kMagic.size()) != kMagic) wrong("magic", 0, std::string(kMagic));
  in.expect("version", kVersion);
  Header h;
  h.pairs = in.number<uint32_t>("pairs");
  h.heads = in.between("key heads", 1, kMostColumns);
  h.key_columns = in.between("key columns", 1, kMostColumns);
  h.value_columns = in.between("value columns", 0, kMostColumns);
  h.rows = in.between("rows", 0, kMostRows);
  if (h.pairs != kPlain && h.pairs > h.key_columns / 2)
    wrong("pairs", 12, "at most half of the key columns, but got " + std::to_string(h.pairs));
  uint64_t at = in.at();
  h.first_position = in.number<int64_t>("first position");
  if (h.first_position < -kFarthestPosition || h.first_position > kFarthestPosition)
    wrong("first position", at, "-2^52 to 2^52, but got " + std::to_string(h.first_position));
  at = in.at();
  h.gain = in.number<double>("gain");
  if (!std::isfinite(h.gain) || h.gain <= 0)
    wrong("gain", at, "a finite number above 0, but got " + std::to_string(h.gain));
  in.expect("header checksum", crc(file.substr(0, kCheckedBytes)));
  in.expect("header padding", uint32_t{0});
  return h;
}

// Bytes of the body without its checksum, which fit: 2^20 * 2^40 * 2^21 * 4 would not.
std::optional<uint64_t> body_bytes(const Header& h) {
  uint64_t bytes = h.heads * (h.key_columns + h.value_columns) * sizeof(float);  // below 2^44
  if (__builtin_mul_overflow(bytes, h.rows, &bytes) ||
      __builtin_add_overflow(bytes, h.turned_pairs() * kPairBytes, &bytes))
    return std::nullopt;
  return bytes;
}

std::optional<Rotation> take_rotation(Cursor& in, const Header& h) {
  if (h.pairs == kPlain) return std::nullopt;
  Rotation rotation{.pairs = {}, .gain = h.gain};
  std::vector<bool> used(h.key_columns, false);
  for (uint32_t n = 0; n < h.pairs; ++n) {
    uint32_t columns[2];
    for (uint32_t& column : columns) {
      const uint64_t at = in.at();
      column = in.number<uint32_t>("pair");
      if (column >= h.key_columns || used[column])
        wrong("pair", at,
              "a column below " + std::to_string(h.key_columns) +
                  " that no other pair has, but got " + std::to_string(column));
      used[column] = true;
    }
    const auto high = in.number<uint64_t>("speed"), low = in.number<uint64_t>("speed");
    rotation.pairs.push_back({.first = static_cast<int>(columns[0]),
                              .second = static_cast<int>(columns[1]),
                              .speed = {high, low}});
  }
  return rotation;
}

std::vector<float> take_floats(Cursor& in, const char* field, uint64_t count) {
  std::vector<float> floats(count);
  const std::string_view bytes = in.take(field, count * sizeof(float));
  if (count > 0) std::memcpy(floats.data(), bytes.data(), bytes.size());
  return floats;
}

template <class T>
View<T> view(T* data, uint64_t heads, uint64_t rows, uint64_t columns) {
  const auto r = static_cast<int64_t>(rows), c = static_cast<int64_t>(columns);
  return {data, 1, static_cast<int64_t>(heads), r, c, 0, r * c, c, 1};
}

void put_floats(std::string& out, const std::vector<float>& floats) {
  out.append(reinterpret_cast<const char*>(floats.data()), floats.size() * sizeof(float));
}

std::string header_of(const KvCache& cache, int64_t text) {
  const KvCacheShape& shape = cache.shape();
  const std::optional<Rotation>& turned_by = cache.turned_by(text);
  std::string out(kMagic);
  put(out, kVersion);
  put(out, turned_by ? static_cast<uint32_t>(turned_by->pairs.size()) : kPlain);
  for (const int64_t size :
       {shape.key_heads, shape.key_columns, shape.value_columns, cache.rows(text)})
    put(out, static_cast<uint64_t>(size));
  put(out, cache.first_position(text));
  put(out, turned_by ? turned_by->gain : 1.0);
  put(out, crc(out));
  put(out, uint32_t{0});
  return out;
}

}  // namespace

std::string cache_file(const KvCache& cache, int64_t text) {
  std::string out = header_of(cache, text);
  if (const std::optional<Rotation>& turned_by = cache.turned_by(text))
    for (const Rotation::Pair& pair : turned_by->pairs) {
      put(out, static_cast<uint32_t>(pair.first));
      put(out, static_cast<uint32_t>(pair.second));
      put(out, pair.speed.high);
      put(out, pair.speed.low);
    }
  const KvCacheShape& shape = cache.shape();
  const int64_t rows = cache.rows(text), heads = shape.key_heads;
  std::vector<float> keys(static_cast<size_t>(heads * rows * shape.key_columns));
  std::vector<float> values(static_cast<size_t>(heads * rows * shape.value_columns));
  const auto size = [](int64_t n) { return static_cast<uint64_t>(n); };
  cache.read(text, 0, view(keys.data(), size(heads), size(rows), size(shape.key_columns)),
             view(values.data(), size(heads), size(rows), size(shape.value_columns)));
  put_floats(out, keys);
  put_floats(out, values);
  put(out, crc(std::string_view(out).substr(kHeaderBytes)));
  return out;
}

KvCacheShape cache_file_shape(std::string_view file) {
  Cursor in(file);
  const Header h = take_header(in, file);
  return {.key_heads = static_cast<int64_t>(h.heads),
          .key_columns = static_cast<int64_t>(h.key_columns),
          .value_columns = static_cast<int64_t>(h.value_columns)};
}

int64_t add_cache_file(std::string_view file, KvCache& cache) {
  Cursor in(file);
  const Header h = take_header(in, file);
  const std::optional<uint64_t> body = body_bytes(h);
  if (!body || in.left() < kCrcBytes || in.left() - kCrcBytes != *body)
    wrong("body", in.at(),
          (body ? std::to_string(*body) : "more than 2^64") + " bytes and a checksum, but got " +
              std::to_string(in.left()));
  const std::string_view checked = file.substr(kHeaderBytes, *body);
  Cursor last(file.substr(kHeaderBytes + *body));
  if (last.number<uint32_t>("checksum") != crc(checked))
    wrong("checksum", kHeaderBytes + *body, "that of the bytes from 72 on");
  KvCacheShape shape = cache_file_shape(file);
  shape.page_rows = cache.shape().page_rows;
  if (shape != cache.shape())
    wrong("key heads", 16, "the heads and columns of the cache that it is added to");
  const std::optional<Rotation> turned_by = take_rotation(in, h);
  const std::vector<float> keys = take_floats(in, "keys", h.heads * h.rows * h.key_columns);
  const std::vector<float> values = take_floats(in, "values", h.heads * h.rows * h.value_columns);
  const int64_t text = cache.add(h.first_position, turned_by);
  cache.append_held(text, view(keys.data(), h.heads, h.rows, h.key_columns),
                    view(values.data(), h.heads, h.rows, h.value_columns));
  return text;
}

}  // namespace sextant
