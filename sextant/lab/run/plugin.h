// The part of the laboratory that needs libtorch: a shared library that is opened on demand.
//
// libtorch consists of 287 shared objects and takes 0.4 s to load; commands without tensors avoid
// that. libgomp reads its environment when it is loaded. By default its workers spin while waiting
// and starve the threads of OpenBLAS: training was 5 to 17 times slower on a busy machine. The
// environment must therefore be set before the library is opened, which a program linked against
// libtorch cannot do.
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
#include "sextant/lab/result/model_work.h"
#include "sextant/lab/run/worker.h"

namespace sextant::lab {

// Callbacks and flags of a running arm.
struct Watch {
  std::function<void(const ProgressReport&)> report = [](const ProgressReport&) {};
  const volatile std::sig_atomic_t* stop = nullptr;  // not 0: save the state and return
  double seconds_between_checkpoints = 5;            // 0: a checkpoint after every step
  bool grouped = false;     // the arm is trained by all processes that the launcher has started
  std::string device = {};  // of this run, whatever the arm's settings say; empty: as they say
};

// A request for samples of an encoding: one layer and one sequence, with the parameters at their
// initial values.
struct EncodingRequest {
  std::string method;
  std::string options = "{}";  // JSON object, options of the method
  int64_t heads = 4, head_dim = 32, length = 64;
  bool causal = true;
  // Parameters that start from zeros are drawn from a normal distribution of deviation 0.02.
  bool draws_zeros = false;
};
struct ProbedEncoding {
  // [length, width]: the encoding's output for an input of zeros or, if that is zero, of ones;
  // empty if the encoding leaves the input unchanged.
  std::vector<double> input;
  // [heads, length, length]: the score of each query and key. All queries and keys of a head are
  // the same vector, drawn from a normal distribution. NaN marks a masked key.
  std::vector<double> scores;
  bool trains = false;  // whether the encoding has parameters
};

// Description of a method for the user.
struct KnownMethod {
  std::string name, summary;
  std::string formula;           // one line of ASCII; parts are separated by "; "
  std::string options;           // JSON object with the defaults
  std::string grid_option = {};  // of methods for places of a grid (MethodInfo); or empty
  int64_t rows_before_grid = 0;
};

// The cost of an arm with rope, measured on this machine in a second or two. Other methods cost up
// to twice as much, and a dynamic stretch many times as much in tests.
struct ArmCost {
  double step_seconds = 0;  // of one training step
  double test_seconds = 0;  // all tests
  int64_t bytes = 0;        // peak memory of the process
};

// The functions of libsextant_lab, built from the same tree as the program. They throw Error.
struct Plugin {
  std::string_view version;
  std::vector<KnownMethod> (*methods)();
  // Constructs every method and model once, so that a wrong option is reported before hours of
  // work.
  void (*check)(const Settings& settings, std::span<const Arm> arms);
  // Throws Error with the reason if this machine or libtorch does not have the device. It is called
  // before other functions that use the device.
  void (*check_device)(const std::string& device);
  // How many channels of the input the arm's method adds a vector to; 0: none.
  int64_t (*added_channels)(const Settings& settings, const Arm& arm);
  // The cost of an arm that is trained on this task.
  ArmCost (*cost)(const Settings& settings, Task task);
  // Runs DIRECTORY/arm.json: trains from the newest checkpoint, tests, and writes result.json.
  // Returns kDone or kStopped.
  Ending (*run_arm)(const std::filesystem::path& directory, const Watch& watch);
  // Trains an arm together with the process of rank 0, which is in run_arm with Watch::grouped.
  // file: the content of an arm.json with absolute names. Nothing is written or reported.
  Ending (*join_training)(const std::string& file, const Watch& watch);
  // Returns the reason why no transformers architecture can load the model in a folder, or "" if
  // one can. See model_folder.h.
  std::string (*obstacle)(const std::filesystem::path& model);
  // L of the model in a folder.
  int64_t (*train_length)(const std::filesystem::path& model);
  // See evaluate_model.h.
  ModelEvaluation (*evaluate_model)(const EvaluationRequest& request, const OnBlock& on_block);
  Extension (*extend_model)(const EvaluationRequest& request, const OnBlock& on_block);
  void (*write_extended)(const std::filesystem::path& model, const StretchCandidate& candidate,
                         const std::filesystem::path& folder);
  ProbedEncoding (*probe_encoding)(const EncodingRequest& request);
};

// The library that was built or installed with this program. Throws Error if it is missing (a build
// without libtorch).
std::filesystem::path plugin_path();

// Sets the environment for libraries that this process, or one that replaces it, will open.
void set_threads(int threads);

// Opens the library that was built or installed with this program, at the first call only, for work
// with `threads` threads. Throws Error if the library is missing (a build without libtorch).
const Plugin& open_plugin(int threads);

}  // namespace sextant::lab

// The library's entry point for this program.
extern "C" const sextant::lab::Plugin* sextant_lab_plugin();

// Its entry points for Python (python/sextant/own_arm.py), which return the exit status of the
// process: runs the arm of a folder; makes the encoding of an arm, given with its settings as JSON,
// and calls it once. progress_file: see arm_process.h.
extern "C" int sextant_lab_arm(const char* folder, double save_seconds, int progress_file);
extern "C" int sextant_lab_check(const char* assignment, int progress_file);
