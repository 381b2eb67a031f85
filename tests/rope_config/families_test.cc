// The table of model families: each row can be used, and some rows are compared with the model's
// code.
#include "sextant/rope_config/families/family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "sextant/base/error.h"
#include "sextant/rope_config/families/expression.h"
#include "sextant/rope_config/read_config.h"

namespace sextant {

extern const std::string_view kTransformersFamilies;

namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

json value_of(const std::string& name) {
  static const json values = {{"i", 5},
                              {"n", 8},
                              {"kind", "sliding_attention"},
                              {"window", 512},
                              {"list", {1, 0, 3}},
                              {"by_layer", {{"05", {{"head_dim", 512}}}}},
                              {"object", {{"a", {{"b", 2}}}}}};
  return values.value(name, json());
}

json of(const std::string& expression) { return evaluate(expression, value_of); }

TEST(Expression, HasPythonsMeaning) {
  EXPECT_EQ(of("1 + 2 * 3 ** 2"), json(19.0));
  EXPECT_EQ(of("-2 ** 2"), json(-4.0));
  EXPECT_EQ(of("2 ** -0.5"), json(std::pow(2, -0.5)));
  EXPECT_EQ(of("(i + 1) % 6 == 0"), json(true));
  EXPECT_EQ(of("7 // 2 + -7 % 3"), json(5.0));
  EXPECT_EQ(of("'full' if i < 2 or i % 4 == 1 or i == n - 1 else 'sliding'"), json("full"));
  EXPECT_EQ(of("1 if false else 2 if false else 3"), json(3.0));
  EXPECT_EQ(of("kind == 'sliding_attention' and not absent"), json(true));
  EXPECT_EQ(of("absent or window"), json(512));
  EXPECT_EQ(of("absent and window / 0"), json());
  EXPECT_EQ(of("list[1] == false"), json(true));
  EXPECT_EQ(of("list[-1]"), json(3));
  EXPECT_EQ(of("by_layer[i].head_dim"), json(512));
  EXPECT_EQ(of("by_layer[i + 1].head_dim"), json());
  EXPECT_EQ(of("object.a.b"), json(2));
  EXPECT_EQ(of("absent.a[3].b"), json());
  EXPECT_EQ(of("i in [1, 5] and kind not in ['a', 'b']"), json(true));
  EXPECT_EQ(of("max(len(list), 2) + min(1, 2) + int(2.9)"), json(6.0));
  EXPECT_EQ(of("at(window, 2) + at(list, 2)"), json(515.0));
}

TEST(Expression, ErrorsShowTheExpression) {
  const auto error_of = [](const std::string& expression, const char* words) {
    EXPECT_THAT([&] { of(expression); }, ThrowsMessage<Error>(HasSubstr(words)));
  };
  error_of("absent + 1", "expression: absent + 1: expected a number, but got null");
  error_of("window / (i - 5)", "expected a divisor that is not 0");
  error_of("list[7]", "expected a list of at least 8 elements");
  error_of("1 +", "expected a value, but it ends");
  error_of("1 2", "expected an operator or the end, but got \"2\"");
  error_of("(1", "expected \")\", but it ends");
  error_of("'open", "expected a closing '");
  error_of("exp(1)", "expected int, min, max, len or at, but got exp");
  error_of("10 ** 400", "expected a finite number");
  error_of(std::string(500, '(') + "1" + std::string(500, ')'), "expected fewer parentheses");
  EXPECT_THROW(check_expression("a if b"), Error);
  EXPECT_NO_THROW(check_expression("a / 0 if b else c[9]"));
}

TEST(Families, EveryRowIsWellFormedAndHasASource) {
  const std::vector<Family> all = parse_families(kTransformersFamilies);
  EXPECT_GT(all.size(), 500U);
  std::set<std::string> types;
  for (const Family& family : all) {
    EXPECT_FALSE(family.source.empty());
    EXPECT_FALSE(family.version.empty());
    for (const std::string& type : family.types) {
      EXPECT_TRUE(types.insert(type).second) << type << " has two rows";
    }
    if (!family.pairing.empty() || !family.instead.empty()) continue;
    EXPECT_FALSE(family.language_model.empty()) << family.types[0] << " does not say its pairing";
  }
}

TEST(Families, RowsThatAreWrongAreNamed) {
  const auto error_of = [](const std::string& row, const char* words) {
    const std::string table = R"({"code": "c", "version": "1", "families": [)" + row + "]}";
    EXPECT_THAT([&] { parse_families(table); }, ThrowsMessage<Error>(HasSubstr(words)));
  };
  error_of(R"({"types": [], "source": "a"})", "types: expected at least one model_type");
  error_of(R"({"types": ["a"]})", "source: expected a file");
  error_of(R"({"types": ["a"], "source": "a", "rotate": "true"})", "rotate: expected no such key");
  error_of(R"({"types": ["a"], "source": "a", "base": "1 +"})", "base: expression: 1 +: expected");
  error_of(R"({"types": ["a"], "source": "a", "query_law": {"law": "steep"}})",
           "law: expected llama4, ministral or logn");
  error_of(R"({"types": ["a"], "source": "a", "query_law": {"law": "logn"}})",
           "length: expected an expression beside a law");
  error_of(R"({"types": ["a"], "source": "a", "notes": [{"when": "true"}]})",
           "say: expected a text");
  error_of(R"({"types": ["a", ""], "source": "a"})", "types: expected a list of texts");
  error_of(R"({"types": ["a"], "source": "a", "base": ""})", "base: expected a text");
  error_of(R"({"types": ["a"], "source": "a", "names": {"head_dim": 3}})", "names: expected texts");
  error_of(R"({"types": ["a"], "source": "a", "defaults": {"head_dim": {"is": "1 +"}}})",
           "defaults: expression: 1 +: expected");
  for (const char* value : {"true", "[8]", "{}", R"({"is": 8})", R"({"is": "8", "else": 4})"}) {
    error_of(
        R"({"types": ["a"], "source": "a", "defaults": {"head_dim": )" + std::string(value) + "}}",
        "defaults: head_dim: expected a number, a text or {\"is\": expression}");
  }
  error_of(R"({"types": ["a"], "source": "a", "instead": "alibi", "base": "1"})",
           "base: expected no such key");
  error_of(R"({"types": ["a"], "source": "a", "source": "b"})", "\"source\": expected once");
  error_of("4", "expected an object");
}

TEST(Families, TablesThatAreWrongAreNamed) {
  const auto error_of = [](const char* table, const char* words) {
    EXPECT_THAT([&] { parse_families(table); }, ThrowsMessage<Error>(HasSubstr(words))) << table;
  };
  for (const char* table : {"4", "{}", R"({"families": 4})", R"({"families": {"types": "a"}})"}) {
    error_of(table, "families: expected an object with a list of families");
  }
  error_of("{", "families: expected JSON");
  error_of(R"({"code": 5, "version": "1", "families": []})", "families: code: expected a text");
  error_of(R"({"code": "c", "versions": "1", "families": []})", "versions: expected no such key");
  error_of(R"({"code": "c", "families": [{"types": ["a"], "source": "a"}]})",
           "families: a: expected a code and its version");
  error_of(R"({"code": "c", "version": "1", "families": [], "unrotated": {"t5": ["a"]}})",
           "families: t5: expected an object");
  error_of(R"({"code": "c", "version": "1", "families": [], "unrotated": {"t5": {"a": []}}})",
           "types: expected at least one model_type");
}

TEST(Families, ShortTablesAreRows) {
  const std::vector<Family> all = parse_families(
      R"({"code": "c", "version": "1", "families": [], "unrotated": {"t5": {"a": ["b", "c"]}},
          "wrappers": {"llm text_config": {"models/d/e.py": {"f": "g", "h": ""}}}})");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].types, (std::vector<std::string>{"b", "c"}));
  EXPECT_EQ(all[0].source, "models/a/modeling_a.py");
  EXPECT_EQ(all[0].instead, "t5");
  EXPECT_EQ(all[1].types, std::vector<std::string>{"f"});
  EXPECT_EQ(all[1].source, "models/d/e.py");
  EXPECT_EQ(all[1].language_model, (std::vector<std::string>{"llm", "text_config"}));
  EXPECT_EQ(all[1].defaults.at("model_type"), "g");
  EXPECT_TRUE(all[2].defaults.empty());
  EXPECT_EQ(all[2].origin(), "c 1");
}

// A file of each type without other fields is explained, or refused with a message that names a
// field.
TEST(Families, EveryTypeIsAnsweredOrAskedFor) {
  for (const Family& family : parse_families(kTransformersFamilies)) {
    for (const std::string& type : family.types) {
      const std::string config = json({{"model_type", type}}).dump();
      try {
        const auto read = read_rope_config_bytes(config, {});
        EXPECT_FALSE(read.configs.empty());
        if (!family.instead.empty() && family.rotates.empty()) {
          EXPECT_FALSE(read.configs[0].rotates) << type;
        }
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("config.json: ")) << type;
        EXPECT_TRUE(family.instead.empty() || !family.rotates.empty())
            << type << ": " << error.what();
      }
    }
  }
}

}  // namespace
}  // namespace sextant
