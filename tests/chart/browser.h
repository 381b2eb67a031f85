// Opens pages in a real browser, if one is installed.
#pragma once

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

#include "sextant/files/read_file.h"
#include "sextant/files/write_file.h"

namespace sextant::chart {

// The name of an installed browser, or "".
inline std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (std::system((std::string("command -v ") + name + " >/dev/null 2>&1").c_str()) == 0)
      return name;
  }
  return "";
}

// The page's DOM after it is loaded, and the browser's messages.
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

// The files by name that a click on each of the links of this CSS selector saves; fewer than
// `count` after half a minute.
inline std::map<std::string, std::string> saved_by_clicks(std::string page,
                                                          const std::string& selector,
                                                          size_t count) {
  std::string name = (std::filesystem::temp_directory_path() / "sextant-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(name.data()), saved = folder / "saved";
  std::filesystem::create_directories(saved);
  page.insert(page.rfind("</body>"), "<script>for (const link of document.querySelectorAll('" +
                                         selector + "')) link.click();</script>");
  write_file(folder / "report.html", page);
  // 1: pages may save several files without a prompt.
  write_file(folder / "profile/Default/Preferences",
             R"({"download":{"prompt_for_download":false,"default_directory":")" + saved.string() +
                 R"("},"profile":{"default_content_setting_values":{"automatic_downloads":1}}})");
  // The debugging port keeps the browser running after the page is loaded. A file has a temporary
  // name until it is complete.
  const std::string script =
      "exec >/dev/null 2>&1\ncd " + folder.string() + "\n" + browser() +
      " --headless=new --no-sandbox --disable-gpu --user-data-dir=profile"
      " --remote-debugging-port=0 file://" +
      (folder / "report.html").string() +
      " & it=$!\nfor n in $(seq 300); do sleep 0.1; [ $(ls saved | grep -vc crdownload) -ge " +
      std::to_string(count) + " ] && break; done\nkill $it; wait $it\n";
  write_file(folder / "script", script);
  [[maybe_unused]] const int status = std::system(("sh " + (folder / "script").string()).c_str());
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(saved)) {
    files[entry.path().filename().string()] = read_file(entry.path());
  }
  std::filesystem::remove_all(folder);
  return files;
}

}  // namespace sextant::chart
