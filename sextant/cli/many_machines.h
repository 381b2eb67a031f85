// Options by which survey, evaluate, extend and retrieve are divided over processes and machines
// (docs/many-machines.md), and the command line of --collect.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sextant/lab/run/hand_out.h"
#include "sextant/lab/run/measure.h"

namespace CLI {
class App;
}

namespace sextant::cli {

struct ManyMachines {
  bool prepare = false;
  std::string launch;
  std::string collected;  // the folder that --collect named
  int jobs = 0;           // 0: the command's default
};

// --prepare, --collect DIR and --launch PREFIX, in a group of their own; --jobs unless the command
// has it.
void declare_many_machines(CLI::App& command, ManyMachines& options, bool has_jobs);

// Throws Error for a wrong --launch.
lab::HandOut hand_out_of(const ManyMachines& options);

// The words of a command line, in which `COMMAND --collect DIR` has become the command line that
// prepared DIR (which runs in the folder where it was typed) with the remaining words added. Throws
// Error for a DIR that no --prepare wrote. The words are kept for remember_command().
std::vector<std::string> with_collected(std::vector<std::string> words);

// Notes the command line in a folder that --prepare wrote.
void remember_command(const std::filesystem::path& folder);

// Ends a command whose measurement has no result to print: throws CLI::RuntimeError with the exit
// status, after a line on how to go on.
[[noreturn]] void end_without_result(lab::MeasureEnd end, const std::filesystem::path& folder);

}  // namespace sextant::cli
