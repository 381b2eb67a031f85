// A file is a header and a body, each with a checksum (cache_file.h). A reader compares sizes with
// the bytes that are there before it takes memory.
#include "sextant/cache/cache_file.h"

#include <cmath>
#include <cstddef>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "sextant/base/packed.h"
#include "sextant/cache/cache_checks.h"
#include "sextant/cache/stored_rows.h"
#include "sextant/files/checked_bytes.h"
#include "sextant/files/read_file.h"
#include "sextant/files/write_file.h"

namespace sextant {
namespace {

constexpr std::string_view kMagic = "SXTKVC01";
constexpr uint32_t kFirstFormat = 1;  // DType::kFloat32; the others follow
constexpr uint32_t kDTypes = 3;       // and then those with int8
constexpr uint32_t kPlain = 0xFFFFFFFF;
constexpr uint64_t kHeaderBytes = 72, kCheckedBytes = 64;
constexpr uint64_t kPairBytes = 24, kCrcBytes = 4, kScaleBytes = 4;
constexpr uint64_t kMostColumns = uint64_t{1} << 20;
constexpr uint64_t kMostRows = uint64_t{1} << 40;

constexpr const char* kWhat = "saved cache";

struct Header {
  DType dtype = DType::kFloat32;
  bool int8 = false;
  uint32_t pairs = 0;
  uint64_t heads = 0, key_columns = 0, value_columns = 0, rows = 0;
  uint64_t page_rows = 0;  // of int8
  int64_t first_position = 0;
  double gain = 1;

  uint64_t turned_pairs() const { return pairs == kPlain ? 0 : pairs; }
  uint64_t int8_pages() const { return int8 ? rows / page_rows : 0; }
  uint64_t other_rows() const { return int8 ? rows % page_rows : rows; }
  uint64_t number_bytes() const {
    return dtype == DType::kFloat32 ? sizeof(float) : sizeof(uint16_t);
  }
};

Header take_header(ByteReader& in, std::string_view file) {
  in.expect_text("magic", kMagic);
  Header h;
  const uint32_t format =
      in.between<uint32_t>("format", kFirstFormat, kFirstFormat + 2 * kDTypes - 1) - kFirstFormat;
  h.dtype = static_cast<DType>(format % kDTypes);
  h.int8 = format >= kDTypes;
  h.pairs = in.number<uint32_t>("pairs");
  h.heads = in.between<uint64_t>("key heads", 1, kMostColumns);
  h.key_columns = in.between<uint64_t>("key columns", 1, kMostColumns);
  h.value_columns = in.between<uint64_t>("value columns", 0, kMostColumns);
  h.rows = in.between<uint64_t>("rows", 0, kMostRows);
  if (h.int8 && h.pairs != kPlain)
    in.wrong("pairs", 12,
             "2^32 - 1, as int8 keys are unrotated, but got " + std::to_string(h.pairs));
  if (h.pairs != kPlain && h.pairs > h.key_columns / 2)
    in.wrong("pairs", 12, "at most half of the key columns, but got " + std::to_string(h.pairs));
  h.first_position = in.between<int64_t>("first position", -kFarthestPosition, kFarthestPosition);
  const uint64_t at = in.at();
  h.gain = in.number<double>("gain");
  if (!std::isfinite(h.gain) || h.gain <= 0)
    in.wrong("gain", at, "a finite number above 0, but got " + std::to_string(h.gain));
  in.expect("header checksum", crc32(0, file.substr(0, kCheckedBytes)));
  in.expect("header padding", uint32_t{0});
  if (h.int8) {
    h.page_rows = in.between<uint64_t>("page rows", kPageUnit, kMostRows);
    if (h.page_rows % kPageUnit != 0)
      in.wrong("page rows", kHeaderBytes,
               "a multiple of " + std::to_string(kPageUnit) + ", but got " +
                   std::to_string(h.page_rows));
  }
  return h;
}

// Bytes of the body without its checksum; null if they exceed 64 bits: the limits allow 2^20 * 2^40
// * 2^21 * 4.
std::optional<uint64_t> body_bytes(const Header& h) {
  const uint64_t columns = h.heads * (h.key_columns + h.value_columns);  // below 2^42
  uint64_t bytes = 0, integers = 0, scales = 0;
  if (__builtin_mul_overflow(columns * h.number_bytes(), h.other_rows(), &bytes) ||
      __builtin_mul_overflow(columns + h.heads * kScaleBytes, h.int8_pages() * h.page_rows,
                             &integers) ||
      __builtin_mul_overflow(h.heads * h.key_columns * kScaleBytes, h.int8_pages(), &scales) ||
      __builtin_add_overflow(bytes, integers, &bytes) ||
      __builtin_add_overflow(bytes, scales, &bytes) ||
      __builtin_add_overflow(bytes, h.turned_pairs() * kPairBytes, &bytes) ||
      __builtin_add_overflow(bytes, h.int8 ? sizeof(uint64_t) : 0, &bytes))
    return std::nullopt;
  return bytes;
}

// The integers and scales of pages, as they lie in a file.
struct Int8Bytes {
  std::vector<std::byte> numbers, scale;

