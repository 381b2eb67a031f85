// The payload is cut into chunks with a checksum each. A new state is written beside the old one,
// which remains until the new one is whole.
#include "sextant/lab/run/training_state.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/files/checked_bytes.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/read_file.h"
#include "sextant/files/write_file.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kMagic = "SXTCKPT1";
constexpr std::string_view kEndMagic = "SXTCKEND";
constexpr uint32_t kVersion = 1;
constexpr uint64_t kChunkBytes = uint64_t{1} << 20;
constexpr uint64_t kHeaderBytes = 64;
constexpr uint64_t kFooterBytes = 12;
constexpr uint64_t kCrcBytes = 4;
constexpr size_t kKept = 2;

uint32_t chunk_crc(int64_t step, uint64_t chunk, std::string_view bytes) {
  const std::array<uint64_t, 2> place{static_cast<uint64_t>(step), chunk};
  return crc32(crc32(0, {reinterpret_cast<const char*>(place.data()), sizeof place}), bytes);
}

constexpr const char* kWhat = "checkpoint";

std::string payload_of(const TrainingState& state) {
  json sections = json::array();
  uint64_t bytes = 0;
  for (const auto& [name, section] : state.sections) {
    sections.push_back({{"name", name}, {"bytes", section.size()}});
    bytes += section.size();
  }
  const std::string index = json{{"belongs_to", state.belongs_to}, {"sections", sections}}.dump();
  std::string payload;
  payload.reserve(sizeof(uint64_t) + index.size() + bytes);
  put<uint64_t>(payload, index.size());
  payload += index;
  for (const auto& [name, section] : state.sections) payload += section;
  return payload;
}

TrainingState parse_payload(int64_t step, std::string_view payload) {
  ByteReader in(kWhat, payload);
  const auto index_bytes = in.number<uint64_t>("index length");
  const json index = checked_json(std::string(in.take("index", index_bytes)), "checkpoint: index");
  TrainingState state{.step = step};
  JsonFields fields(index, "checkpoint: index");
  fields.read("belongs_to", state.belongs_to);
  for (const json& entry : fields.at("sections")) {
    JsonFields section(entry, "checkpoint: section");
    std::string name;
    uint64_t bytes = 0;
    section.read("name", name);
    section.read("bytes", bytes);
    section.finish();
    const std::string_view content = in.take("section", bytes);
    state.sections.emplace_back(name, content);
  }
  fields.finish();
  if (in.left() != 0) in.wrong("payload", in.at(), "its end, but there is more");
  return state;
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

}  // namespace

std::string training_state_file(const TrainingState& state) {
  const std::string payload = payload_of(state);
  std::string file;
  file.reserve(kHeaderBytes + payload.size() + chunks_of(payload.size()) * kCrcBytes +
               kFooterBytes);
  file += kMagic;
  put(file, kVersion);
  put(file, static_cast<uint32_t>(kChunkBytes));
  put(file, state.step);
  put<uint64_t>(file, payload.size());
  file.append(kHeaderBytes - kCrcBytes - file.size(), '\0');
  put(file, crc32(0, file));
  for (uint64_t chunk = 0; chunk < chunks_of(payload.size()); ++chunk) {
    const std::string_view bytes =
        std::string_view(payload).substr(chunk * kChunkBytes, kChunkBytes);
    file += bytes;
    put(file, chunk_crc(state.step, chunk, bytes));
  }
  file += kEndMagic;
  put(file, crc32(0, file));
  return file;
}

TrainingState parse_training_state(std::string_view file) {
  ByteReader in(kWhat, file);
  in.expect_text("magic", kMagic);
  in.expect("version", kVersion);
  in.expect("chunk size", static_cast<uint32_t>(kChunkBytes));
  const auto step = in.number<int64_t>("step");
  const auto payload_bytes = in.number<uint64_t>("payload bytes");
  in.take("reserved", kHeaderBytes - kCrcBytes - in.at());
  in.expect("header checksum", crc32(0, file.substr(0, kHeaderBytes - kCrcBytes)));
  if (step < 0) in.wrong("step", 16, "0 or more");

  const uint64_t chunks = payload_bytes > file.size() ? 0 : chunks_of(payload_bytes);
  if (payload_bytes > file.size() ||
      file.size() != kHeaderBytes + payload_bytes + chunks * kCrcBytes + kFooterBytes) {
    in.wrong("payload bytes", 24,
             "what fills the file of " + std::to_string(file.size()) + " bytes, but got " +
                 std::to_string(payload_bytes));
  }
  std::string payload;
  payload.reserve(payload_bytes);
  for (uint64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::string_view bytes =
        in.take("chunk", std::min(kChunkBytes, payload_bytes - payload.size()));
    in.expect("chunk checksum", chunk_crc(step, chunk, bytes));
    payload += bytes;
  }
  in.expect_text("end magic", kEndMagic);
  in.expect("file checksum", crc32(0, file.substr(0, file.size() - kCrcBytes)));
  return parse_payload(step, payload);
}

void save_training_state(const TrainingState& state, const fs::path& directory) {
  write_file(path_of(directory, state.step), training_state_file(state));
  const std::vector<int64_t> steps = steps_in(directory);
  for (size_t n = kKept; n < steps.size(); ++n) {
    std::error_code ignored;  // an extra checkpoint does no harm
    fs::remove(path_of(directory, steps[n]), ignored);
  }
}

std::optional<TrainingState> newest_training_state(const fs::path& directory,
                                                   const std::string& belongs_to,
                                                   std::vector<std::string>& remarks) {
  for (const int64_t step : steps_in(directory)) {
    const fs::path path = path_of(directory, step);
    TrainingState state;
    try {
      state = parse_training_state(read_file(path));
    } catch (const Error& error) {
      remarks.push_back(path.string() + " is not used: " + error.what());
      continue;
    }
    if (state.belongs_to != belongs_to)
      fail("checkpoint: " + path.string() + ": expected one of this arm, but it belongs to " +
           state.belongs_to);
    return state;
  }
  return std::nullopt;
}

}  // namespace sextant::lab
