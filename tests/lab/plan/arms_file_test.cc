#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/lab/plan/settings_file.h"
#include "tests/lab/temporary_folder.h"

namespace sextant::lab {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class ArmsFileTest : public testing::Test {
 protected:
  ArmsFile read(const std::string& text) {
    write_text(folder_ / "arms.json", text);
    return read_arms_file(folder_ / "arms.json");
  }
  void refuses(const std::string& text, const std::string& message) {
    EXPECT_THAT([&] { read(text); }, ThrowsMessage<Error>(HasSubstr("arms.json: " + message)));
  }
  TemporaryFolder folder_;
};

TEST_F(ArmsFileTest, AreWordsOrObjects) {
  const ArmsFile file = read(R"({"arms": ["rope:base=1e6", {"method": "t5"},
      {"label": "far", "method": "rope", "options": {"dim": 16}}]})");
  ASSERT_EQ(file.arms.size(), 3);
  EXPECT_EQ(file.arms[0].label, "rope:base=1e6");
  EXPECT_EQ(file.arms[0].method, "rope");
  EXPECT_EQ(nlohmann::json::parse(file.arms[0].options), nlohmann::json({{"base", 1e6}}));
  EXPECT_EQ(file.arms[1].label, "t5");
  EXPECT_EQ(file.arms[2].label, "far");
  EXPECT_EQ(file.arms[2].options, R"({"dim":16})");
  EXPECT_EQ(file.settings, "{}");
}

TEST_F(ArmsFileTest, MayBringSettings) {
  const ArmsFile file =
      read(R"({"arms": ["t5"], "settings": {"training": {"bytes": 4096}, "test": {"bin": 8}}})");
  const Settings settings = laid_over({}, file.settings, "arms.json");
  EXPECT_EQ(settings.training.bytes, 4096);
  EXPECT_EQ(settings.training.length, 128);
  EXPECT_EQ(settings.test.bin, 8);
  EXPECT_THAT([] { laid_over({}, R"({"training": {"byte": 1}})", "arms.json"); },
              ThrowsMessage<Error>(
                  "arms.json: settings: training: byte: expected no such field, but got one"));
}

