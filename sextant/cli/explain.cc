// sextant explain PATH: explains what a model's configuration means for its positions.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sextant/cli/commands.h"
#include "sextant/cli/explain/subject.h"
#include "sextant/files/yaml.h"
#include "sextant/lab/run/print.h"
#include "sextant/rope_config/explain_json.h"
#include "sextant/rope_config/shell_words.h"

namespace sextant::cli {
namespace {

struct Request {
  std::shared_ptr<ConfigRequest> config;
  bool as_json = false, all = false;
  std::string out;  // folder
};

void plot(const Subject& subject, const std::filesystem::path& folder, bool say) {
  constexpr chart::Format kFormats[] = {chart::Format::kCsv, chart::Format::kSvg};
  const std::string& layers = subject.config.layers;
  std::string name = "wavelengths";
  // Layer names come from a file, so only ASCII letters and underscores are used in the path.
  if (!layers.empty()) name += '-';
  for (const char c : layers)
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_') name += c;
  for (const auto& path : write_figure(wavelengths(subject), folder / name, kFormats)) {
    if (say) lab::print("{}\n", path.string());
  }
}

void run(const Request& request) {
  const ReadRopeConfig read =
      read_rope_config(request.config->path, request.config->overrides, read_yaml);
  std::vector<Subject> subjects;
  for (size_t g = 0; g < read.configs.size(); ++g)
    subjects.push_back({read.configs[g], read.explained[g]});
  if (request.as_json) {
    lab::print_text(explain_json(read) + "\n");
  } else {
    print_groups(subjects);
  }
  const auto first =
      std::ranges::find_if(subjects, [](const Subject& subject) { return subject.config.rotates; });
  for (const Subject& subject : subjects) {
    const bool explains_columns = first != subjects.end() && &subject == &*first;
    if (!request.as_json) print(subject, request.all, explains_columns);
    if (!request.out.empty() && subject.config.rotates)
      plot(subject, request.out, !request.as_json);
  }
  if (request.as_json) return;
  for (const VisionPart& part : read.vision) print_vision(part);
}

// Checks that a flag is a number in a range. CLI11 alone accepts nan and truncates long numbers.
CLI::Validator within(double low, double high, bool whole) {
  return CLI::Validator(
      [=](const std::string& text) {
        const std::optional<double> value = parse_number(text);
        const bool good =
            value && *value >= low && *value <= high && (!whole || *value == std::floor(*value));
        return good ? std::string()
                    : fmt::format("expected {} from {} to {}, but got {}",
                                  whole ? "a whole number" : "a number", low, high, text);
      },
      "");
}

}  // namespace

void add_base(CLI::App& command, double& base) {
  command
      .add_option("--base", base,
                  "the base of the frequencies (rope_theta), where the file does not say it")
      ->check(within(1e-3, 1e30, false));
}

std::shared_ptr<ConfigRequest> add_config(CLI::App& command) {
  auto request = std::make_shared<ConfigRequest>();
  command
      .add_option("PATH", request->path,
                  "config.json, a GGUF file, a folder with one of them, or flags of llama.cpp or "
                  "vLLM; - for standard input")
      ->required();
  add_base(command, request->overrides.base);
  command
      .add_option("--local-base", request->overrides.local_base,
                  "the base of layers with a window (rope_local_base_freq), if it is another")
      ->check(within(1e-3, 1e30, false));
  command
      .add_option("--head-dim", request->overrides.head_dim,
                  "channels of a head, where the file does not say them")
      ->check(within(2, static_cast<double>(kWidestHead), true));
  return request;
}

void add_explain(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("explain", "Say what a model's configuration means for its positions");
  auto request = std::make_shared<Request>();
  request->config = add_config(*command);
  command
      ->add_option("--length", request->config->overrides.length,
                   "the length to judge by, in tokens (default: that of the configuration)")
      ->check(within(1, 0x1p40, true));
  command->add_flag("--json", request->as_json, "everything, for programs");
  command->add_flag("--all", request->all, "a line for each pair");
  command->add_option("--out", request->out, "folder for a picture of the wavelengths")
      ->type_name("DIR");
  command->callback([request] { run(*request); });
}

}  // namespace sextant::cli
