// sextant doctor on files, and its start of Python.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "sextant/files/gguf.h"
#include "sextant/rope_config/write_config.h"
#include "tests/cli/command.h"

namespace sextant::cli {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

class Doctor : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& bytes) const {
    const std::string path = (folder_.path() / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string llama(double base) const {
    const json config = {{"model_type", "llama"},           {"hidden_size", 1024},
                         {"num_attention_heads", 8},        {"num_hidden_layers", 4},
                         {"max_position_embeddings", 4096}, {"rope_theta", base}};
    return config.dump();
  }
  // By 4, from 8192 positions; a linear stretch does not read these.
  std::string stretched(const char* type) const {
    json config = json::parse(llama(10000));
    config["max_position_embeddings"] = 32768;
    config["rope_scaling"] = {
        {"rope_type", type}, {"factor", 4.0}, {"original_max_position_embeddings", 8192}};
    return config.dump();
  }

  TemporaryFolder folder_;
};

TEST_F(Doctor, ASoundConversionHasStatus0) {
  const std::string config = file("config.json", llama(10000));
  const std::string gguf =
      file("model.gguf", write_rope_config(read_rope_config(config, {}), "gguf"));
  const Ended pair = run({"doctor", config, gguf});
  EXPECT_EQ(pair.status, 0) << pair.err;
  EXPECT_THAT(pair.out, HasSubstr("verdict: sound (model: not measured)\n"));
  EXPECT_THAT(pair.out, HasSubstr("files are judged by their text, and none was run"));
  EXPECT_THAT(pair.out, HasSubstr("permuted the weights"));
  const Ended alone = run({"doctor", gguf});
  EXPECT_EQ(alone.status, 0) << alone.out << alone.err;
}

// A base fills in only what a file lacks.
TEST_F(Doctor, ABaseIsForFilesThatDoNotSayIt) {
  const std::string config = file("config.json", llama(500000));
  const std::string gguf =
      file("model.gguf", gguf_bytes({{"general.architecture", std::string("llama")},
                                     {"llama.attention.key_length", uint64_t{128}},
                                     {"llama.block_count", uint64_t{4}},
                                     {"llama.context_length", uint64_t{4096}}},
                                    {}));
  const Ended missing = run({"doctor", config, gguf});
  EXPECT_EQ(missing.status, 1) << "llama.cpp takes 10000";
  EXPECT_THAT(missing.out, HasSubstr("the base is 500000 and 10000"));
  EXPECT_EQ(run({"doctor", config, gguf, "--base", "500000"}).status, 0);
  const std::string other = file("other.json", llama(10000));
  EXPECT_EQ(run({"doctor", config, other, "--base", "500000"}).status, 1);
  const Ended negative = run({"doctor", config, gguf, "--base", "-5"});
  EXPECT_EQ(negative.status, 2);
  EXPECT_THAT(negative.err, HasSubstr("--base: expected a number from 0.001 to 1e+30"));
  const Ended model = run({"doctor", folder_.path().string(), "--base", "500000"});
  EXPECT_EQ(model.status, 2);
  EXPECT_THAT(model.err, HasSubstr("--base: expected a file or two files"));
}

TEST_F(Doctor, ADifferenceHasStatus1AndAllOutputsNameIt) {
  const std::string a = file("a.json", llama(10000)), b = file("b.json", llama(500000));
  const Ended text = run({"doctor", a, b});
  EXPECT_EQ(text.status, 1);
  EXPECT_THAT(text.out, HasSubstr("error: frequencies, layers 0-3"));
  EXPECT_THAT(text.out, HasSubstr("the base is 10000 and 500000"));
  EXPECT_THAT(text.out, HasSubstr("verdict: 1 finding (model: not measured)\n"));
  const std::string page = (folder_.path() / "page.html").string();
  const Ended answer = run({"doctor", a, b, "--json", "--html", page});
  EXPECT_EQ(answer.status, 1);
  const json report = json::parse(answer.out);
  EXPECT_EQ(report["schema"], 2);
  EXPECT_EQ(report["verdict"], "findings");
  EXPECT_EQ(report["findings"][0]["field"], "frequencies");
  EXPECT_EQ(report["findings"][0]["severity"], "error");
  EXPECT_EQ(report["findings"][0]["kind"], "");
  EXPECT_EQ(report["layers"][0]["verdict"], "frequencies");
  EXPECT_THAT(read_text(page), HasSubstr("the base is 10000 and 500000"));
}

TEST_F(Doctor, AFileThatCannotBeReadHasStatus2) {
  const Ended missing = run({"doctor", (folder_.path() / "no.gguf").string()});
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.err, HasSubstr("no.gguf"));
}

