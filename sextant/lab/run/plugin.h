// The laboratory's half that needs libtorch, as a shared library that is opened at need.
//
// libtorch is 287 shared objects and 0.4 s of start-up; commands that need no tensors do not pay.
// libgomp reads its environment when it is loaded, and its workers' default of spinning starves the
// threads of OpenBLAS (training: 5 to 17 times slower on a busy machine), so the environment must
// be right before the library is opened; a program that links libtorch cannot do that.
#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sextant/lab/plan/settings.h"
#include "sextant/lab/run/model_work.h"
#include "sextant/lab/run/worker.h"

namespace sextant::lab {

// What an arm at work tells and is told.
struct Watch {
  std::function<void(const Report&)> report = [](const Report&) {};
  const volatile std::sig_atomic_t* stop = nullptr;  // not 0: save and come back
  double seconds_between_checkpoints = 5;            // 0: one after every step
};

// What is drawn of an encoding: a layer of one text, its parameters as training starts from them.
struct EncodingRequest {
  std::string method;
  std::string options = "{}";  // JSON, as of the method
  int64_t heads = 4, head_dim = 32, length = 64;
  bool causal = true;
};
struct Encoding {
  // [length, width]: what it makes of an input of zeros, or, where that is nothing, of ones; empty
  // if it leaves the input alone.
  std::vector<double> input;
  // [heads, length, length]: the score of each query and key, all of them one and the same vector,
  // drawn for each head from a normal distribution; NaN: the query does not see the key.
  std::vector<double> scores;
};

// A method, for people.
struct KnownMethod {
  std::string name, summary;
  std::string formula;  // one line of ASCII; its parts are separated by "; "
  std::string options;  // JSON object, with defaults
};

// What one arm costs as rope does, measured here in a second or two. Other methods cost up to twice
// as much, and a dynamic stretch many times as much in tests.
struct ArmCost {
  double step_seconds = 0;  // of training
  double test_seconds = 0;  // all tests
  int64_t bytes = 0;        // the most memory that the process had
};

// The functions of libsextant_lab, both sides built from one tree. They throw Error.
struct Plugin {
  std::string_view version;
  std::vector<KnownMethod> (*methods)();
  // Makes every method and model once, so that a wrong option is known before hours of work.
  void (*check)(const Settings& settings, std::span<const Arm> arms);
  // Of an arm that is trained on this task.
  ArmCost (*cost)(const Settings& settings, Task task);
  // Carries out DIRECTORY/arm.json: trains (from the newest checkpoint), tests, writes result.json.
  // kDone or kStopped.
  Ending (*run_arm)(const std::filesystem::path& directory, const Watch& watch);
  // Why transformers has no architecture for the model that lies in a folder; "" if it has. See
  // model_folder.h.
  std::string (*obstacle)(const std::filesystem::path& model);
  // L of the model that lies in a folder.
  int64_t (*train_length)(const std::filesystem::path& model);
  // See evaluate_model.h and extend_model.h.
  ModelEvaluation (*evaluate_model)(const EvaluationRequest& request, const OnBlock& on_block);
  Extension (*extend_model)(const EvaluationRequest& request, const OnBlock& on_block);
  void (*write_extended)(const std::filesystem::path& model, const StretchCandidate& candidate,
                         const std::filesystem::path& folder);
  Encoding (*encode)(const EncodingRequest& request);
};

// Opens the library that was built or installed with this program, once, for work with `threads`
// threads. Throws Error if it is not there (a build without libtorch).
const Plugin& open_plugin(int threads);

}  // namespace sextant::lab

// The library's one entry point.
extern "C" const sextant::lab::Plugin* sextant_lab_plugin();
