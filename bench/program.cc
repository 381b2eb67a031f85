#include "bench/program.h"

#include <fmt/core.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sextant/files/write_file.h"

namespace sextant::bench {
namespace {

void check_json(const std::filesystem::path& file) {
  const auto refuse = [&](const std::string& why) {
    fail(fmt::format("bench: json: expected a file that can be written, but got {}: {}",
                     file.string(), why));
  };
  // write_file() would replace anything else, even /dev/null, by a regular file.
  if (std::filesystem::exists(file) && !std::filesystem::is_regular_file(file))
    refuse("it is something else");
  try {
    check_can_write(std::filesystem::absolute(file).parent_path());
  } catch (const CannotWrite& error) {
    refuse(error.what());
  }
}

}  // namespace

int run_program(const std::string& file, const std::function<nlohmann::json()>& body) {
  try {
    if (!file.empty()) check_json(file);
    const nlohmann::json document = body();
    if (!file.empty()) write_file(file, document.dump(1) + "\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}

nlohmann::json to_json(const Seconds& seconds) {
  return {{"seconds", seconds.rounds}, {"least", seconds.least()}, {"median", seconds.median()}};
}

}  // namespace sextant::bench
