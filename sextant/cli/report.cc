// sextant report PATH...: the report of a survey, an extension or a measurement of retrieval, of
// its folder or of a file, as HTML or Markdown; or parts of it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sextant/base/error.h"
#include "sextant/chart/report.h"
#include "sextant/cli/commands.h"
#include "sextant/files/json_fields.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/plan/manifest.h"
#include "sextant/lab/report/model_report.h"
#include "sextant/lab/report/report.h"
#include "sextant/lab/report/retrieval_report.h"
#include "sextant/lab/report/survey_record.h"
#include "sextant/lab/run/print.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct ReportRequest {
  std::vector<std::string> paths, parts, methods;
  std::string question, out, figures = "figures";
  bool as_markdown = false;
};

// The content of a file, or of the results of a folder; null for the folder of a survey.
json content_of(const fs::path& path) {
  if (!fs::is_directory(path)) return read_json(path);
  if (!read_json(path / lab::kManifestFile).contains("measure")) return {};
  if (fs::exists(path / lab::kResultsFile)) return read_json(path / lab::kResultsFile);
  fail(
      fmt::format("report: {}: expected {}, which the command that measured writes at its end; "
                  "the same command goes on",
                  path.string(), lab::kResultsFile));
}

chart::Report report_of(const ReportRequest& request) {
  const std::string& first = request.paths.front();
  const json content = content_of(first);
  const bool extended = content.contains("candidates");
  if (extended || content.contains("mean_of_tasks")) {
    const auto refuse = [&](const char* what) {
      fail(fmt::format("report: {}: expected only with surveys, but {} is the record of {}", what,
                       first, extended ? "an extension" : "a measurement of retrieval"));
    };
    if (request.paths.size() > 1) refuse(request.paths[1].c_str());
    if (!request.methods.empty()) refuse("--methods");
    if (!request.question.empty()) refuse("--question");
    return extended ? lab::extension_page(content, first) : lab::retrieval_page(content, first);
  }
  if (!content.is_null() && !content.contains("arms"))
    fail(
        fmt::format("report: {}: expected \"arms\" of a survey, \"candidates\" of an extension or "
                    "\"mean_of_tasks\" of retrieval",
                    first));
  std::vector<lab::SurveyRecord> surveys;
  for (const std::string& path : request.paths) {
    surveys.push_back(lab::read_survey(path));
    lab::keep_methods(surveys.back(), request.methods);
  }
  return surveys.size() == 1 && request.question.empty()
             ? lab::report_page(surveys.front())
             : lab::surveys_page(surveys, request.question);
}

// The file of the report: in a folder report.html or report.md. Beside a file of results its name
// with another ending.
fs::path file_of(const ReportRequest& request) {
  const char* const ending = request.as_markdown ? ".md" : ".html";
  fs::path out = request.out;
  if (out.empty()) {
    out = request.paths.front();
    if (!fs::is_directory(out)) return out.replace_extension(ending);
  }
  return fs::is_directory(out) || !out.has_filename() ? out / (std::string("report") + ending)
                                                      : out;
}

void report(const ReportRequest& request) {
  chart::Report page = report_of(request);
  if (!request.parts.empty()) page = chart::only_parts(page, request.parts);
  const fs::path file = file_of(request);
  if (!request.as_markdown) {
    chart::write_report(page, file);
    lab::print("{}\n", file.string());
    return;
  }
  const chart::Markdown text = chart::markdown(page, request.figures);
  const bool to_file = !request.out.empty();
  for (const chart::Markdown::Figure& figure : text.figures)
    write_file(to_file ? file.parent_path() / figure.file : fs::path(figure.file), figure.svg);
  if (to_file) write_file(file, text.text);
  lab::print_text(to_file ? file.string() + "\n" : text.text);
}

}  // namespace

void add_report(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "report", "The report of a survey, an extension or a retrieval, finished or not");
  auto request = std::make_shared<ReportRequest>();
  command
      ->add_option("PATH", request->paths,
                   "A folder of survey, extend or retrieve, or its results.json; several surveys "
                   "are compared")
      ->required();
  command->add_option("--part", request->parts, "Only these parts; an unknown one lists all")
      ->delimiter(',')
      ->allow_extra_args(false);
  command
      ->add_option("--methods", request->methods,
                   "Only these methods of a survey, in tables and charts")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--question", request->question,
                      "Only the claims on this open question, by its first words: why-10000");
  command->add_flag("--markdown", request->as_markdown,
                    "Markdown, on standard output unless --out is given, with charts as SVG files");
  command
      ->add_option("--figures", request->figures,
                   "With --markdown: the folder of the charts, as the text names it")
      ->capture_default_str()
      ->needs("--markdown");
  command
      ->add_option("--out", request->out,
                   "File, or folder for report.html or report.md (else beside the results)")
      ->type_name("PATH");
  command->callback([request] { report(*request); });
}

}  // namespace sextant::cli
