// A page in a real browser, where there is one.
#pragma once

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "sextant/files/write_file.h"

namespace sextant::chart {

// The name of a browser; "" if there is none.
inline std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (std::system((std::string("command -v ") + name + " >/dev/null 2>&1").c_str()) == 0)
      return name;
  }
  return "";
}

// What the page looks like to a script once it is loaded, and what the browser had to say about it.
inline std::string opened(const std::string& page) {
  std::string name = (std::filesystem::temp_directory_path() / "sextant-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(name.data());
  write_file(folder / "report.html", page);
  const std::string command = "timeout 60 " + browser() +
                              " --headless --no-sandbox --disable-gpu --window-size=1100,2000 " +
                              "--user-data-dir=" + (folder / "profile").string() +
                              " --enable-logging=stderr --dump-dom file://" +
                              (folder / "report.html").string() + " 2>&1";
  std::string out;
  std::array<char, 1 << 16> buffer;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  while (const size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe))
    out.append(buffer.data(), got);
  ::pclose(pipe);
  std::filesystem::remove_all(folder);
  return out;
}

}  // namespace sextant::chart