TEST_F(Doctor, AFileAloneIsJudgedByItsTextWithoutPython) {
  const auto without_python = [] { ::setenv("SEXTANT_PYTHON", "/bin/false", 1); };
  const Ended sound = run({"doctor", file("config.json", llama(10000))}, without_python);
  EXPECT_EQ(sound.status, 0) << sound.err;
  EXPECT_THAT(sound.out, HasSubstr("config.json, against transformers"));
  EXPECT_THAT(sound.out, HasSubstr("verdict: sound"));
  const Ended refused =
      run({"doctor", file("a.json", R"({"rope_scaling": {"type": "yarrn"}})")}, without_python);
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.out, HasSubstr("error: configuration"));
  EXPECT_THAT(refused.out, HasSubstr("verdict: 1 finding (model: not measured)\n"));
  const Ended missing = run({"doctor", "no.json"}, without_python);
  EXPECT_EQ(missing.status, 2);
  EXPECT_THAT(missing.err, HasSubstr("no.json: expected a file, but got none"));
  for (const char* option : {"--weights", "--trust-remote-code"}) {
    const Ended ended = run({"doctor", file("config.json", llama(10000)), option}, without_python);
    EXPECT_EQ(ended.status, 2);
    EXPECT_THAT(ended.err, HasSubstr("expected one model of transformers, but got a file"));
  }
}

TEST_F(Doctor, WarningsFailOnlyIfAskedTo) {
  const std::string doubtful = file("config.json", stretched("linear"));
  const Ended kind = run({"doctor", doubtful}), strict = run({"doctor", doubtful, "--strict"});
  EXPECT_EQ(kind.status, 0) << kind.err;
  EXPECT_THAT(kind.out, HasSubstr("warning: configuration, layers 0-3"));
  EXPECT_THAT(kind.out, HasSubstr("verdict: 1 warning (model: not measured)\n"));
  EXPECT_EQ(strict.status, 1);
  EXPECT_EQ(strict.out, kind.out);
}

// YaRN of factor 4 from 8192 positions reaches 32768.
TEST_F(Doctor, AFileOfALengthBeyondItsStretchIsDoubtful) {
  json config = json::parse(stretched("yarn"));
  EXPECT_THAT(run({"doctor", file("a.json", config.dump())}).out, HasSubstr("verdict: sound"));
  config["max_position_embeddings"] = 131072;
  EXPECT_THAT(run({"doctor", file("b.json", config.dump())}).out,
              HasSubstr("which YaRN with factor 4 reaches"));
}

TEST_F(Doctor, EachFileIsJudgedByItselfInOneCall) {
  const std::string sound = file("sound.json", llama(10000));
  const std::string doubtful = file("doubtful.json", stretched("linear"));
  const std::string wrong = file("wrong.json", "{\n\"a\": }"), missing = "no.json";
  const Ended text = run({"doctor", "--each", sound, doubtful, wrong, missing});
  EXPECT_EQ(text.status, 1);
  EXPECT_THAT(text.out, HasSubstr(sound + ": sound (model: not measured)\n"));
  EXPECT_THAT(text.out, HasSubstr("no.json: expected a file"));
  json without = json::parse(stretched("yarn"));
  without["rope_scaling"].erase("original_max_position_embeddings");
  const Ended noted = run({"doctor", "--each", sound, file("without.json", without.dump())});
  EXPECT_THAT(noted.out, HasSubstr("original_max_position_embeddings is missing"));
  const Ended github = run({"doctor", "--each", "--as", "github", sound, doubtful, wrong});
  EXPECT_EQ(github.status, 1);
  EXPECT_THAT(github.out, HasSubstr("::warning file=" + doubtful + ",line=1,title="));
  EXPECT_THAT(github.out, HasSubstr("::error file=" + wrong + ",line=2,title="));
  EXPECT_THAT(github.out, HasSubstr("reports 3, errors 1, warnings 1, not judged 0\n"));
  const Ended answer = run({"doctor", "--each", "--as", "json", sound, doubtful});
  EXPECT_EQ(answer.status, 0);
  EXPECT_EQ(json::parse(answer.out).size(), 2);
  const Ended sarif = run({"doctor", "--each", "--as", "sarif", sound, missing});
  EXPECT_EQ(sarif.status, 2);
  EXPECT_EQ(json::parse(sarif.out)["runs"][0]["results"][0]["ruleId"], "not-judged");
  EXPECT_EQ(run({"doctor", "--each", doubtful, missing, "--strict"}).status, 1);
  EXPECT_EQ(run({"doctor", "--each", sound}).status, 0);
}

TEST_F(Doctor, LinesThatContradictThemselvesAreRefused) {
  const std::string a = file("a.json", llama(10000));
  const std::vector<std::pair<std::vector<std::string>, const char*>> refused = {
      {{a, a, a}, "--each judges each by itself"},
      {{a, "--each", "--html", "x.html"}, "--each: expected no --html"},
      {{"--each", "--examined", a}, "--each: expected no --examined"},
      {{a, "--as", "junit"}, "github"},
      {{a, "--as", "github", "--json"}, "--json excludes --as"}};
  for (const auto& [words, error] : refused) {
    std::vector<std::string> line = {"doctor"};
    line.insert(line.end(), words.begin(), words.end());
    const Ended ended = run(line);
    EXPECT_EQ(ended.status, 2) << error;
    EXPECT_THAT(ended.err, HasSubstr(error));
  }
}

