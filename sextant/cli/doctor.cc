// sextant doctor: whether the positions of a model that runs are those that its configuration
// means. Files are compared here; a model of transformers is run and measured by
// python/sextant/doctor, which this program starts. All reports are made here.
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/base/reason.h"
#include "sextant/chart/report.h"
#include "sextant/cli/commands.h"
#include "sextant/cli/doctor/report.h"
#include "sextant/files/read_file.h"
#include "sextant/lab/run/print.h"
#include "sextant/lab/run/python.h"
#include "sextant/rope_config/config_path.h"
#include "sextant/rope_config/families/llama_cpp.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kUnjudged = 2;

struct DoctorRequest {
  std::vector<std::string> subjects;
  bool json = false, weights = false, trust = false;
  std::string page, examined;
  double base = 0;  // of files that do not say it
};

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

// By the first bytes. A file whose name ends in .gguf is one, too, so that the reader says why it
// cannot be read.
bool is_gguf_file(const fs::path& path) {
  std::error_code ignored;
  if (lower_case(path.extension().string()) == ".gguf") return true;
  return fs::is_regular_file(path, ignored) && read_start(path, 4) == "GGUF";
}

// Whether the path is a GGUF file, or a folder with one and no config.json.
bool is_gguf_path(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return is_gguf_file(path);
  if (fs::exists(fs::path(path) / "config.json", ignored)) return false;
  try {
    return is_gguf_file(config_path(path));
  } catch (const Error&) {
    return false;
  }
}

// Runs the model in Python, which writes what it found to a file in memory.
std::string examined_by_python(const DoctorRequest& request) {
  constexpr const char* kModule = "sextant.doctor.examine";
  constexpr const char* kMustHave = "torch and transformers";
  const std::string python = lab::python_name();
  lab::check_python(kModule, kMustHave);
  lab::note("sextant doctor: a model of transformers is run by " + printable(python) + " -m " +
            kModule);
  const int file = ::memfd_create("examined", 0);
  if (file < 0) fail(std::string("doctor: cannot make a file in memory: ") + std::strerror(errno));
  const std::string path = "/dev/fd/" + std::to_string(file);
  std::vector<std::string> words = {request.subjects[0], path};
  if (request.weights) words.emplace_back("--weights");
  if (request.trust) words.emplace_back("--trust-remote-code");
  const int status = lab::run_python(kModule, words, kMustHave, [] { return false; });
  if (status != 0) {
    fail("doctor: expected what it found, but " + python + " ended with status " +
         std::to_string(status));
  }
  return read_file(path);
}

// Files have no code and no weights that doctor loads.
void refuse_options_of_models(const DoctorRequest& request) {
  const std::string got = request.subjects.size() == 2 ? "two files" : "a GGUF file";
  const auto refuse = [&](const char* option) {
    fail("doctor: " + std::string(option) + ": expected one model of transformers, but got " + got);
  };
  if (request.weights) refuse("--weights");
  if (request.trust) refuse("--trust-remote-code");
}

// Throws Error, before anything is examined, if the page cannot be written.
void check_page(const std::string& page) {
  const fs::path path = page, parent = path.parent_path();
  const fs::path folder = parent.empty() ? "." : parent;
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored)) {
    fail("doctor: --html: " + page + ": expected a file in a folder that exists, but there is no " +
         "folder " + folder.string());
  }
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) {
    fail("doctor: --html: " + page + ": expected a file, but this is a folder or a device");
  }
  if (::access(folder.c_str(), W_OK) != 0) {
    fail("doctor: --html: " + page + ": cannot write to its folder: " + std::strerror(errno));
  }
}

// A model of transformers says its base, by its file or its code.
void refuse_base(const DoctorRequest& request) {
  const bool files = request.subjects.size() == 2 ||
                     (request.subjects.size() == 1 && is_gguf_path(request.subjects[0]));
  if (request.base > 0 && !files) {
    fail("doctor: --base: expected a GGUF file or two files, but got a model of transformers");
  }
}

DoctorReport examine(const DoctorRequest& request) {
  refuse_base(request);
  const std::string& file = request.examined;
  if (file == "-") {
    return report_of(read_start_of_standard_input(kMostJsonBytes), "standard input");
  }
  if (!file.empty()) return report_of(read_file(file, kMostJsonBytes), file);
  if (request.subjects.size() == 1 && !is_gguf_path(request.subjects[0])) {
    return report_of(examined_by_python(request), "sextant.doctor.examine");
  }
  refuse_options_of_models(request);
  return examine_files(request.subjects, request.base);
}

void run_doctor(const DoctorRequest& request) {
  int status = kUnjudged;
  try {
    if (!request.page.empty()) check_page(request.page);
    const DoctorReport report = examine(request);
    if (!request.page.empty()) chart::write_report(page_of(report), request.page);
    if (request.json) {
      lab::print_text(json_text(report) + "\n");
    } else {
      print(report);
    }
    status = report.exit_status();
  } catch (const std::exception& error) {
    lab::print_error(reason_of(error));
  }
  std::fflush(stdout);
  if (status != 0) throw CLI::RuntimeError(status);
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Is position right in the model that runs, or after a conversion?");
  auto request = std::make_shared<DoctorRequest>();
  command
      ->add_option("MODEL", request->subjects,
                   "a GGUF file; two files of any kind that explain reads: what changed; a folder "
                   "with config.json or a model in Hugging Face's cache, which Python runs")
      ->expected(1, 2);
  command
      ->add_option("--examined", request->examined,
                   "in place of MODEL: the file that sextant.doctor.examine wrote; - for standard "
                   "input")
      ->type_name("FILE");
  command->add_option("--base", request->base, "the base of a file that does not say it");
  command->add_flag("--json", request->json, "the report for programs");
  command->add_option("--html", request->page, "also write the report as a page")
      ->type_name("FILE");
  command->add_flag("--weights", request->weights, "load the weights (models of transformers)");
  command->add_flag("--trust-remote-code", request->trust,
                    "run the code in the folder (models of transformers)");
  command->footer("Exit status: 0 sound, 1 findings, 2 cannot be judged.");
  command->callback([request] {
    if (request->subjects.empty() == request->examined.empty()) {
      throw CLI::RequiredError("one of MODEL and --examined");
    }
    run_doctor(*request);
  });
}

}  // namespace sextant::cli
