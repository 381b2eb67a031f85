#include "sextant/cli/many_machines.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "sextant/base/error.h"
#include "sextant/cli/commands.h"
#include "sextant/files/json_fields.h"
#include "sextant/lab/run/interruptions.h"
#include "sextant/lab/run/print.h"

namespace sextant::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kCommandFile = "command.json";
constexpr const char *kPrepare = "--prepare", *kCollect = "--collect", *kCollected = "--collected";

std::vector<std::string>& typed_words() {
  static std::vector<std::string> words;
  return words;
}

// Takes `--collect DIR` or `--collect=DIR` out of the words; empty if there is none.
std::string take_folder(std::vector<std::string>& words) {
  const std::string joined = std::string(kCollect) + "=";
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (word->starts_with(joined)) {
      const std::string folder = word->substr(joined.size());
      words.erase(word);
      return folder;
    }
    if (*word == kCollect && word + 1 != words.end()) {
      const std::string folder = *(word + 1);
      words.erase(word, word + 2);
      return folder;
    }
  }
  return "";
}

}  // namespace

void declare_many_machines(CLI::App& command, ManyMachines& options, bool has_jobs) {
  const std::string before = command.option_defaults()->get_group();
  command.option_defaults()->group("Many machines");
  CLI::Option* prepare = command.add_flag(
      kPrepare, options.prepare, "Only write the folders of the arms, for `sextant arm` anywhere");
  command
      .add_option_function<std::string>(
          kCollect, [](const std::string&) {},
          "Alone: what the arms that --prepare wrote in DIR have found; exit status 75 unless all "
          "are done")
      ->type_name("DIR");
  command.add_option(kCollected, options.collected)->excludes(prepare)->group("");
  command
      .add_option("--launch", options.launch,
                  "Start each arm by this command, such as \"srun -n1 -c2\" or \"ssh HOST\"")
      ->type_name("PREFIX")
      ->excludes(prepare);
  if (!has_jobs)
    command.add_option("--jobs", options.jobs, "With --launch: arms at a time")
        ->check(CLI::PositiveNumber)
        ->needs("--launch");
  command.option_defaults()->group(before);
}

lab::HandOut hand_out_of(const ManyMachines& options) {
  lab::HandOut hand_out{.launch = lab::launcher_words("--launch", options.launch),
                        .jobs = std::max(1, options.jobs)};
  if (options.prepare) hand_out.stage = lab::Stage::kPrepare;
  if (!options.collected.empty()) hand_out.stage = lab::Stage::kCollect;
  return hand_out;
}

std::vector<std::string> with_collected(std::vector<std::string> words) {
  const std::string folder = words.size() > 1 ? take_folder(words) : "";
  if (!folder.empty()) {
    const fs::path path = fs::path(folder) / kCommandFile;
    if (!fs::exists(path))
      fail(fmt::format("{}: expected a folder that {} wrote, but got {}, without {}", kCollect,
                       kPrepare, folder, kCommandFile));
    const json prepared = read_json(path);
    const JsonFields fields(prepared, path.string());
    std::vector<std::string> before;
    fields.read("words", before);
    if (before.empty()) fields.refuse("words", "the words of a command");
    if (words.size() < 2 || before.at(0) != words[1])
      fail(fmt::format("{}: {} was prepared by sextant {}, so expected sextant {} {} {}", kCollect,
                       folder, before.at(0), before.at(0), kCollect, folder));
    const std::string collected = fs::absolute(folder).lexically_normal().string();
    std::vector<std::string> more(words.begin() + 2, words.end());
    words.resize(1);
    words.insert(words.end(), before.begin(), before.end());
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {kCollected, collected});
    std::error_code elsewhere;  // then only absolute paths are found
    fs::current_path(fields.string("folder"), elsewhere);
  }
  typed_words() = words;
  return words;
}

void remember_command(const fs::path& folder) {
  std::vector<std::string> words(typed_words().begin() + 1, typed_words().end());
  std::erase(words, kPrepare);
  write_json(folder / kCommandFile, {{"words", words}, {"folder", fs::current_path().string()}});
}

void end_without_result(lab::MeasureEnd end, const fs::path& folder) {
  if (end == lab::MeasureEnd::kPrepared) {
    remember_command(folder);
    throw CLI::Success();
  }
  if (end == lab::MeasureEnd::kIncomplete) throw CLI::RuntimeError(kIncomplete);
  lab::note("stopped; the same command goes on");
  throw CLI::RuntimeError(lab::interrupted_status());
}

}  // namespace sextant::cli
