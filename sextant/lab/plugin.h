// The laboratory's half that needs libtorch, as a shared library that is opened at need.
//
// libtorch is 287 shared objects and 0.4 s of start-up; commands that need no tensors do not pay.
// libgomp reads its environment when it is loaded, and its workers' default of spinning starves the
// threads of OpenBLAS (training: 5 to 17 times slower on a busy machine), so the environment must be
// right before the library is opened; a program that links libtorch cannot do that.
#pragma once

#include <csignal>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sextant/lab/settings.h"
#include "sextant/lab/worker.h"

namespace sextant::lab {

// What an arm at work tells and is told.
struct Watch {
  std::function<void(const Report&)> report = [](const Report&) {};
  const volatile std::sig_atomic_t* stop = nullptr;  // not 0: save and come back
  double seconds_between_checkpoints = 5;            // 0: one after every step
};

// The functions of libsextant_lab, both sides built from one tree. They throw Error.
struct Plugin {
  std::string_view version;
  std::vector<std::string> (*methods)();
  // Makes every method and model once, so that a wrong option is known before hours of work.
  void (*check)(const Settings& settings, std::span<const Arm> arms);
  // Carries out DIRECTORY/arm.json: trains (from the newest checkpoint), tests, writes result.json.
  // kDone or kStopped.
  Ending (*run_arm)(const std::filesystem::path& directory, const Watch& watch);
};

// Opens the library that was built or installed with this program, once, for work with `threads`
// threads. Throws Error if it is not there (a build without libtorch).
const Plugin& open_plugin(int threads);

}  // namespace sextant::lab

// The library's one entry point.
extern "C" const sextant::lab::Plugin* sextant_lab_plugin();
