// Depth, length and extreme values, which mutations of a small file do not reach.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/rope_config/explain.h"
#include "sextant/rope_config/families/expression.h"
#include "sextant/rope_config/families/family.h"
#include "sextant/rope_config/read_config.h"
#include "sextant/rope_config/write_config.h"

namespace sextant {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int64_t kLayers = 4096;  // the most layers that a file may have

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int n = 0; n < times; ++n) all += text;
  return all;
}

json value_of(const std::string& name) {
  static const json values = {{"zero", 0},
                              {"huge", 1e308},
                              {"least", std::numeric_limits<int64_t>::min()},
                              {"list", {1, 0, 3}},
                              {"by_layer", {{"05", 7}, {"6", 8}}},
                              {"text", "a"}};
  if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
  return values.value(name, json());
}

json of(const std::string& expression) { return evaluate(expression, value_of); }

void refuse(const std::string& expression, const char* words) {
  EXPECT_THAT([&] { of(expression); }, ThrowsMessage<Error>(HasSubstr(words)))
      << expression.substr(0, 60);
}

void refuse_config(const std::string& config, const char* words) {
  EXPECT_THAT([&] { read_rope_config_bytes(config, {}); }, ThrowsMessage<Error>(HasSubstr(words)))
      << config.substr(0, 60);
}

// Reads a file of the most layers, each with fields of its own. If each layer parsed the whole file
// again, this would take minutes and CTest would time out.
std::vector<RopeConfig> read_long(const json& config) {
  return read_rope_config_bytes(config.dump(), {}).configs;
}

template <class F>
json by_layer(F value) {
  json list = json::array();
  for (int64_t layer = 0; layer < kLayers; ++layer) list.push_back(value(layer));
  return list;
}

TEST(Expression, DepthIsBounded) {
  for (const char* opening : {"(", "[", "-", "not ", "2 ** ", "int(", "list[", "min(1, ", "2 ** -",
                              "1 if zero else ", "1 if list[", "(zero or "}) {
    refuse(repeated(opening, 100000) + "1", "expected fewer parentheses");
    EXPECT_THROW(check_expression(repeated(opening, 100000) + "1"), Error) << opening;
  }
  EXPECT_EQ(of(repeated("(", 90) + "3" + repeated(")", 90)), json(3.0));
  EXPECT_EQ(of("0" + repeated(" + 1", 100000)), json(100000.0)) << "length is not";
  EXPECT_EQ(of(repeated("zero or ", 100000) + "2"), json(2.0));
}

TEST(Expression, NumbersEndInAnError) {
  refuse("10 ** 400", "expected a finite number, but got \"inf\"");
  refuse("10 ** 300 ** 2", "expected a finite number, but got \"inf\"");
  refuse("huge * 10", "expected a finite number, but got \"inf\"");
  refuse("-huge - huge", "expected a finite number, but got \"-inf\"");
  refuse("(-8) ** 0.5", "expected a finite number, but got \"nan\"");
  refuse("zero ** -1", "expected a finite number, but got \"inf\"");
  refuse("1e999", "expected a number");
  refuse("nan + 1", "expected a finite number, but got \"nan\"");
  refuse("huge // 1e-308", "expected a finite number");
  for (const char* op : {"/", "//", "%"}) {
    refuse(std::string("zero ") + op + " zero", "expected a divisor that is not 0, but got 0");
    refuse(std::string("1 ") + op + " -0.0", "expected a divisor that is not 0");
  }
  EXPECT_EQ(of("zero and 1 / zero"), json(0));
}

// The expected values are those of Python 3.
TEST(Expression, DividesAsPythonDoes) {
  EXPECT_EQ(of("1 // 0.1"), json(9.0));
  EXPECT_EQ(of("1e300 % 7"), json(1.0));
  EXPECT_EQ(of("-1e300 % 7"), json(6.0));
  EXPECT_EQ(of("7 % -3"), json(-2.0));
  EXPECT_EQ(of("-7 // 2"), json(-4.0));
  EXPECT_EQ(of("least // -1"), json(0x1p63));
  EXPECT_EQ(of("least % -1"), json(0.0));
  EXPECT_EQ(of("huge // -huge"), json(-1.0));
}

TEST(Expression, IndicesStayWithinTheList) {
  EXPECT_EQ(of("list[-3]"), json(1));
  EXPECT_EQ(of("list[true]"), json(0));
  refuse("list[-4]", "expected a list of at least 4 elements");
  refuse("list[3]", "expected a list of at least 4 elements");
  refuse("list[huge]", "expected a list of at least 1e+308 elements");
  refuse("list[-huge]", "expected a list of at least 1e+308 elements");
  refuse("list[0.5]", "expected a whole number as an index, but got 0.5");
  refuse("list['a']", "expected a number, but got \"a\"");
  refuse("text[0]", "expected a list, but got \"a\"");
  EXPECT_EQ(of("by_layer[5] + by_layer[6]"), json(15.0));
  EXPECT_EQ(of("by_layer[-1]"), json());
  EXPECT_EQ(of("by_layer[huge]"), json());
  EXPECT_EQ(of("by_layer[5.5]"), json());
}

