#include "sextant/chart/svg.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <png.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "sextant/base/error.h"

extern char** environ;  // NOLINT: POSIX has programs declare it themselves

namespace sextant::chart {
namespace {

// An unnamed temporary file, deleted when closed. Files instead of pipes avoid a deadlock: with
// pipes, parent and child could each wait for the other to read.
using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File scratch(std::string_view content = "") {
  File file(std::tmpfile(), &std::fclose);
  if (!file) fail(std::string("png: cannot make a temporary file: ") + std::strerror(errno));
  if (std::fwrite(content.data(), 1, content.size(), file.get()) != content.size() ||
      std::fflush(file.get()) != 0) {
    fail(std::string("png: cannot write a temporary file: ") + std::strerror(errno));
  }
  ::lseek(::fileno(file.get()), 0, SEEK_SET);
  return file;
}

std::string contents(const File& file) {
  std::string out;
  std::array<char, 1 << 16> buffer;
  std::rewind(file.get());
  while (const size_t got = std::fread(buffer.data(), 1, buffer.size(), file.get()))
    out.append(buffer.data(), got);
  return out;
}

// Runs a program and waits for it. Returns its exit status, or 127 if the program does not exist.
int run(std::vector<std::string> words, const File& in, const File& out, const File& err) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ::fileno(in.get()), 0);
  ::posix_spawn_file_actions_adddup2(&actions, ::fileno(out.get()), 1);
  ::posix_spawn_file_actions_adddup2(&actions, ::fileno(err.get()), 2);
  pid_t child = 0;
  const int error =
      ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return 127;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

}  // namespace

std::string encode_png(const Pixels& pixels) {
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(pixels.width);
  image.height = static_cast<png_uint_32>(pixels.height);
  image.format = PNG_FORMAT_RGBA_COLORMAP;
  image.colormap_entries = 256;
  std::array<png_byte, 4 * 256> map = {};
  for (size_t i = 0; i < pixels.palette.size(); ++i) {
    const Colour& c = pixels.palette[i];
    const std::array<png_byte, 4> entry = {c.red, c.green, c.blue, 255};
    std::copy(entry.begin(), entry.end(), map.begin() + static_cast<std::ptrdiff_t>(4 * i));
  }
  const auto stride = static_cast<png_int_32>(pixels.width);
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string out(bytes, '\0');
  if (!png_image_write_to_memory(&image, out.data(), &bytes, 0, pixels.indices.data(), stride,
                                 map.data())) {
    fail(fmt::format("png: {} x {} pixels: {}", pixels.width, pixels.height, image.message));
  }
  out.resize(bytes);
  return out;
}

// Runs the program instead of linking the library: librsvg's 40 libraries would be loaded at every
// start of every command (which costs 12 ms; `sextant --help` takes 3 ms), and its headers require
// 35 packages.
std::string rasterise(const std::string& svg, double zoom) {
  if (!(zoom > 0 && zoom <= 16)) fail(fmt::format("png: zoom: expected 0 to 16, but got {}", zoom));
  const File in = scratch(svg), out = scratch(), err = scratch();
  const int status = run({"rsvg-convert", "--zoom", fmt::format("{}", zoom)}, in, out, err);
  if (status == 127)
    fail("png: expected the program rsvg-convert (package librsvg2-bin), but it is not installed");
  std::string picture = contents(out);
  if (status != 0 || !picture.starts_with("\x89PNG"))
    fail(fmt::format("png: rsvg-convert: expected a picture, but got status {}: {}", status,
                     contents(err)));
  return picture;
}

}  // namespace sextant::chart