TEST_F(Doctor, AGgufFileIsKnownByItsFirstBytes) {
  const std::string config = file("config.json", llama(10000));
  const std::string bytes = write_rope_config(read_rope_config(config, {}), "gguf");
  for (const char* name : {"blob", "model.GGUF"}) {
    const Ended ended = run({"doctor", file(name, bytes)});
    EXPECT_EQ(ended.status, 0) << ended.out << ended.err;
    EXPECT_THAT(ended.out, HasSubstr("verdict: sound"));
  }
  const Ended wrong = run({"doctor", file("wrong.gguf", "{")});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.out, HasSubstr("wrong.gguf, against the formats that explain reads"));
}

TEST_F(Doctor, FilesTakeNoOptionsOfModels) {
  const std::string config = file("config.json", llama(10000));
  const std::string gguf =
      file("model.gguf", write_rope_config(read_rope_config(config, {}), "gguf"));
  for (const char* option : {"--weights", "--trust-remote-code"}) {
    const Ended one = run({"doctor", gguf, option}), pair = run({"doctor", config, gguf, option});
    EXPECT_EQ(one.status, 2);
    EXPECT_THAT(one.err, HasSubstr(std::string(option) + ": expected one model of transformers, "
                                                         "but got a GGUF file"));
    EXPECT_EQ(pair.status, 2);
    EXPECT_THAT(pair.err, HasSubstr("but got two files"));
  }
}

TEST_F(Doctor, APageNeedsItsFolder) {
  const std::string config = file("config.json", llama(10000));
  const std::string folder = (folder_.path() / "none").string(), page = folder + "/x.html";
  const Ended ended = run({"doctor", config, config, "--html", page});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, HasSubstr(page + ": expected a file in a folder that exists"));
  EXPECT_FALSE(std::filesystem::exists(folder));
  const Ended of_model = run({"doctor", folder_.path().string(), "--html", page},
                             [] { ::setenv("SEXTANT_PYTHON", "/bin/echo", 1); });
  EXPECT_EQ(of_model.status, 2);
  const Ended on_folder = run({"doctor", config, config, "--html", folder_.path().string()});
  EXPECT_EQ(on_folder.status, 2);
  EXPECT_THAT(on_folder.err, HasSubstr("expected a file, but this is a folder"));
}

// The stand-in for Python says why it found nothing.
TEST_F(Doctor, AModelOfTransformersIsExaminedByPython) {
  file("config.json", llama(10000));
  const std::string python = file("python", R"(#!/bin/sh
[ "$1" = -c ] && exit 0
shift; echo "examined: $*" >&2
echo '{"subject": "m\u001b[2J", "against": "config.json", "versions": [["torch", "2"]],
"config": "", "length": 0, "longest": 0, "layers": [], "findings": [], "notes": [],
"unjudged": [{"layers": [], "what": "model", "why": "it is a stand-in"}]}' >"$3"
)");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  const std::string folder = folder_.path().string();
  const Ended ended =
      run({"doctor", folder, "--weights"}, [&] { ::setenv("SEXTANT_PYTHON", python.c_str(), 1); });
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(ended.err, HasSubstr("is run by " + python));
  EXPECT_THAT(ended.err, HasSubstr("examined: sextant.doctor.examine " + folder + " /dev/fd/"));
  EXPECT_THAT(ended.err, HasSubstr(" --weights\n"));
  EXPECT_EQ(ended.out,
            "m\\u001b[2J, against config.json (torch 2)\n\nnot judged    model: it is a stand-in\n"
            "verdict: cannot be judged\n");
  const Ended none = run({"doctor", folder}, [] { ::setenv("SEXTANT_PYTHON", "/no/python", 1); });
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("cannot run /no/python"));
  EXPECT_THAT(none.err, HasSubstr("SEXTANT_PYTHON"));
  const Ended lacking =
      run({"doctor", folder}, [] { ::setenv("SEXTANT_PYTHON", "/bin/false", 1); });
  EXPECT_EQ(lacking.status, 2);
  EXPECT_THAT(lacking.err, HasSubstr("/bin/false has no package sextant"));
  EXPECT_THAT(lacking.err, HasSubstr("SEXTANT_PYTHON"));
}

TEST_F(Doctor, WhatWasExaminedTakesThePlaceOfAModel) {
  const std::string path = file("examined.json", "{");
  const Ended both = run({"doctor", path, "--examined", path}), none = run({"doctor"});
  EXPECT_EQ(both.status, 2);
  EXPECT_EQ(none.status, 2);
  EXPECT_THAT(none.err, HasSubstr("one of MODEL and --examined"));
  const Ended wrong = run({"doctor", "--examined", path});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.err, HasSubstr(path + ": expected JSON, but could not read it"));
}

}  // namespace
}  // namespace sextant::cli
