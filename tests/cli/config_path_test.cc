// sextant explain PATH, where PATH is a model's folder: the file that is read, and messages that
// name that file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/command.h"

namespace sextant::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

// A file that can be read, and one that causes an error whose message contains the path.
const std::string kGood = R"({"head_dim": 64, "rope_theta": 1e4})";
const std::string kBad = R"({"head_dim": 64})";

class ConfigPath : public ::testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    write_text(folder_ / name, text);
    return (folder_ / name).string();
  }
  std::string path(const std::string& name = "") const {
    return name.empty() ? folder_.path().string() : (folder_ / name).string();
  }
  std::string dialect(const std::string& of) const {
    const Ended ended = run({"explain", of, "--json"});
    EXPECT_EQ(ended.status, 0) << ended.err;
    return ended.status == 0 ? json::parse(ended.out).at("dialect").get<std::string>() : "";
  }
  void refuse(const std::string& of, const std::string& words) const {
    const Ended ended = run({"explain", of});
    EXPECT_EQ(ended.status, 1);
    EXPECT_EQ(ended.out, "");
    EXPECT_THAT(ended.err, HasSubstr(words));
  }
  // Writes a GGUF file without weights by `sextant convert`.
  std::string gguf() const {
    const std::string to = (folder_ / "made").string();
    EXPECT_EQ(run({"convert", write("made.json", kGood), "--as", "gguf", "-o", to}).status, 0);
    std::filesystem::remove(folder_ / "made.json");
    const std::string bytes = read_text(to);
    std::filesystem::remove(to);
    return bytes;
  }

  TemporaryFolder folder_;
};

// llama.cpp's encoders of images lie beside their models.
TEST_F(ConfigPath, AProjectorIsNoModel) {
  write("model/model-Q8_0.gguf", gguf());
  write("model/mmproj-model-f16.gguf", "GGUF");
  EXPECT_EQ(dialect(path("model")), "GGUF");
  std::filesystem::remove(path("model/model-Q8_0.gguf"));
  refuse(path("model"), "mmproj-model-f16.gguf: ");
}

TEST_F(ConfigPath, AFolderMeansItsConfigJson) {
  write("model/model.gguf", gguf());
  write("model/config.json", kGood);
  EXPECT_EQ(dialect(path("model")), "Hugging Face config.json");
  EXPECT_EQ(dialect(path("model") + "/"), "Hugging Face config.json");
  write("model/config.json", kBad);
  refuse(path("model"), "config.json: rope_theta: expected the base of the frequencies");
  write("model/params.json", kBad);
  refuse(path("model/params.json"), path("model/params.json") + ": rope_theta: expected the base");
}

TEST_F(ConfigPath, AFolderOfTheHubsCacheMeansTheSnapshotInUse) {
  const std::string model = "models--org--name/";
  write(model + "refs/main", "0a1b");
  write(model + "snapshots/0a1b/config.json", kGood);
  write(model + "snapshots/ffff/config.json", kBad);
  EXPECT_EQ(dialect(path(model)), "Hugging Face config.json");
  write(model + "refs/main", "ffff");
  refuse(path(model), "config.json: rope_theta: expected the base");
  for (const char* unknown : {"eeee", "../../elsewhere", ""}) {
    write(model + "refs/main", unknown);
    refuse(path(model),
           "expected one snapshot with a config.json, but got 2; give the folder of "
           "one, snapshots/REVISION");
  }
  std::filesystem::remove_all(folder_ / (model + "snapshots/ffff"));
  EXPECT_EQ(dialect(path(model)), "Hugging Face config.json") << "the only one";
  std::filesystem::remove_all(folder_ / (model + "snapshots/0a1b"));
  refuse(path(model), "expected one snapshot with a config.json, but got 0");
}

TEST_F(ConfigPath, AFolderWithOneGgufFileMeansIt) {
  const std::string bytes = gguf();
  write("one/model-00001-of-00002.gguf", bytes);
  write("one/model-00002-of-00002.gguf", "no first part");
  write("one/notes.txt", "");
  EXPECT_EQ(dialect(path("one")), "GGUF") << "the first of its parts";
  write("cut/model.gguf", bytes.substr(0, 40));
  EXPECT_THAT(run({"explain", path("cut")}).err, HasSubstr("gguf: "));
}

TEST_F(ConfigPath, AFolderWithMoreOrNoneIsNamed) {
  const std::string bytes = gguf();
  write("two/b.gguf", bytes);
  write("two/a.gguf", bytes);
  const Ended two = run({"explain", path("two")});
  EXPECT_EQ(two.status, 1);
  EXPECT_THAT(two.err, AllOf(HasSubstr(path("two") + ": expected a folder with a config.json or"),
                             HasSubstr("2 .gguf files, a.gguf and b.gguf among them")));
  write("none/model.safetensors", "");
  refuse(path("none"), path("none") +
                           ": expected a folder with a config.json or one .gguf file, "
                           "but got neither");
  refuse(path("absent"), path("absent") + ": expected a file, but got none");
  refuse(path("none/config.json"), path("none/config.json") + ": expected a file, but got none");
  write("empty/config.json", "");
  refuse(path("empty"), path("empty/config.json") + ": expected a file with something in it");
  // A folder named config.json is no file.
  std::filesystem::create_directories(folder_ / "odd/config.json");
  refuse(path("odd"), path("odd") + ": expected a folder with a config.json or one .gguf file");
}

}  // namespace
}  // namespace sextant::cli
