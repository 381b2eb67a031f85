#include "fuzz/readers.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "fuzz/lab_readers.h"
#include "fuzz/rope_config_readers.h"
#include "sextant/base/packed.h"
#include "sextant/cache/cache_file.h"
#include "sextant/cache/kv_cache.h"
#include "sextant/files/checked_bytes.h"
#include "sextant/files/safetensors.h"
#include "sextant/lab/run/training_state.h"

namespace sextant::fuzz {
namespace {

// Small sizes, so that a mutated size is often a plausible one.
constexpr KvCacheShape kCacheShape = {
    .key_heads = 1, .key_columns = 4, .value_columns = 2, .page_rows = 16};

void read_saved_cache(const std::string& bytes) {
  KvCacheShape shape = kCacheShape;
  const KvCacheShape found = cache_file_shape(bytes);
  shape.dtype = found.dtype;
  shape.int8 = found.int8;
  KvCache cache(shape);
  cache_file(cache, add_cache_file(bytes, cache));
}

std::vector<std::string> saved_caches() {
  KvCacheShape narrow_shape = kCacheShape;
  narrow_shape.dtype = DType::kBfloat16;
  KvCache cache(kCacheShape), narrow(narrow_shape);
  std::vector<float> rows(20 * 4, 0.5F);
  const std::optional<Rotation> rotations[] = {std::nullopt, rotation(rotary({.dim = 4}))};
  std::vector<std::string> files;
  for (const auto& rotated_by : rotations)
    for (const int64_t count : {0, 1, 20}) {
      const int64_t text = cache.add(-3, rotated_by);
      cache.append(text, packed<const float>(rows.data(), 1, 1, count, 4),
                   packed<const float>(rows.data(), 1, 1, count, 2));
      files.push_back(cache_file(cache, text));
    }
  narrow_shape.int8 = true;
  KvCache int8(narrow_shape);
  for (KvCache* other : {&narrow, &int8}) {
    const int64_t sequence = other->add();
    other->append(sequence, packed<const float>(rows.data(), 1, 1, 20, 4),
                  packed<const float>(rows.data(), 1, 1, 20, 2));
    files.push_back(cache_file(*other, sequence));
  }
  return files;
}

void seal_saved_cache(std::string& bytes) {
  const auto seal = [&](size_t first, size_t last) {
    const uint32_t crc = crc32(0, std::string_view(bytes).substr(first, last - first));
    std::memcpy(bytes.data() + last, &crc, sizeof crc);
  };
  if (bytes.size() >= 68) seal(0, 64);
  if (bytes.size() >= 76) seal(72, bytes.size() - 4);
}

void read_safetensors(const std::string& bytes) { parse_safetensors(bytes); }

std::vector<std::string> safetensors() {
  const std::string data(24, '\1');
  return {safetensors_file({.tensors = {{"a", "F32", {2, 3}, data}, {"b.c", "I64", {}, "01234567"}},
                            .metadata = {{"format", "pt"}}}),
          safetensors_file({})};
}

void read_checkpoint(const std::string& bytes) { lab::parse_training_state(bytes); }

std::vector<std::string> checkpoints() {
  return {lab::training_state_file(
      {.step = 7, .belongs_to = "{}", .sections = {{"weights", "0123456789"}, {"empty", ""}}})};
}

void seal_checkpoint(std::string& bytes) {
  const auto put_crc = [&](size_t at, uint32_t crc) {
    std::memcpy(bytes.data() + at, &crc, sizeof crc);
  };
  if (bytes.size() < 64 + 16) return;
  const std::string_view view = bytes;
  put_crc(60, crc32(0, view.substr(0, 60)));
  // One chunk, up to its checksum and the footer of 12 bytes.
  std::string place(view.substr(16, 8));
  place.append(8, '\0');
  put_crc(bytes.size() - 16, crc32(crc32(0, place), view.substr(64, bytes.size() - 80)));
  put_crc(bytes.size() - 4, crc32(0, view.substr(0, bytes.size() - 4)));
}

constexpr Reader kReaders[] = {
    {"saved-cache", read_saved_cache, saved_caches, seal_saved_cache},
    {"safetensors", read_safetensors, safetensors},
    {"checkpoint", read_checkpoint, checkpoints, seal_checkpoint},
};

}  // namespace

std::span<const Reader> readers() {
  static const std::vector<Reader> all = [] {
    std::vector<Reader> readers(std::begin(kReaders), std::end(kReaders));
    for (const std::span<const Reader> others : {rope_config_readers(), lab_readers()}) {
      readers.insert(readers.end(), others.begin(), others.end());
    }
    return readers;
  }();
  return all;
}

}  // namespace sextant::fuzz
