// sextant explain and sextant convert, as users run them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/cli/command.h"
#include "tests/cli/full_disk.h"
#include "tests/rope_config/published.h"

namespace sextant::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Explain : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) const {
    const std::string path = (folder_.path() / name).string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  TemporaryFolder folder_;
};

TEST_F(Explain, ExplainsPublishedConfigurations) {
  for (const sextant::testing::Published& one : sextant::testing::published_configs()) {
    SCOPED_TRACE(one.name);
    const std::string path = file(one.name + ".json", one.config);
    const Ended text = run({"explain", path});
    EXPECT_EQ(text.status, 0) << text.err;
    EXPECT_THAT(text.out, HasSubstr("wavelength"));
    const Ended numbers = run({"explain", path, "--json"});
    const json parsed = json::parse(numbers.out);
    EXPECT_FALSE(parsed.at("configs").at(0).at("pairs").empty());
  }
}

TEST_F(Explain, ReadsComposeFiles) {
  const std::string path = file("compose.yaml", R"(services:
  chat:
    image: ghcr.io/ggml-org/llama.cpp:server
    command: ["-c", "131072", "-np", "4", "--rope-scaling", "yarn", "--rope-scale", "4"]
    environment:
      LLAMA_ARG_YARN_ORIG_CTX: 32768
)");
  const Ended numbers = run({"explain", path, "--json", "--base", "1e6", "--head-dim", "128"});
  ASSERT_EQ(numbers.status, 0) << numbers.err;
  EXPECT_EQ(json::parse(numbers.out).at("configs").at(0).at("target_length"), 32768);
  const Ended written = run({"convert", path, "--as", "hf5", "--base", "1e6", "--head-dim", "128"});
  EXPECT_THAT(written.out, HasSubstr("\"rope_type\": \"yarn\"")) << written.err;
  const Ended wrong = run({"explain", file("wrong.yaml", "command: [\n")});
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.err,
              AllOf(HasSubstr("wrong.yaml: flags: YAML: line "), Not(HasSubstr("flags)"))));
}

// The sentence about distances beyond the trained angles, which a window, or nothing, may bound.
TEST_F(Explain, SaysWhichDistancesLieJustBeyond) {
  const std::string sizes = R"("hidden_size": 4096, "num_attention_heads": 32, "rope_theta": 1e6)";
  const auto said = [&](const std::string& type, const std::string& more) {
    std::string out =
        run({"explain", file("said.json", "{\"model_type\": \"" + type + "\", " + sizes + more)})
            .out;
    std::ranges::replace(out, '\n', ' ');
    return out;
  };
  EXPECT_THAT(said("qwen2", R"(, "max_position_embeddings": 32768,
                  "rope_scaling": {"rope_type": "linear", "factor": 2}})"),
              HasSubstr("65536 positions are what the stretch was made for, and their last "
                        "distance lies just beyond."));
  EXPECT_THAT(said("mistral", R"(, "max_position_embeddings": 8192, "sliding_window": 4096,
                  "rope_scaling": {"rope_type": "yarn", "factor": 4,
                                   "original_max_position_embeddings": 1024}})"),
              HasSubstr("4096 positions are what the stretch was made for"));
  EXPECT_THAT(said("qwen2", R"(, "max_position_embeddings": 1010000,
                  "dual_chunk_attention_config": {"chunk_size": 262144, "local_size": 8192,
                                                  "original_max_position_embeddings": 262144}})"),
              AllOf(HasSubstr("the last distance lies just beyond."),
                    Not(HasSubstr("the stretch was made for"))));
}

std::set<std::string> keys_of(const json& object) {
  std::set<std::string> keys;
  for (const auto& item : object.items()) keys.insert(item.key());
  return keys;
}