TEST(Expression, WhatPythonMeansOtherwiseIsRefused) {
  refuse("3 > 2 > 1", "expected \"and\" between two comparisons, but got \">\"");
  refuse("1 == 1 in list", "expected \"and\" between two comparisons");
  refuse("1 == not 0", "expected a value, but got \"not\"");
  refuse("in in in", "expected a value, but got \"in\"");
  refuse("True", "expected a value, but got \"True\"");
  refuse("x is None", "expected an operator or the end, but got \"is\"");
  refuse("0x10", "expected a number");
  refuse("1.5.5", "expected a number");
  EXPECT_NO_THROW(check_expression("(absent or [1]).name if zero else 1"));
}

TEST(Config, DepthIsBounded) {
  const auto nested = [](const std::string& opening, const std::string& closing, int depth) {
    return repeated(opening, depth) + "1" + repeated(closing, depth);
  };
  const char* words = "config.json: expected at most 64 objects and lists within each other";
  for (const char* key : {"unknown", "head_dim", "rope_scaling", "rope_parameters", "layer_types",
                          "text_config", "per_layer_config", "model_type", "attn_config"}) {
    const std::string start = R"({"x_head": 64, "rope_theta": 1e4, ")" + std::string(key) + "\": ";
    refuse_config(start + nested("[", "]", 200000) + "}", words);
    refuse_config(start + nested("{\"text_config\": ", "}", 200000) + "}", words);
  }
  EXPECT_NO_THROW(read_rope_config_bytes(
      R"({"head_dim": 64, "rope_theta": 1e4, "a": )" + nested("[", "]", 60) + "}", {}));
  EXPECT_THROW(read_rope_config_bytes(repeated("{\"a\":", 200000), {}), Error);
  EXPECT_THAT([&] { parse_families(R"({"families": [)" + nested("[", "]", 100000) + "]}"); },
              ThrowsMessage<Error>(HasSubstr("families: expected at most 64 objects and lists")));
  for (const std::string& flag :
       {"--hf-overrides.a " + nested("[", "]", 30000),
        "--hf-overrides '{\"rope_theta\": " + nested("[", "]", 30000) + "}'"}) {
    EXPECT_THAT([&] { read_rope_config_bytes("vllm " + flag, {}); },
                ThrowsMessage<Error>(HasSubstr("expected at most 64 objects and lists")));
  }
}

TEST(Config, LayersAreAtMost4096) {
  refuse_config(R"({"model_type": "gemma3_text", "num_hidden_layers": 4097})",
                "num_hidden_layers: expected an integer from 1 to 4096, but got 4097");
  for (const char* count : {"0", "-1", "1.5", "1e300", "9223372036854775808", "\"8\"", "[8]"}) {
    refuse_config(
        R"({"model_type": "gemma3_text", "num_hidden_layers": )" + std::string(count) + "}",
        "num_hidden_layers: expected an integer from 1 to 4096");
  }
  for (const auto& [name, value] : {std::pair{"layer_types", json("full_attention")},
                                    {"layer_rope_theta", json(1e4)},
                                    {"no_rope_layers", json(1)}}) {
    json list = by_layer([&](int64_t) { return value; });
    list.push_back(value);
    json config = {{"head_dim", 16}, {"rope_theta", 1e4}, {name, list}};
    refuse_config(config.dump(), "expected at most 4096 layers");
    config[name].erase(0);
    EXPECT_EQ(read_long(config).size(), 1U) << name;
  }
}

TEST(Config, ManyLayersTakeNoLongerThanTheyAreMany) {
  const json kinds = by_layer(
      [](int64_t layer) { return layer % 2 == 0 ? "sliding_attention" : "full_attention"; });
  EXPECT_EQ(read_long({{"model_type", "gemma3_text"}, {"layer_types", kinds}}).size(), 2U);
  EXPECT_EQ(read_long({{"model_type", "llama4_text"},
                       {"no_rope_layers", by_layer([](int64_t layer) { return layer % 4 != 3; })}})
                .size(),
            2U);
  EXPECT_EQ(read_long({{"model_type", "muse_spark_text"},
                       {"layer_rope_theta", by_layer([](int64_t i) { return i % 4 * 1000; })}})
                .size(),
            3U);
  json own = json::object();
  for (int64_t layer = 0; layer < kLayers; ++layer) {
    own["0" + std::to_string(layer)] = {{"head_dim", 16 + 2 * (layer % 3)}};
  }
  EXPECT_EQ(read_long({{"model_type", "gemma4_text"},
                       {"num_hidden_layers", kLayers},
                       {"layer_types", kinds},
                       {"per_layer_config", own}})
                .size(),
            6U);
  const json bases = by_layer([](int64_t layer) { return 1e4 + static_cast<double>(layer); });
  EXPECT_EQ(read_long({{"head_dim", 16}, {"layer_rope_theta", bases}}).size(), size_t{kLayers});
}

