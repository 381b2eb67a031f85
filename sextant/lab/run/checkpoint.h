// A training's state on disk, so that kill -9, a full disk or a flipped bit costs seconds of work
// and never a result.
//
//   header   64 bytes: magic, version, chunk size, step, payload bytes, CRC-32 of the header
//   chunks   1 MiB of payload each (the last one shorter), each with its CRC-32
//   footer   magic, CRC-32 of all before it
//   payload  length of the index, index (JSON: what the state belongs to; names and sizes),
//   sections
//
// A chunk's CRC begins with the step and the chunk's number, so chunks of two checkpoints cannot be
// mixed. A file is written beside its name, flushed and renamed; the last two are kept, and reading
// takes the newest that is whole. The reader trusts nothing: see checkpoint_test.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sextant::lab {

struct Checkpoint {
  int64_t step = 0;        // steps done; also the position in the data
  std::string belongs_to;  // JSON of settings, arm and text: whose state it is
  std::vector<std::pair<std::string, std::string>> sections;  // name, bytes
};

std::string checkpoint_file(const Checkpoint& checkpoint);
// Throws Error that names the field and where it stands.
Checkpoint parse_checkpoint(std::string_view file);

// Writes DIRECTORY/checkpoint-STEP.sxt; when it is safe, removes all but this one and the one
// before.
void save_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& directory);

// The newest whole checkpoint in the directory; none: start at the beginning. What was found and
// not used, and why, is added to `remarks`. Throws Error if a whole checkpoint belongs to something
// else.
std::optional<Checkpoint> newest_checkpoint(const std::filesystem::path& directory,
                                            const std::string& belongs_to,
                                            std::vector<std::string>& remarks);

}  // namespace sextant::lab