// Schema 3 of docs/explain.md. Other tools read it: each group has all keys, under constant names,
// with null where a key does not apply.
TEST_F(Explain, AVisionPartIsASectionAndAnObject) {
  const std::string path = file("config.json", R"({"model_type": "mistral3",
      "text_config": {"model_type": "mistral", "head_dim": 16, "rope_theta": 500000},
      "vision_config": {"model_type": "pixtral", "head_dim": 8, "rope_theta": 500000,
      "image_size": 100, "patch_size": 16}})");
  const std::string text = run({"explain", path}).out;
  for (const char* line :
       {"== vision: vision_config (pixtral) ==", "by height, then width: 8 of 8 channels of a head",
        "axis          width: 2 pairs, channels 2 and 6 to 3 and 7",
        "grid          6 x 6 patches; the rotation itself takes any",
        "warning: rope_theta 500000.0 is that of the language model",
        "warning: image_size 100 is no multiple of patch_size 16"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  const json part = json::parse(run({"explain", path, "--json"}).out).at("vision").at(0);
  EXPECT_EQ(
      keys_of(part),
      (std::set<std::string>{
          "place",       "model_type", "origin",     "judged",      "rotates",    "instead",
          "where",       "form",       "head_dim",   "rotary_dim",  "base",       "pairing",
          "axes",        "order",      "sections",   "coordinates", "normalised", "first_index",
          "first_token", "last_token", "grid",       "only_grid",   "window",     "full_layers",
          "full_scale",  "adds",       "table_size", "pairs",       "notes",      "warnings"}));
  EXPECT_EQ(part.at("order"), "strided");
  EXPECT_EQ(part.at("pairs").at(2).at("channels"), json({2, 6}));
}

TEST_F(Explain, JsonIsOfSchema3) {
  const std::string path = file("config.json", R"({"model_type": "llama4_text", "head_dim": 16,
      "num_hidden_layers": 4, "rope_theta": 500000, "max_position_embeddings": 32768})");
  const json parsed = json::parse(run({"explain", path, "--json"}).out);
  EXPECT_EQ(keys_of(parsed),
            (std::set<std::string>{"schema", "dialect", "configs", "vision", "settings"}));
  EXPECT_EQ(parsed.at("vision"), json::array());
  EXPECT_EQ(parsed.at("schema"), 3);
  EXPECT_EQ(parsed.at("dialect"), "Hugging Face config.json");
  ASSERT_EQ(parsed.at("configs").size(), 2U);
  const std::set<std::string> keys = {"layers",
                                      "layer_numbers",
                                      "rotates",
                                      "instead",
                                      "pairing",
                                      "rotated_channels",
                                      "head_dim",
                                      "rotary_dim",
                                      "base",
                                      "method",
                                      "rope_type",
                                      "parameters",
                                      "factor",
                                      "trained_length",
                                      "target_length",
                                      "attention_factor",
                                      "score_factor",
                                      "softmax_scale",
                                      "unrotated_softmax_scale",
                                      "query_law",
                                      "window",
                                      "both_sides",
                                      "chunk",
                                      "doubts",
                                      "dual_chunk",
                                      "bounded_in",
                                      "largest_distance",
                                      "new_angles_from",
                                      "float32_error",
                                      "pairs",
                                      "notes",
                                      "warnings"};
  const json &rotates = parsed.at("configs")[0], &still = parsed.at("configs")[1];
  EXPECT_EQ(keys_of(rotates), keys);
  EXPECT_EQ(rotates.at("rotates"), true);
  EXPECT_EQ(rotates.at("layer_numbers"), json({0, 1, 2}));
  EXPECT_EQ(rotates.at("pairing"), "interleaved");
  EXPECT_EQ(rotates.at("rotated_channels"), json({0, 15}));
  EXPECT_EQ(rotates.at("base"), 500000);
  EXPECT_EQ(rotates.at("chunk"), 8192);
  ASSERT_EQ(rotates.at("pairs").size(), 8U);
  EXPECT_EQ(keys_of(rotates.at("pairs")[0]),
            (std::set<std::string>{"axis", "frequency", "stretched", "rotations_in_training",
                                   "kept", "new_from"}));
  EXPECT_EQ(keys_of(still), keys);
  EXPECT_EQ(still.at("rotates"), false);
  EXPECT_EQ(still.at("layer_numbers"), json({3}));
  EXPECT_EQ(still.at("instead"), "none");
  EXPECT_EQ(still.at("method"), "NoPE");
  EXPECT_EQ(still.at("pairs"), json::array());
  EXPECT_THAT(still.at("query_law").get<std::string>(), HasSubstr("8192"));
  for (const char* key : {"pairing", "rotated_channels", "base", "rope_type"}) {
    EXPECT_TRUE(still.at(key).is_null()) << key;
  }
  // The keys of schema 2, for one version.
  const json& old = parsed.at("settings")[0];
  EXPECT_EQ(old.at("rope_theta"), 500000);
  EXPECT_TRUE(old.at("query_factor").is_null());
  EXPECT_EQ(old.at("softmax_scale_of_unturned"), rotates.at("unrotated_softmax_scale"));
  EXPECT_EQ(old.at("pairs")[1].at("turns_in_training"),
            rotates.at("pairs")[1].at("rotations_in_training"));
}

