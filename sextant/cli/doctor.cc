// sextant doctor: whether the positions of a model that runs are those that its configuration
// means. Files are judged and compared here; a model of transformers is run and measured by
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
#include "sextant/cli/explain/subject.h"
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
  bool weights = false, trust = false, each = false, strict = false;
  std::string as = "text", page, examined;
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

// Whether a subject is judged by its text: a file, standard input, or a folder with a GGUF file and
// no config.json. Other folders and names are models of transformers.
bool is_file_subject(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) {
    const bool named = lower_case(fs::path(path).extension().string()) == ".json";
    return path == "-" || named || fs::is_regular_file(path, ignored) || is_gguf_file(path);
  }
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
  if (status != 0)
    fail("doctor: expected what it found, but " + python + " ended with status " +
         std::to_string(status));
  return read_file(path);
}

// Files have no code and no weights that doctor loads.
void refuse_options_of_models(const DoctorRequest& request) {
  const std::string got = request.subjects.size() == 2             ? "two files"
                          : is_gguf_file(request.subjects.front()) ? "a GGUF file"
                                                                   : "a file";
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
  if (!fs::is_directory(folder, ignored))
    fail("doctor: --html: " + page + ": expected a file in a folder that exists, but there is no " +
         "folder " + folder.string());
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored))
    fail("doctor: --html: " + page + ": expected a file, but this is a folder or a device");
  if (::access(folder.c_str(), W_OK) != 0)
    fail("doctor: --html: " + page + ": cannot write to its folder: " + std::strerror(errno));
}

DoctorReport examine(const DoctorRequest& request) {
  const std::string& file = request.examined;
  const bool model = request.subjects.size() == 1 && !is_file_subject(request.subjects[0]);
  // A model of transformers says its base, by its file or its code.
  if (request.base > 0 && (model || !file.empty()))
    fail("doctor: --base: expected a file or two files, but got a model of transformers");
  if (file == "-") return report_of(read_start_of_standard_input(kMostJsonBytes), "standard input");
  if (!file.empty()) return report_of(read_file(file, kMostJsonBytes), file);
  if (model) return report_of(examined_by_python(request), "sextant.doctor.examine");
  refuse_options_of_models(request);
  return examine_files(request.subjects, request.base);
}

// With --each, and in the forms for continuous integration, a subject that cannot be examined is
// a report of its own, so that it hides no other.
std::vector<DoctorReport> examine_all(const DoctorRequest& request) {
  std::vector<DoctorRequest> all(request.each ? request.subjects.size() : 1, request);
  for (size_t n = 0; request.each && n < all.size(); ++n) all[n].subjects = {request.subjects[n]};
  std::vector<DoctorReport> reports;
  for (const DoctorRequest& one : all) {
    try {
      reports.push_back(examine(one));
    } catch (const std::exception& error) {
      const bool reported = request.each || request.as == "github" || request.as == "sarif";
      if (!reported || one.subjects.empty()) throw;
      const std::string& path = one.subjects.back();
      reports.push_back(unexamined(path, is_file_subject(path) ? path : "", reason_of(error)));
    }
  }
  return reports;
}

// 1 if any report has that status, else 2 if any has that one.
int status_of(const std::vector<DoctorReport>& reports, bool strict) {
  int status = 0;
  for (const DoctorReport& report : reports) {
    const int own = report.exit_status(strict);
    if (status == 0 || own == 1) status = own;
  }
  return status;
}

// One report in full; of several, a sound one is a line, and one for each of its notes.
void print_text(const std::vector<DoctorReport>& reports, bool each) {
  for (const DoctorReport& report : reports) {
    if (each && report.verdict() == "sound") {
      lab::print("{}: sound ({})\n", report.subject, report.facts_text());
      for (const std::string& note : report.result.notes) lab::print("  note: {}\n", note);
      continue;
    }
    print(report);
    if (each) lab::print("\n");
  }
}

void print_json(const std::vector<DoctorReport>& reports, bool each) {
  std::string text;
  for (const DoctorReport& report : reports)
    text += (text.empty() ? "" : ",\n") + json_text(report);
  lab::print_text((each ? "[" + text + "]" : text) + "\n");
}

void run_doctor(const DoctorRequest& request) {
  int status = kUnjudged;
  try {
    if (!request.page.empty()) check_page(request.page);
    const std::vector<DoctorReport> reports = examine_all(request);
    const int found = status_of(reports, request.strict);
    if (!request.page.empty()) chart::write_report(page_of(reports.front()), request.page);
    if (request.as == "github") {
      lab::print_text(github_text(reports));
    } else if (request.as == "sarif") {
      lab::print_text(sarif_text(reports, found) + "\n");
    } else if (request.as == "json") {
      print_json(reports, request.each);
    } else {
      print_text(reports, request.each);
    }
    status = found;
  } catch (const std::exception& error) {
    lab::print_error(reason_of(error));
  }
  std::fflush(stdout);
  end_with(status);
}

void check_line(const DoctorRequest& request) {
  if (request.subjects.empty() == request.examined.empty())
    throw CLI::RequiredError("one of MODEL and --examined");
  if (!request.each && request.subjects.size() > 2)
    throw CLI::ValidationError("MODEL", "expected one, or two files to compare, but got " +
                                            std::to_string(request.subjects.size()) +
                                            "; --each judges each by itself");
  if (!request.each) return;
  if (!request.examined.empty() || !request.page.empty())
    throw CLI::ValidationError("--each", std::string("expected no ") +
                                             (request.page.empty() ? "--examined" : "--html") +
                                             ", which is of one model");
}

}  // namespace

void add_doctor(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Is position right in the model that runs, or after a conversion?");
  auto request = std::make_shared<DoctorRequest>();
  command
      ->add_option("MODEL", request->subjects,
                   "a file that explain reads, such as config.json or a GGUF file; two files: what "
                   "changed; a folder with config.json or a model in Hugging Face's cache, which "
                   "Python runs")
      ->expected(1, CLI::detail::expected_max_vector_size);
  command->add_flag("--each", request->each, "each MODEL by itself, any number of them");
  command
      ->add_option("--examined", request->examined,
                   "in place of MODEL: the file that sextant.doctor.examine wrote; - for standard "
                   "input")
      ->type_name("FILE");
  add_base(*command, request->base);
  CLI::Option* json = command->add_flag_callback(
      "--json", [request] { request->as = "json"; }, "the report for programs: --as json");
  command
      ->add_option("--as", request->as,
                   "text, json, github (annotations of a change) or sarif (SARIF 2.1.0)")
      ->check(CLI::IsMember({"text", "json", "github", "sarif"}))
      ->excludes(json);
  command->add_flag("--strict", request->strict, "warnings are exit status 1, as errors are");
  command->add_option("--html", request->page, "also write the report as a page")
      ->type_name("FILE");
  command->add_flag("--weights", request->weights, "load the weights (models of transformers)");
  command->add_flag("--trust-remote-code", request->trust,
                    "run the code in the folder (models of transformers)");
  command->footer(
      "Exit status: 0 no errors, 1 errors (with --strict also warnings), 2 cannot be judged.");
  command->callback([request] {
    check_line(*request);
    run_doctor(*request);
  });
}

}  // namespace sextant::cli
