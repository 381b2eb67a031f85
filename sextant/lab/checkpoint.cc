#include "sextant/lab/checkpoint.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "sextant/chart/write_file.h"
#include "sextant/error.h"
#include "sextant/models/json_fields.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kMagic = "SXTCKPT1";
constexpr std::string_view kEndMagic = "SXTCKEND";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kChunkBytes = uint64_t{1} << 20;
constexpr uint64_t kHeaderBytes = 64;
constexpr uint64_t kFooterBytes = 12;
constexpr uint64_t kCrcBytes = 4;
constexpr size_t kKept = 2;

uint32_t crc(uint32_t so_far, std::string_view bytes) {
  return static_cast<uint32_t>(
      ::crc32_z(so_far, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

uint32_t chunk_crc(int64_t step, uint64_t chunk, std::string_view bytes) {
  const std::array<uint64_t, 2> place{static_cast<uint64_t>(step), chunk};
  return crc(crc(0, {reinterpret_cast<const char*>(place.data()), sizeof place}), bytes);
}

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

[[noreturn]] void wrong(const std::string& field, uint64_t offset, const std::string& expected) {
  fail("checkpoint: " + field + " at byte " + std::to_string(offset) + ": expected " + expected);
}

// Takes from the front of bytes that are known to be there, or says which field is cut off.
class Cursor {
 public:
  Cursor(std::string_view bytes, uint64_t offset) : bytes_(bytes), offset_(offset) {}

  std::string_view take(const char* field, uint64_t count) {
    if (count > bytes_.size()) {
      wrong(field, offset_,
            std::to_string(count) + " bytes, but got " + std::to_string(bytes_.size()));
    }
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    offset_ += count;
    return taken;
  }

  template <class T>
  T number(const char* field) {
    T value;
    std::memcpy(&value, take(field, sizeof value).data(), sizeof value);
    return value;
  }

  template <class T>
  void expect(const char* field, T expected) {
    const uint64_t offset = offset_;
    const T got = number<T>(field);
    if (got != expected) {
      wrong(field, offset, std::to_string(expected) + ", but got " + std::to_string(got));
    }
  }

  void expect(const char* field, std::string_view expected) {
    const uint64_t offset = offset_;
    if (take(field, expected.size()) != expected) wrong(field, offset, std::string(expected));
  }

  uint64_t offset() const { return offset_; }
  uint64_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
  uint64_t offset_;
};

std::string payload_of(const Checkpoint& checkpoint) {
  json sections = json::array();
  uint64_t bytes = 0;
  for (const auto& [name, section] : checkpoint.sections) {
    sections.push_back({{"name", name}, {"bytes", section.size()}});
    bytes += section.size();
  }
  const std::string index =
      json{{"belongs_to", checkpoint.belongs_to}, {"sections", sections}}.dump();
  std::string payload;
  payload.reserve(sizeof(uint64_t) + index.size() + bytes);
  put<uint64_t>(payload, index.size());
  payload += index;
  for (const auto& [name, section] : checkpoint.sections) payload += section;
  return payload;
}

Checkpoint parse_payload(int64_t step, std::string_view payload) {
  Cursor cursor(payload, 0);
  const auto index_bytes = cursor.number<uint64_t>("index length");
  const std::string_view text = cursor.take("index", index_bytes);
  const json index = json::parse(text, nullptr, /*allow_exceptions=*/false);
  Checkpoint checkpoint{.step = step, .belongs_to = {}, .sections = {}};
  JsonFields fields(index, "checkpoint: index");
  fields.read("belongs_to", checkpoint.belongs_to);
  for (const json& entry : fields.at("sections")) {
    JsonFields section(entry, "checkpoint: section");
    std::string name;
    uint64_t bytes = 0;
    section.read("name", name);
    section.read("bytes", bytes);
    section.finish();
    const std::string_view content = cursor.take("section", bytes);
    checkpoint.sections.emplace_back(name, content);
  }
  fields.finish();
  if (cursor.left() != 0) wrong("payload", cursor.offset(), "its end, but there is more");
  return checkpoint;
}

uint64_t chunks_of(uint64_t payload_bytes) {
  return payload_bytes / kChunkBytes + (payload_bytes % kChunkBytes != 0);
}

constexpr std::string_view kPrefix = "checkpoint-";
constexpr std::string_view kSuffix = ".sxt";

// Steps of the checkpoints in a directory, newest first.
std::vector<int64_t> steps_in(const fs::path& directory) {
  std::vector<int64_t> steps;
  if (!fs::is_directory(directory)) return steps;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || !name.ends_with(kSuffix)) continue;
    name = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
    int64_t step = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
    if (error == std::errc{} && end == name.data() + name.size()) steps.push_back(step);
  }
  std::ranges::sort(steps, std::greater<>{});
  return steps;
}

fs::path path_of(const fs::path& directory, int64_t step) {
  std::string digits = std::to_string(step);
  digits.insert(0, digits.size() < 8 ? 8 - digits.size() : 0, '0');
  return directory / (std::string(kPrefix) + digits + std::string(kSuffix));
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!file) fail("checkpoint: " + path.string() + ": expected a file that can be read");
  return bytes;
}

}  // namespace

