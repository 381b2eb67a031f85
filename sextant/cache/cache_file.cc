#include "sextant/cache/cache_file.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "sextant/base/packed.h"
#include "sextant/cache/cache_checks.h"
#include "sextant/files/checked_bytes.h"
#include "sextant/files/read_file.h"
#include "sextant/files/write_file.h"

namespace sextant {
namespace {

constexpr std::string_view kMagic = "SXTKVC01";
constexpr uint32_t kFirstFormat = 1;  // DType::kFloat32; the others follow
constexpr uint32_t kPlain = 0xFFFFFFFF;
constexpr uint64_t kHeaderBytes = 72, kCheckedBytes = 64;
constexpr uint64_t kPairBytes = 24, kCrcBytes = 4;
constexpr uint64_t kMostColumns = uint64_t{1} << 20;
constexpr uint64_t kMostRows = uint64_t{1} << 40;

constexpr const char* kWhat = "saved cache";

struct Header {
  DType dtype = DType::kFloat32;
  uint32_t pairs = 0;
  uint64_t heads = 0, key_columns = 0, value_columns = 0, rows = 0;
  int64_t first_position = 0;
  double gain = 1;

  uint64_t turned_pairs() const { return pairs == kPlain ? 0 : pairs; }
  uint64_t number_bytes() const {
    return dtype == DType::kFloat32 ? sizeof(float) : sizeof(uint16_t);
  }
};

Header take_header(ByteReader& in, std::string_view file) {
  in.expect_text("magic", kMagic);
  Header h;
  h.dtype = static_cast<DType>(
      in.between<uint32_t>("format", kFirstFormat,
                           kFirstFormat + static_cast<uint32_t>(DType::kFloat16)) -
      kFirstFormat);
  h.pairs = in.number<uint32_t>("pairs");
  h.heads = in.between<uint64_t>("key heads", 1, kMostColumns);
  h.key_columns = in.between<uint64_t>("key columns", 1, kMostColumns);
  h.value_columns = in.between<uint64_t>("value columns", 0, kMostColumns);
  h.rows = in.between<uint64_t>("rows", 0, kMostRows);
  if (h.pairs != kPlain && h.pairs > h.key_columns / 2)
    in.wrong("pairs", 12, "at most half of the key columns, but got " + std::to_string(h.pairs));
  h.first_position = in.between<int64_t>("first position", -kFarthestPosition, kFarthestPosition);
  const uint64_t at = in.at();
  h.gain = in.number<double>("gain");
  if (!std::isfinite(h.gain) || h.gain <= 0)
    in.wrong("gain", at, "a finite number above 0, but got " + std::to_string(h.gain));
  in.expect("header checksum", crc32(0, file.substr(0, kCheckedBytes)));
  in.expect("header padding", uint32_t{0});
  return h;
}

// Bytes of the body without its checksum; null if they exceed 64 bits: the limits allow 2^20 * 2^40
// * 2^21 * 4.
std::optional<uint64_t> body_bytes(const Header& h) {
  uint64_t bytes = h.heads * (h.key_columns + h.value_columns) * h.number_bytes();  // below 2^44
  if (__builtin_mul_overflow(bytes, h.rows, &bytes) ||
      __builtin_add_overflow(bytes, h.turned_pairs() * kPairBytes, &bytes))
    return std::nullopt;
  return bytes;
}

std::optional<Rotation> take_rotation(ByteReader& in, const Header& h) {
  if (h.pairs == kPlain) return std::nullopt;
  Rotation rotation{.pairs = {}, .gain = h.gain};
  std::vector<bool> used(h.key_columns, false);
  for (uint32_t n = 0; n < h.pairs; ++n) {
    uint32_t columns[2];
    for (uint32_t& column : columns) {
      const uint64_t at = in.at();
      column = in.number<uint32_t>("pair");
      if (column >= h.key_columns || used[column])
        in.wrong("pair", at,
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

// Reads the elements, head by head, into an aligned buffer of their own.
std::vector<std::byte> take_numbers(ByteReader& in, const char* field, uint64_t size) {
  std::vector<std::byte> numbers(size);
  const std::string_view bytes = in.take(field, size);
  if (size > 0) std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

AnyView<float> view(std::vector<std::byte>& data, DType dtype, int64_t heads, int64_t rows,
                    int64_t columns) {
  AnyView<float> view = packed(reinterpret_cast<float*>(data.data()), 1, heads, rows, columns);
  view.dtype = dtype;
  return view;
}

void put_numbers(std::string& out, const std::vector<std::byte>& numbers) {
  out.append(reinterpret_cast<const char*>(numbers.data()), numbers.size());
}

std::string header_of(const KvCache& cache, int64_t sequence) {
  const KvCacheShape& shape = cache.shape();
  const std::optional<Rotation>& rotated_by = cache.rotated_by(sequence);
  std::string out(kMagic);
  put(out, kFirstFormat + static_cast<uint32_t>(shape.dtype));
  put(out, rotated_by ? static_cast<uint32_t>(rotated_by->pairs.size()) : kPlain);
  for (const int64_t size :
       {shape.key_heads, shape.key_columns, shape.value_columns, cache.rows(sequence)})
    put(out, static_cast<uint64_t>(size));
  put(out, cache.first_position(sequence));
  put(out, rotated_by ? rotated_by->gain : 1.0);
  put(out, crc32(0, out));
  put(out, uint32_t{0});
  return out;
}

}  // namespace

std::string cache_file(const KvCache& cache, int64_t sequence) {
  std::string out = header_of(cache, sequence);
  if (const std::optional<Rotation>& rotated_by = cache.rotated_by(sequence))
    for (const Rotation::Pair& pair : rotated_by->pairs) {
      put(out, static_cast<uint32_t>(pair.first));
      put(out, static_cast<uint32_t>(pair.second));
      put(out, pair.speed.high);
      put(out, pair.speed.low);
    }
  const KvCacheShape& shape = cache.shape();
  const int64_t rows = cache.rows(sequence), heads = shape.key_heads;
  const int64_t size = cache.key_pages().element_size();
  std::vector<std::byte> keys(static_cast<size_t>(heads * rows * shape.key_columns * size));
  std::vector<std::byte> values(static_cast<size_t>(heads * rows * shape.value_columns * size));
  cache.read(sequence, 0, view(keys, shape.dtype, heads, rows, shape.key_columns),
             view(values, shape.dtype, heads, rows, shape.value_columns));
  put_numbers(out, keys);
  put_numbers(out, values);
  put(out, crc32(0, std::string_view(out).substr(kHeaderBytes)));
  return out;
}

KvCacheShape cache_file_shape(std::string_view file) {
  ByteReader in(kWhat, file);
  const Header h = take_header(in, file);
  return {.key_heads = static_cast<int64_t>(h.heads),
          .key_columns = static_cast<int64_t>(h.key_columns),
          .value_columns = static_cast<int64_t>(h.value_columns),
          .dtype = h.dtype};
}

int64_t add_cache_file(std::string_view file, KvCache& cache) {
  ByteReader in(kWhat, file);
  const Header h = take_header(in, file);
  const std::optional<uint64_t> body = body_bytes(h);
  if (!body || in.left() < kCrcBytes || in.left() - kCrcBytes != *body)
    in.wrong("body", in.at(),
             (body ? std::to_string(*body) : "more than 2^64") + " bytes and a checksum, but got " +
                 std::to_string(in.left()));
  const std::string_view checked = file.substr(kHeaderBytes, *body);
  ByteReader last(kWhat, file.substr(kHeaderBytes + *body), kHeaderBytes + *body);
  if (last.number<uint32_t>("checksum") != crc32(0, checked))
    in.wrong("checksum", kHeaderBytes + *body, "that of the bytes from 72 on");
  KvCacheShape shape = cache_file_shape(file);
  shape.page_rows = cache.shape().page_rows;
  if (shape != cache.shape())
    in.wrong("key heads", 16, "the heads, columns and format of the cache that it is added to");
  const std::optional<Rotation> rotated_by = take_rotation(in, h);
  const uint64_t numbers = h.heads * h.rows * h.number_bytes();
  std::vector<std::byte> keys = take_numbers(in, "keys", numbers * h.key_columns);
  std::vector<std::byte> values = take_numbers(in, "values", numbers * h.value_columns);
  const int64_t sequence = cache.add(h.first_position, rotated_by);
  const auto rows = static_cast<int64_t>(h.rows);
  cache.append_held(sequence, view(keys, h.dtype, shape.key_heads, rows, shape.key_columns),
                    view(values, h.dtype, shape.key_heads, rows, shape.value_columns));
  return sequence;
}

void save_cache(const KvCache& cache, int64_t sequence, const std::filesystem::path& path) {
  write_file(path, cache_file(cache, sequence));
}

int64_t load_cache(const std::filesystem::path& path, KvCache& cache) {
  return add_cache_file(read_file(path), cache);
}

}  // namespace sextant
