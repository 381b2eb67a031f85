#include "sextant/lab/run/own_arms.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/files/checked_json.h"
#include "sextant/files/read_file.h"
#include "sextant/lab/plan/own_methods.h"
#include "sextant/lab/result/result.h"
#include "sextant/lab/run/plugin.h"
#include "sextant/lab/run/python.h"
#include "sextant/lab/run/worker.h"

namespace sextant::lab {
namespace {

constexpr const char* kModule = "sextant.own_arm";
constexpr const char* kMustHave = "the torch of this program";

std::vector<std::string> words(std::vector<std::string> last, int progress_file) {
  last.insert(last.begin(),
              {"--plugin", plugin_path().string(), "--progress-fd", std::to_string(progress_file)});
  return last;
}

}  // namespace

bool is_own_arm(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kArmFile;
  return naming_file(path, [&] {
    const nlohmann::json file = read_json(path);
    return file.contains("arm") && is_own_method(file.at("arm").get<Arm>().method);
  });
}

int run_own_arm(const std::string& folder, int threads, const ArmProcess& process,
                const Watch& watch) {
  set_threads(threads);
  return run_python(kModule,
                    words({"--save-seconds", std::to_string(process.save_seconds), folder},
                          process.progress_file),
                    kMustHave, [&] { return *watch.stop != 0; });
}

void become_own_check(const std::string& assignment, int threads, int progress_file) {
  set_threads(threads);
  become_python(kModule, words({"--check", assignment}, progress_file), kMustHave);
}

void check_own_arms(const Settings& settings, std::span<const Arm> arms) {
  std::set<std::string> checked;
  for (const Arm& arm : arms) {
    if (!is_own_method(arm.method)) continue;
    Arm first = arm;  // seeds and tasks differ in their sizes at most
    first.seed = 0;
    const nlohmann::json assignment{{"arm", first}, {"settings", settings}};
    if (!checked.insert(arm.method + arm.options + name(arm.task)).second) continue;
    Worker worker({"/proc/self/exe", "arm", "--progress-fd", std::to_string(kProgressFile),
                   "--check", assignment.dump()},
                  "/dev/null");
    while (worker.read()) {
    }
    std::string why;
    if (worker.finish(why) == Ending::kDone) continue;
    fail(fmt::format("methods: {}: {}", arm.label, worker.said().empty() ? why : worker.said()));
  }
}

}  // namespace sextant::lab