std::string checkpoint_file(const Checkpoint& checkpoint) {
  const std::string payload = payload_of(checkpoint);
  std::string file;
  file.reserve(kHeaderBytes + payload.size() + chunks_of(payload.size()) * kCrcBytes +
               kFooterBytes);
  file += kMagic;
  put(file, kVersion);
  put(file, static_cast<uint32_t>(kChunkBytes));
  put(file, checkpoint.step);
  put<uint64_t>(file, payload.size());
  file.append(kHeaderBytes - kCrcBytes - file.size(), '\0');
  put(file, crc(0, file));
  for (uint64_t chunk = 0; chunk < chunks_of(payload.size()); ++chunk) {
    const std::string_view bytes =
        std::string_view(payload).substr(chunk * kChunkBytes, kChunkBytes);
    file += bytes;
    put(file, chunk_crc(checkpoint.step, chunk, bytes));
  }
  file += kEndMagic;
  put(file, crc(0, file));
  return file;
}

Checkpoint parse_checkpoint(std::string_view file) {
  Cursor cursor(file, 0);
  cursor.expect("magic", kMagic);
  cursor.expect("version", kVersion);
  cursor.expect("chunk size", static_cast<uint32_t>(kChunkBytes));
  const auto step = cursor.number<int64_t>("step");
  const auto payload_bytes = cursor.number<uint64_t>("payload bytes");
  cursor.take("reserved", kHeaderBytes - kCrcBytes - cursor.offset());
  cursor.expect("header checksum", crc(0, file.substr(0, kHeaderBytes - kCrcBytes)));
  if (step < 0) wrong("step", 16, "0 or more");

  const uint64_t chunks = payload_bytes > file.size() ? 0 : chunks_of(payload_bytes);
  if (payload_bytes > file.size() ||
      file.size() != kHeaderBytes + payload_bytes + chunks * kCrcBytes + kFooterBytes) {
    wrong("payload bytes", 24,
          "what fills the file of " + std::to_string(file.size()) + " bytes, but got " +
              std::to_string(payload_bytes));
  }
  std::string payload;
  payload.reserve(payload_bytes);
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::string_view bytes =
        cursor.take("chunk", std::min(kChunkBytes, payload_bytes - payload.size()));
    cursor.expect("chunk checksum", chunk_crc(step, chunk, bytes));
    payload += bytes;
  }
  cursor.expect("end magic", kEndMagic);
  cursor.expect("file checksum", crc(0, file.substr(0, file.size() - kCrcBytes)));
  return parse_payload(step, payload);
}

void save_checkpoint(const Checkpoint& checkpoint, const fs::path& directory) {
  chart::write_file(path_of(directory, checkpoint.step), checkpoint_file(checkpoint));
  const std::vector<int64_t> steps = steps_in(directory);
  for (size_t n = kKept; n < steps.size(); ++n) {
    std::error_code ignored;  // one too many does no harm
    fs::remove(path_of(directory, steps[n]), ignored);
  }
}

std::optional<Checkpoint> newest_checkpoint(const fs::path& directory,
                                            const std::string& belongs_to,
                                            std::vector<std::string>& remarks) {
  for (const int64_t step : steps_in(directory)) {
    const fs::path path = path_of(directory, step);
    Checkpoint checkpoint;
    try {
      checkpoint = parse_checkpoint(read_file(path));
    } catch (const Error& error) {
      remarks.push_back(path.string() + " is not used: " + error.what());
      continue;
    }
    if (checkpoint.belongs_to != belongs_to) {
      fail("checkpoint: " + path.string() + ": expected one of this arm, but it belongs to " +
           checkpoint.belongs_to);
    }
    return checkpoint;
  }
  return std::nullopt;
}

}  // namespace sextant::lab
