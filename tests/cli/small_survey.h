// A survey that takes seconds: text, and the arguments that start it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/command.h"
#include "tests/cli/small_text.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::cli {

// The arguments for a survey of seconds of FOLDER/text in FOLDER/OUT.
inline std::vector<std::string> survey_words(const TemporaryFolder& folder, const std::string& out,
                                             std::vector<std::string> more = {}) {
  std::vector<std::string> words{"survey",  "--smoke", "--text", (folder / "text").string(),
                                 "--share", "0.2",     "--out",  (folder / out).string()};
  if (std::ranges::find(more, "--methods") == more.end()) {
    more.insert(more.end(), {"--methods", "rope,alibi,window"});
  }
  words.insert(words.end(), more.begin(), more.end());
  if (std::ranges::find(more, "--retrieval-steps") == more.end()) {
    words.insert(words.end(), {"--retrieval-steps", "0"});
  }
  return words;
}

class Survey : public ::testing::Test {
 protected:
  Survey() { write_small_text(folder_ / "text"); }

  std::vector<std::string> words(const std::string& out, std::vector<std::string> more = {}) const {
    return survey_words(folder_, out, std::move(more));
  }

  Ended survey(const std::string& out, const std::vector<std::string>& more = {}) const {
    return run(words(out, more));
  }

  TemporaryFolder folder_;
};

}  // namespace sextant::cli