TEST(Config, ListsByLayerThatAreTooShortAreNamed) {
  refuse_config(
      R"({"model_type": "llama4_text", "num_hidden_layers": 4, "no_rope_layers": [1, 1, 0]})",
      "no_rope_layers: expected an element for each of num_hidden_layers 4, but got 3");
  refuse_config(R"({"head_dim": 8, "num_hidden_layers": 3, "layer_rope_theta": [1e4, 1e4]})",
                "layer_rope_theta: expected an element for each of num_hidden_layers 3, but got 2");
  const std::string kinds = R"(, "layer_types": ["full_attention", "sliding_attention"]})";
  refuse_config(R"({"model_type": "gemma3_text", "num_hidden_layers": 3)" + kinds,
                "layer_types: expected a list with a kind for each of num_hidden_layers 3 layers, "
                "but got [\"full_attention\",\"sliding_attention\"]");
  EXPECT_NO_THROW(read_rope_config_bytes(
      R"({"model_type": "gemma3_text", "num_hidden_layers": 1)" + kinds, {}));
  refuse_config(R"({"model_type": "gemma3_text", "num_hidden_layers": "x")" + kinds,
                "num_hidden_layers: expected an integer");
  refuse_config(R"({"model_type": "gemma3_text", "sliding_window_pattern": 0})",
                "expected a divisor that is not 0");
  refuse_config(R"({"model_type": "gemma3_text", "query_pre_attn_scalar": 0})",
                "expected a finite number");
  refuse_config(R"({"model_type": "gemma3_text", "query_pre_attn_scalar": -1})",
                "expected a finite number, but got \"nan\"");
}

TEST(Config, HeadsAreAtMost16384Channels) {
  EXPECT_EQ(read_long({{"head_dim", 16384}, {"rope_theta", 1e4}}).at(0).rotary_dim, 16384);
  refuse_config(R"({"head_dim": 16386, "rope_theta": 1e4})",
                "head_dim: expected an integer from 2 to 16384, but got 16386");
  refuse_config(R"({"hidden_size": 65536, "num_attention_heads": 2, "rope_theta": 1e4})",
                "head_dim: expected at most 16384 channels of a head, but got 32768");
  refuse_config(R"({"model_type": "glm", "head_dim": 1048576})", "head_dim: expected an integer");
  EXPECT_THAT([] { read_rope_config_bytes("{}", {.head_dim = 16386}); },
              ThrowsMessage<Error>(HasSubstr("--head-dim: expected a number from 2")));
}

TEST(Config, TheLargestNumbersAreExplained) {
  const json config = {{"head_dim", 64},
                       {"rope_theta", 1e30},
                       {"max_position_embeddings", int64_t{1} << 40},
                       {"rope_scaling", {{"type", "linear"}, {"factor", 1e9}}}};
  const RopeConfig rope = read_long(config).at(0);
  for (const int64_t length : {int64_t{0}, int64_t{1}, int64_t{1} << 40}) {
    const Explained explained = explain(rope, length);
    for (const PairExplained& pair : explained.pairs) EXPECT_GE(pair.leaves, 0);
    EXPECT_GT(explained.target, 0);
  }
}

// A place in a file is written as keys joined by dots.
TEST(Config, KeysWithDotsHoldNoLanguageModel) {
  for (const char* key : {"my.model", ".", "", "text_config."}) {
    const json model = {
        {"head_dim", 64}, {"hidden_size", 64}, {"rope_theta", 1e4}, {"vocab_size", 9}};
    refuse_config(json({{key, model}}).dump(), "head_dim: expected an integer");
  }
}

// Users paste the result of convert for vLLM into a shell.
TEST(Config, NoKeyEndsAShellsQuotes) {
  const json model = {{"hidden_size", 64}, {"num_attention_heads", 2}, {"rope_theta", 1e4}};
  const json inner = {{"rope_type", "default"}, {"rope_theta", 1e4}};
  for (const std::string key : {"it's", "a{", "a b", "$(date)", "`date`", "a\\b", "a\nb"}) {
    json nested = model, by_kind = model;
    nested["vocab_size"] = 9;
    by_kind["rope_parameters"] = {{key, inner}, {"full_attention", {{"rope_theta", 1e6}}}};
    for (const json& config : {json({{key, nested}}), by_kind}) {
      const ReadRopeConfig read = read_rope_config_bytes(config.dump(), {});
      EXPECT_THAT([&] { write_rope_config(read, "vllm"); },
                  ThrowsMessage<Error>(HasSubstr("convert: vllm: expected keys of letters")));
    }
  }
}

TEST(Config, NumbersThatJsonLacksAreConverted) {
  const ReadRopeConfig read = read_rope_config_bytes(
      R"({"head_dim": 64, "rope_theta": 1e4, "dropout": NaN, "bounds": [-Infinity, 1]})", {});
  for (const char* to : {"hf4", "hf5"}) {
    const std::string written = write_rope_config(read, to);
    EXPECT_THAT(written, HasSubstr("\"dropout\": NaN"));
    EXPECT_THAT(written, HasSubstr("-Infinity"));
  }
}

}  // namespace
}  // namespace sextant
