// Reads whole files that users give, of bounded size. A reader gets regular files and the pipes of
// a shell's <(...); a device, a folder or a named pipe is refused before anything is read.
#pragma once

#include <cstdint>
#include <exception>
#include <filesystem>
#include <string>

namespace sextant {

// The largest sizes of files by kind. Weights, texts and states of trainings are held in memory,
// which is their only limit.
inline constexpr uint64_t kMostJsonBytes = uint64_t{64} << 20;  // the index of a large model: 15 MB
inline constexpr uint64_t kMostTomlBytes = uint64_t{1} << 18;   // toml11 takes seconds for it
inline constexpr uint64_t kMostNoteBytes = uint64_t{1} << 16;   // a line or two

// The memory of this machine.
uint64_t memory_bytes();

// Returns the file's bytes. Throws Error with the path and the reason if it cannot be read, is no
// file, or has more than `most` bytes.
std::string read_file(const std::filesystem::path& path, uint64_t most = memory_bytes());

// The first bytes of a file, at most `most`.
std::string read_start(const std::filesystem::path& path, uint64_t most);

// The first bytes of standard input, which may be anything.
std::string read_start_of_standard_input(uint64_t most);

// Throws Error with the reason of the exception and the path, if the reason does not have it. A
// reason may begin with the file's name without its folder.
[[noreturn]] void fail_in_file(const std::filesystem::path& path, const std::exception& error);

// Returns what read() does. Any exception becomes an Error that names the file.
template <class Read>
auto naming_file(const std::filesystem::path& path, const Read& read) {
  try {
    return read();
  } catch (const std::exception& error) {
    fail_in_file(path, error);
  }
}

}  // namespace sextant