TEST_F(ArmsFileTest, SayWhatIsWrong) {
  refuses("[]", "expected an object, but got array");
  refuses("{}", "arms: expected a value, but it is missing");
  refuses(R"({"arms": []})", "arms: expected a list of methods, but got []");
  refuses(R"({"arms": ["t5"], "lengths": [1]})", "lengths: expected no such field");
  refuses(R"({"arms": ["t5:buckets=8:buckets=9"]})",
          "arms: t5:buckets=8:buckets=9: buckets: expected it once, but got 8 and 9");
  refuses(R"({"arms": [{"label": "a"}]})", "arms: method: expected a value");
  refuses(R"({"arms": [{"method": "t5", "options": 3}]})", "arms: options: expected an object");
  refuses(R"({"arms": [{"method": "t5", "label": ""}]})", "arms: label: expected a name");
  refuses(R"({"arms": [{"method": "t5", "label": "a\u001b[31m"}]})",
          R"(arms: label: expected a name without control characters, but got "a\u001b[31m")");
  refuses(R"({"arms": ["t5", {"method": "t5"}]})", "arms: label: expected each once, but got t5");
  refuses(R"({"arms": ["t5"], "settings": 1})", "settings: expected an object, but got 1");
}

class TomlArms : public testing::Test {
 protected:
  ArmsFile read(const std::string& text) {
    write_text(folder_ / "arms.toml", text);
    return read_arms_file(folder_ / "arms.toml");
  }
  void refuses(const std::string& text, const std::string& message) {
    EXPECT_THAT([&] { read(text); }, ThrowsMessage<Error>(HasSubstr("arms.toml: " + message)));
  }
  TemporaryFolder folder_;
};

TEST_F(TomlArms, AreThoseOfJson) {
  const ArmsFile file = read(R"(
arms = [
  "rope:base=1e6",
  {label = "far", method = "rope", options = {dim = 16, pairing = "interleaved"}},  # no stretch
]
[settings]
training.bytes = 4_096
test = {bin = 8, lengths = [128, 256], share = 0.5}
)");
  ASSERT_EQ(file.arms.size(), 2);
  EXPECT_EQ(file.arms[0].label, "rope:base=1e6");
  EXPECT_EQ(file.arms[1].label, "far");
  EXPECT_EQ(file.arms[1].options, R"({"dim":16,"pairing":"interleaved"})");
  const Settings settings = laid_over({}, file.settings, "arms.toml");
  EXPECT_EQ(settings.training.bytes, 4096);
  EXPECT_EQ(settings.test.bin, 8);
  EXPECT_EQ(settings.test.lengths, (std::vector<int64_t>{128, 256}));
  EXPECT_EQ(settings.test.share, 0.5);
  const ArmsFile tables = read("[[arms]]\nmethod = \"t5\"\n[[arms]]\nmethod = \"alibi\"\n");
  ASSERT_EQ(tables.arms.size(), 2);
  EXPECT_EQ(tables.arms[1].method, "alibi");
}

TEST_F(TomlArms, SayWhatIsWrongAndWhere) {
  refuses("arms = [\n  \"t5\n]\n", "line 2, column ");
  refuses("arms = [\"t5\"]\narms = [\"t5\"]\n", "line 2, column ");
  refuses(
      "arms = [\"t5\"]\n[settings.training]\nbytes = 1979-05-27\n",
      "line 3, column 9: settings.training.bytes: expected a number, a word, a list or a table, "
      "but got local_date");
  refuses("arms = [{method = \"rope\", options = {base = inf}}]\n",
          "line 1, column 45: arms.options.base: expected a finite number, but got inf");
  refuses("arms = [{method = \"rope\", options = {base = -1e999}}]\n",
          "line 1, column 45: arms.options.base: expected a finite number, but got -");
  refuses("[settings]\nthreads = 99999999999999999999\n",
          "line 2, column 11: settings.threads: expected an integer of 64 bits, but got integer");
  refuses("arms = [\"t5\"\n", "line 2, column 1: expected TOML, but got the end of the line");
  refuses("arms = [\"t5\"]\nlengths = [1]\n", "lengths: expected no such field");
  refuses("arms = [{label = \"a\"}]\n", "arms: method: expected a value");
  refuses("a = 1\narms = ]\n", "line 2, column 1: expected TOML, but got \"arms = ]\"");
  EXPECT_THAT([] { read_arms_file("/no/such/arms.toml"); },
              ThrowsMessage<Error>(HasSubstr("/no/such/arms.toml")));
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int n = 0; n < times; ++n) all += text;
  return all;
}

// toml11 would exhaust the stack, or for a dotted key take minutes.
TEST_F(TomlArms, AreBoundedInDepth) {
  const std::string levels = "expected at most 64 lists and tables within each other, but got more";
  const std::string parts = "expected at most 64 parts of a key, but got more";
  for (const int depth : {65, 8000, 30'000}) {
    refuses("arms = 1\na = " + repeated("[", depth) + repeated("]", depth), "line 2: " + levels);
    refuses("a = " + repeated("{b = ", depth) + "1" + repeated("}", depth), "line 1: " + levels);
    refuses("\n\na" + repeated(".a", depth) + " = 1", "line 3: " + parts);
    refuses("[a" + repeated(" . \"a\"", depth) + "]", "line 1: " + parts);
    refuses("a = {b" + repeated(".'a'", depth) + " = 1}", "line 1: " + parts);
  }
  // Brackets are also seen behind a string that ends in more quotes or in a backslash.
  const std::string deep = repeated("[", 8000);
  for (const std::string word : {R"("")", R"('')", R"("#")", R"('\')", R"("\"")", R"("""a""")",
                                 "\"\"\"\n\"\"\"\"\"", "'''[\n'''''"}) {
    EXPECT_THAT([&] { read("a = [" + word + ", " + deep); },
                ThrowsMessage<Error>(HasSubstr(levels)))
        << word;
  }
  // Parts of tables and of keys add up.
  refuses("[a" + repeated(".a", 40) + "]\nb" + repeated(".b", 40) + " = 1", "line 2, column");
  const std::string harmless = "arms = [\"t5\"]  # " + deep + "\n[settings]\nx = \"" + deep +
                               "\"\ny = '''\n" + deep + "'''\nz = [" + repeated("1.5, ", 200) +
                               "]\n";
  EXPECT_EQ(read(harmless).arms.size(), 1);
}

TEST_F(TomlArms, AreBoundedInSize) {
  EXPECT_THAT([&] { read("arms = [\"t5\"]\n" + std::string(1 << 20, '#')); },
              ThrowsMessage<Error>(HasSubstr("arms.toml: expected at most 262144 bytes, but got")));
}

}  // namespace
}  // namespace sextant::lab
