#include "sextant/lab/result/machines.h"

#include <fmt/format.h>

#include <algorithm>

#include "sextant/base/printable.h"

namespace sextant::lab {

std::vector<Machine> machines_of(std::span<const std::string> names) {
  std::vector<Machine> machines;
  for (const std::string& name : names) {
    if (name.empty()) continue;
    const auto known = std::ranges::find(machines, name, &Machine::name);
    if (known == machines.end()) {
      machines.push_back({.name = name, .arms = 1});
    } else {
      ++known->arms;
    }
  }
  return machines;
}

std::vector<Machine> machines_of(std::span<const ArmResult> results) {
  std::vector<std::string> names;
  for (const ArmResult& result : results) names.push_back(result.machine);
  return machines_of(names);
}

std::string unlike_machines_text(std::span<const Machine> machines) {
  if (machines.size() < 2) return "";
  std::string text =
      "The arms ran on unlike machines, where the same arm gives other digits, and seconds cannot "
      "be compared:\n";
  for (const Machine& machine : machines) {
    text += fmt::format("  {:>4} {}  {}\n", machine.arms, machine.arms == 1 ? "arm " : "arms",
                        printable(machine.name));
  }
  return text;
}

}  // namespace sextant::lab
