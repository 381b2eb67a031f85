#include "sextant/files/npz.h"

#include <zip.h>

#include <ctime>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/base/printable.h"

namespace sextant {
namespace {

constexpr uint64_t kDeflateRatio = 1032;  // the largest number of bytes that deflate packs into one
constexpr time_t kLongAgo = 315619200;    // 1980-01-02, so that equal arrays give equal files
constexpr std::string_view kSuffix = ".npy";

[[noreturn]] void wrong(const std::filesystem::path& path, const std::string& complaint) {
  fail("npz: " + path.string() + ": expected " + complaint);
}

struct Discard {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
using Archive = std::unique_ptr<zip_t, Discard>;

Archive open(const std::filesystem::path& path, int flags) {
  int code = 0;
  Archive archive(zip_open(path.c_str(), flags, &code));
  if (archive == nullptr) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    wrong(path, "a zip archive, but got: " + reason);
  }
  return archive;
}

// The bytes that entries of an archive may still claim.
struct Budget {
  uint64_t packed;    // bytes of the file not yet claimed by an entry
  uint64_t unpacked;  // bytes of memory not yet claimed
};

zip_stat_t checked_stat(zip_t* archive, zip_uint64_t index, const std::filesystem::path& path,
                        Budget& budget) {
  zip_stat_t entry;
  constexpr zip_uint64_t kNeeded =
      ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  const std::string which = "entry " + std::to_string(index) + " ";
  if (zip_stat_index(archive, index, 0, &entry) != 0 || (entry.valid & kNeeded) != kNeeded) {
    wrong(path, which + "to say its name and sizes, but got none");
  }
  if (entry.comp_method != ZIP_CM_STORE && entry.comp_method != ZIP_CM_DEFLATE) {
    wrong(path, which + "stored or deflated, but got method " + std::to_string(entry.comp_method));
  }
  if (entry.comp_size > budget.packed) {
    wrong(path, which + "within the file, but got " + std::to_string(entry.comp_size) + " bytes");
  }
  // comp_size is below the file's size here, so the product cannot overflow.
  if (entry.size > entry.comp_size * kDeflateRatio || entry.size > budget.unpacked) {
    wrong(path,
          which + "of a size that it can have, but got " + std::to_string(entry.size) + " bytes");
  }
  budget.packed -= entry.comp_size;
  budget.unpacked -= entry.size;
  return entry;
}

std::string checked_name(std::string_view name, const std::filesystem::path& path) {
  if (printable(name) != name) wrong(path, "names without control characters, but got one");
  if (!name.ends_with(kSuffix) || name == kSuffix) {
    wrong(path, "names that end in .npy, but got '" + std::string(name) + "'");
  }
  name.remove_suffix(kSuffix.size());
  return std::string(name);
}

std::vector<std::byte> unpack(zip_t* archive, zip_uint64_t index, uint64_t size,
                              const std::filesystem::path& path) {
  struct Close {
    void operator()(zip_file_t* file) const { zip_fclose(file); }
  };
  const std::unique_ptr<zip_file_t, Close> file(zip_fopen_index(archive, index, 0));
  if (file == nullptr) {
    wrong(path, "readable entries, but got: " + std::string(zip_strerror(archive)));
  }
  std::vector<std::byte> bytes(size);
  std::byte beyond{};
  // The read that reaches the end is the one that checks the CRC.
  if (zip_fread(file.get(), bytes.data(), size) != static_cast<zip_int64_t>(size) ||
      zip_fread(file.get(), &beyond, 1) != 0) {
    wrong(path, "entry " + std::to_string(index) + " whole and with its checksum, but got: " +
                    std::string(zip_file_strerror(file.get())));
  }
  return bytes;
}

}  // namespace

Arrays read_npz(const std::filesystem::path& path, uint64_t max_bytes) {
  if (!std::filesystem::is_regular_file(path)) wrong(path, "a file, but got none");
  Budget budget{std::filesystem::file_size(path), max_bytes};
  const Archive archive = open(path, ZIP_RDONLY | ZIP_CHECKCONS);
  const auto entries = static_cast<zip_uint64_t>(zip_get_num_entries(archive.get(), 0));
  Arrays arrays;
  for (zip_uint64_t index = 0; index < entries; ++index) {
    const zip_stat_t entry = checked_stat(archive.get(), index, path, budget);
    const std::string name = checked_name(entry.name, path);
    const auto bytes = unpack(archive.get(), index, entry.size, path);
    Array array = parse_npy(bytes, path.string() + ": " + name);
    if (!arrays.emplace(name, std::move(array)).second) {
      wrong(path, "each name once, but got '" + name + "' twice");
    }
  }
  return arrays;
}

void write_npz(const std::filesystem::path& path, const Arrays& arrays) {
  if (arrays.empty()) wrong(path, "at least one array, but got none");
  std::vector<std::vector<std::byte>> contents;  // libzip reads them when it closes the archive
  Archive archive = open(path, ZIP_CREATE | ZIP_TRUNCATE);
  for (const auto& [name, array] : arrays) {
    const std::string entry = name + std::string(kSuffix);
    checked_name(entry, path);
    const auto& bytes = contents.emplace_back(format_npy(array));
    zip_source_t* source = zip_source_buffer(archive.get(), bytes.data(), bytes.size(), 0);
    const zip_int64_t index =
        source == nullptr ? -1
                          : zip_file_add(archive.get(), entry.c_str(), source, ZIP_FL_ENC_UTF_8);
    if (index < 0) {
      zip_source_free(source);
      wrong(path, "to add '" + name + "', but got: " + std::string(zip_strerror(archive.get())));
    }
    zip_file_set_mtime(archive.get(), static_cast<zip_uint64_t>(index), kLongAgo, 0);
  }
  if (zip_close(archive.get()) != 0) {
    wrong(path, "to write it, but got: " + std::string(zip_strerror(archive.get())));
  }
  static_cast<void>(archive.release());  // closed
}

}  // namespace sextant