  Int8Pages<float> page(int64_t heads, int64_t rows, int64_t columns, bool by_column) const {
    return {packed(reinterpret_cast<const int8_t*>(numbers.data()), 1, heads, rows, columns),
            packed(reinterpret_cast<const float*>(scale.data()), 1, heads, by_column ? 1 : rows,
                   by_column ? columns : 1)};
  }
};

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
    const auto high = in.number<uint64_t>("frequency"), low = in.number<uint64_t>("frequency");
    rotation.pairs.push_back({.first = static_cast<int>(columns[0]),
                              .second = static_cast<int>(columns[1]),
                              .frequency = {high, low}});
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

Int8Bytes take_int8(ByteReader& in, const Header& h, const char* field, uint64_t numbers,
                    uint64_t scales) {
  const uint64_t at = in.at();
  Int8Bytes page;
  page.scale = take_numbers(in, field, scales * kScaleBytes);
  for (uint64_t n = 0; n < scales; ++n) {
    float scale = 0;
    std::memcpy(&scale, page.scale.data() + n * kScaleBytes, kScaleBytes);
    if (!std::isfinite(scale * 127) || scale < 0 || stored_rows::overflows(scale * 127, h.dtype))
      in.wrong(field, at + n * kScaleBytes,
               "a scale of at least 0 whose products with integers the format holds, but got " +
                   std::to_string(scale));
  }
  page.numbers = take_numbers(in, field, numbers);
  return page;
}

void put_view(std::string& out, const auto& x, int64_t page) {
  const int64_t bytes = x.batch_stride * static_cast<int64_t>(sizeof *x.data);
  out.append(reinterpret_cast<const char*>(x.at(page, 0, 0)), static_cast<size_t>(bytes));
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
  const std::optional<Rotation>& rotated_keys = cache.rotated_keys(sequence);
  std::string out(kMagic);
  put(out, kFirstFormat + static_cast<uint32_t>(shape.dtype) + (shape.int8 ? kDTypes : 0));
  put(out, rotated_keys ? static_cast<uint32_t>(rotated_keys->pairs.size()) : kPlain);
  for (const int64_t size :
       {shape.key_heads, shape.key_columns, shape.value_columns, cache.rows(sequence)})
    put(out, static_cast<uint64_t>(size));
  put(out, cache.first_position(sequence));
  put(out, rotated_keys ? rotated_keys->gain : 1.0);
  put(out, crc32(0, out));
  put(out, uint32_t{0});
  return out;
}

}  // namespace

std::string cache_file(const KvCache& cache, int64_t sequence) {
  std::string out = header_of(cache, sequence);
  if (const std::optional<Rotation>& rotated_keys = cache.rotated_keys(sequence))
    for (const Rotation::Pair& pair : rotated_keys->pairs) {
      put(out, static_cast<uint32_t>(pair.first));
      put(out, static_cast<uint32_t>(pair.second));
      put(out, pair.frequency.high);
      put(out, pair.frequency.low);
    }
  const KvCacheShape& shape = cache.shape();
  const int64_t heads = shape.key_heads;
  int64_t rows = cache.rows(sequence), first = 0;
  if (shape.int8) {
    put(out, static_cast<uint64_t>(shape.page_rows));
    first = rows / shape.page_rows * shape.page_rows;
    rows -= first;
    for (int64_t n = 0; n < first / shape.page_rows; ++n)
      for (const Int8Pages<float>& pages : {cache.int8_key_pages(), cache.int8_value_pages()}) {
        const int64_t page = -1 - cache.pages(sequence)[static_cast<size_t>(n)];
        put_view(out, pages.scale, page);
        put_view(out, pages.numbers, page);
      }
  }
  const int64_t size = cache.key_pages().element_size();
  std::vector<std::byte> keys(static_cast<size_t>(heads * rows * shape.key_columns * size));
  std::vector<std::byte> values(static_cast<size_t>(heads * rows * shape.value_columns * size));
  cache.read(sequence, first, view(keys, shape.dtype, heads, rows, shape.key_columns),
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
          .page_rows = h.int8 ? static_cast<int64_t>(h.page_rows) : KvCacheShape().page_rows,
          .dtype = h.dtype,
          .int8 = h.int8};
}

int64_t add_cache_file(std::string_view file, KvCache& cache) {
  ByteReader in(kWhat, file);
  const Header h = take_header(in, file);
  const std::optional<uint64_t> body = body_bytes(h);
  const uint64_t left = file.size() - kHeaderBytes;
  if (!body || left < kCrcBytes || left - kCrcBytes != *body)
    in.wrong("body", kHeaderBytes,
             (body ? std::to_string(*body) : "more than 2^64") + " bytes and a checksum, but got " +
                 std::to_string(left));
  const std::string_view checked = file.substr(kHeaderBytes, *body);
  ByteReader last(kWhat, file.substr(kHeaderBytes + *body), kHeaderBytes + *body);
  if (last.number<uint32_t>("checksum") != crc32(0, checked))
    in.wrong("checksum", kHeaderBytes + *body, "that of the bytes from 72 on");
  KvCacheShape shape = cache_file_shape(file);
  if (h.int8 && cache.shape().int8 && shape.page_rows != cache.shape().page_rows)
    in.wrong("page rows", kHeaderBytes,
             std::to_string(cache.shape().page_rows) +
                 ", as the cache that it is added to, but got " + std::to_string(shape.page_rows));
  shape.page_rows = cache.shape().page_rows;
  if (shape != cache.shape())
    in.wrong("key heads", 16, "the heads, columns and format of the cache that it is added to");
  const std::optional<Rotation> rotated_keys = take_rotation(in, h);
  std::vector<std::pair<Int8Bytes, Int8Bytes>> pages;
  const uint64_t in_page = h.heads * h.page_rows;
  for (uint64_t n = 0; n < h.int8_pages(); ++n) {
    Int8Bytes k = take_int8(in, h, "keys", in_page * h.key_columns, h.heads * h.key_columns);
    Int8Bytes v = take_int8(in, h, "values", in_page * h.value_columns, in_page);
    pages.emplace_back(std::move(k), std::move(v));
  }
  const uint64_t numbers = h.heads * h.other_rows() * h.number_bytes();
  std::vector<std::byte> keys = take_numbers(in, "keys", numbers * h.key_columns);
  std::vector<std::byte> values = take_numbers(in, "values", numbers * h.value_columns);
  const int64_t sequence = cache.add(h.first_position, rotated_keys);
  try {
    for (const auto& [k, v] : pages)
      cache.append_int8(sequence, k.page(shape.key_heads, shape.page_rows, shape.key_columns, true),
                        v.page(shape.key_heads, shape.page_rows, shape.value_columns, false));
    const auto rows = static_cast<int64_t>(h.other_rows());
    cache.append_stored(sequence, view(keys, h.dtype, shape.key_heads, rows, shape.key_columns),
                        view(values, h.dtype, shape.key_heads, rows, shape.value_columns));
  } catch (...) {
    cache.remove(sequence);
    throw;
  }
  return sequence;
}

void save_cache(const KvCache& cache, int64_t sequence, const std::filesystem::path& path) {
  write_file(path, cache_file(cache, sequence));
}

int64_t load_cache(const std::filesystem::path& path, KvCache& cache) {
  return add_cache_file(read_file(path), cache);
}

}  // namespace sextant