// convert prints its result alone, so the output can go to a file or another program unchanged.
TEST_F(Explain, ConvertPrintsItsResultAlone) {
  const std::string path = file("config.json", R"({"model_type": "deepseek_v3", "head_dim": 16,
      "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "max_position_embeddings": 163840,
      "rope_scaling": {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0,
      "original_max_position_embeddings": 4096}, "rope_theta": 10000, "attention_dropout": NaN})");
  const Ended converted = run({"convert", path, "--as", "hf5"});
  EXPECT_EQ(converted.status, 0);
  EXPECT_THAT(converted.err, HasSubstr("warning: mscale_all_dim also scales all scores"));
  EXPECT_THAT(converted.out, Not(HasSubstr("warning")));
  EXPECT_THAT(converted.out, HasSubstr("\"attention_dropout\": NaN")) << "as Python writes it";
  const std::string again = file("again.json", converted.out);
  EXPECT_EQ(run({"explain", again}).status, 0);
  const Ended flags = run({"convert", path, "--as", "vllm"});
  EXPECT_EQ(flags.out.find("--hf-overrides '{"), 0U) << flags.out;
  EXPECT_EQ(flags.out.find('\n'), flags.out.size() - 1) << "one line";
  EXPECT_THAT(flags.err, HasSubstr("warning: "));
  const Ended refused = run({"convert", path, "--as", "llama.cpp"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_EQ(refused.out, "");
  const std::string to = (folder_.path() / "out.json").string();
  const Ended written = run({"convert", path, "--as", "hf5", "-o", to});
  EXPECT_EQ(written.out, "");
  EXPECT_EQ(read_text(to), converted.out);
}

TEST_F(Explain, WhatIsConvertedReadsAlike) {
  const std::string path = file("config.json", sextant::testing::published_configs()[1].config);
  const auto pairs = [](const std::string& from) {
    return json::parse(run({"explain", from, "--json"}).out).at("configs").at(0).at("pairs");
  };
  for (const char* dialect : {"hf5", "hf4", "gguf"}) {
    const std::string to = (folder_.path() / dialect).string();
    EXPECT_EQ(run({"convert", path, "--as", dialect, "-o", to}).status, 0) << dialect;
    EXPECT_EQ(pairs(to), pairs(path)) << dialect;
  }
}

TEST_F(Explain, AFailedConversionLeavesTheFileAsItWas) {
  const std::string path = file("config.json", sextant::testing::published_configs()[1].config);
  const std::string to = file("before.json", "before");
  EXPECT_EQ(run({"convert", path, "--as", "hf5", "-o", to}, files_of_at_most(8)).status, 1);
  EXPECT_EQ(read_text(to), "before");
}

TEST_F(Explain, ControlCharactersOfAFileStayInIt) {
  const std::string path = file("config.json", sextant::testing::published_configs()[1].config);
  const std::string gguf = (folder_.path() / "x.gguf").string();
  ASSERT_EQ(run({"convert", path, "--as", "gguf", "-o", gguf}).status, 0);
  const std::string bytes = read_text(gguf);
  const std::string name = "llama";
  ASSERT_NE(bytes.find(name), std::string::npos);
  for (const char* of_terminals : {"l\x1b[2m",
                                   "l\xc2\x9b"
                                   "1m",
                                   "l\nsex",
                                   "l\xe2\x80\xae"
                                   "m"}) {
    std::string foreign = bytes;
    for (size_t n = 0; (n = foreign.find(name, n)) != std::string::npos;) {
      foreign.replace(n, name.size(), of_terminals);
    }
    const std::string to = file("foreign.gguf", foreign);
    for (const std::vector<std::string>& words : {std::vector<std::string>{"explain", to},
                                                  {"explain", to, "--json"},
                                                  {"doctor", to},
                                                  {"doctor", to, "--json"},
                                                  {"convert", to, "--as", "hf5"}}) {
      const Ended ended = run(words);
      for (const char* hidden : {"\x1b", "\xc2\x9b", "\nsex", "\xe2\x80\xae"}) {
        EXPECT_THAT(ended.out + ended.err, Not(HasSubstr(hidden))) << words[0];
      }
      if (words.back() == "--json") {
        EXPECT_TRUE(json::accept(ended.out)) << ended.out;
      }
    }
  }
  EXPECT_THAT(run({"doctor", (folder_.path() / "foreign.gguf").string()}).out,
              HasSubstr("l\\u202em"));
}

TEST_F(Explain, ErrorsNameTheKeyAndNothingForeignReachesTheTerminal) {
  const Ended bad = run({"explain", file("bad.json",
                                         "{\"head_dim\": 64, \"rope_theta\": 1e4, "
                                         "\"rope_\x1b[2J\": 3}")});
  EXPECT_EQ(bad.status, 1);
  EXPECT_THAT(bad.err, HasSubstr("rope_"));
  EXPECT_THAT(bad.out + bad.err, Not(HasSubstr("\x1b")));
  EXPECT_EQ(run({"explain", folder_.path().string()}).status, 1);
  EXPECT_EQ(run({"explain"}).status, 2);
  const std::string good = file("good.json", R"({"head_dim": 64, "rope_theta": 1e4})");
  EXPECT_EQ(run({"explain", good, "--length", "4096"}).status, 0);
  for (const auto& [flag, value] : {std::pair{"--base", "nan"},
                                    {"--base", "0"},
                                    {"--base", "1e40"},
                                    {"--head-dim", "0"},
                                    {"--length", "9999999999999999999"},
                                    {"--length", "1.5"}}) {
    const Ended wrong = run({"explain", good, flag, value});
    EXPECT_EQ(wrong.status, 2) << flag << " " << value;
    EXPECT_THAT(wrong.err, HasSubstr(flag));
    EXPECT_THAT(wrong.err, HasSubstr("expected a"));
  }
  const std::string pipe = (folder_.path() / "pipe").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(run({"explain", pipe}).err, HasSubstr("expected a file, but got a named pipe"));
  EXPECT_THAT(run({"explain", pipe + "s"}).err, HasSubstr("expected a file, but got none"));
  EXPECT_EQ(run({"convert", folder_.path().string(), "--as", "morse"}).status, 2);
}

}  // namespace
}  // namespace sextant::cli
