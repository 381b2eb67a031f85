// sextant convert PATH --as DIALECT: writes a RoPE configuration in the format of another engine.
#include <CLI/CLI.hpp>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sextant/cli/commands.h"
#include "sextant/cli/explain/subject.h"
#include "sextant/files/write_file.h"
#include "sextant/files/yaml.h"
#include "sextant/lab/run/print.h"
#include "sextant/rope_config/write_config.h"

namespace sextant::cli {
namespace {

struct ConvertRequest {
  std::shared_ptr<ConfigRequest> config;
  std::string dialect, out = "-";
};

void write(const std::string& bytes, const ConvertRequest& request) {
  if (request.out != "-") {
    write_file(request.out, bytes);
  } else if (request.dialect == "gguf") {
    lab::print_bytes(bytes);
  } else {
    lab::print_text(bytes);
  }
}

// Prints each warning once, with the same text as explain.
void print_warnings(const ReadRopeConfig& read, const std::vector<std::string>& own) {
  std::set<std::string> said;
  const auto print = [&](const std::string& warning) {
    if (!said.insert(warning).second) return;
    for (const std::string& line : wrapped("warning: " + warning)) lab::note(line);
  };
  for (const RopeConfig& config : read.configs) {
    for (const std::string& warning : config.scaling.warnings) print(warning);
  }
  for (const std::string& warning : own) print(warning);
}

}  // namespace

void add_convert(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "convert", "Write a model's rotary configuration in another engine's words");
  auto request = std::make_shared<ConvertRequest>();
  request->config = add_config(*command);
  command->add_option("--as", request->dialect, "hf5, hf4, gguf, llama.cpp or vllm")
      ->required()
      ->check(CLI::IsMember({"hf5", "hf4", "gguf", "llama.cpp", "vllm"}));
  command->add_option("-o,--out", request->out, "file; - for standard output")
      ->capture_default_str();
  command->footer(
      "What the other engine cannot say is an error. Reading the result gives the same "
      "frequencies,\n"
      "bit by bit, but in GGUF, whose numbers are float32. Warnings go to standard error.");
  command->callback([request] {
    const ReadRopeConfig read =
        read_rope_config(request->config->path, request->config->overrides, read_yaml);
    std::vector<std::string> warnings;
    const std::string written = write_rope_config(read, request->dialect, warnings);
    print_warnings(read, warnings);
    write(written, *request);
  });
}

}  // namespace sextant::cli
