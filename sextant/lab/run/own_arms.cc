#include "sextant/lab/run/own_arms.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/lab/plan/own_methods.h"
#include "sextant/lab/report/result.h"
#include "sextant/lab/run/plugin.h"
#include "sextant/lab/run/python.h"
#include "sextant/lab/run/worker.h"

namespace sextant::lab {
namespace {

[[noreturn]] void become_worker(std::vector<std::string> arguments, int threads) {
  set_threads(threads);
  arguments.insert(arguments.begin(), {"--plugin", plugin_path().string()});
  become_python("sextant.own_arm", arguments, "the torch of this program");
}

}  // namespace

bool is_own_arm(const std::filesystem::path& folder) {
  const nlohmann::json file = read_json(folder / kArmFile);
  return file.contains("arm") && is_own_method(file.at("arm").get<Arm>().method);
}

void become_own_arm(const std::string& folder, int threads, double save_seconds) {
  become_worker({"--save-seconds", std::to_string(save_seconds), folder}, threads);
}

void become_own_check(const std::string& assignment, int threads) {
  become_worker({"--check", assignment}, threads);
}

void check_own_arms(const Settings& settings, std::span<const Arm> arms) {
  std::set<std::string> checked;
  for (const Arm& arm : arms) {
    if (!is_own_method(arm.method)) continue;
    Arm first = arm;  // seeds and tasks differ in their sizes at most
    first.seed = 0;
    const nlohmann::json assignment{{"arm", first}, {"settings", settings}};
    if (!checked.insert(arm.method + arm.options + name(arm.task)).second) continue;
    Worker worker({"/proc/self/exe", "arm", "--check", assignment.dump()}, "/dev/null");
    while (worker.read()) {
    }
    std::string why;
    if (worker.finish(why) == Ending::kDone) continue;
    fail(fmt::format("methods: {}: {}", arm.label, worker.said().empty() ? why : worker.said()));
  }
}

}  // namespace sextant::lab
