// A model that trains in seconds: text, and the command's arguments for training it.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/command.h"
#include "tests/cli/small_text.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::cli {

// Text, and a settings file for a training of a second or two.
class Model : public ::testing::Test {
 protected:
  Model() {
    write_small_text(folder_ / "text");
    write_plan({});
  }

  void write_plan(const nlohmann::json& more) const {
    nlohmann::json plan = {{"model",
                            {{"layers", 1},
                             {"width", 32},
                             {"heads", 2},
                             {"norm", "rmsnorm"},
                             {"activation", "swiglu"}}},
                           {"training", {{"length", 32}, {"bytes", 76800}}},
                           {"test", {{"blocks", 8}, {"share", 0.2}}},
                           {"text", {(folder_ / "text").string()}}};
    if (!more.is_null()) plan.merge_patch(more);
    write_text(folder_ / "plan.json", plan.dump());
  }

  std::vector<std::string> train_words(const std::string& to,
                                       std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"train", path("plan.json"), "--out", path(to)});
    return more;
  }
  Ended train(const std::string& to, const std::vector<std::string>& more = {}) const {
    return run(train_words(to, more));
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  TemporaryFolder folder_;
};

}  // namespace sextant::cli
