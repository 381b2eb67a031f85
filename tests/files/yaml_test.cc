#include "sextant/files/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"

namespace sextant {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::ThrowsMessage;

json read(const std::string& text) { return read_yaml(text, "file"); }

void refuses_yaml(const std::string& text, const std::string& message) {
  EXPECT_THAT([&] { read(text); }, ThrowsMessage<Error>(HasSubstr(message))) << text.substr(0, 80);
}

TEST(Yaml, ScalarsAreText) {
  EXPECT_EQ(read("a: 1\nb: 010\nc: yes\nd: 1e6\ne: \"~\"\nf: ~\ng:\nh: null\n"),
            json({{"a", "1"},
                  {"b", "010"},
                  {"c", "yes"},
                  {"d", "1e6"},
                  {"e", "~"},
                  {"f", nullptr},
                  {"g", nullptr},
                  {"h", nullptr}}));
  EXPECT_EQ(read("a: >\n  x\n  y\nb: |\n  x\n  y\nc: x\n  y\n"),
            json({{"a", "x y\n"}, {"b", "x\ny\n"}, {"c", "x y"}}));
}

TEST(Yaml, AliasesAndMergesAreReplaced) {
  EXPECT_EQ(read("a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}\nc: *x\n").at("b"),
            json({{"p", "1"}, {"q", "3"}}));
  EXPECT_EQ(read("a: &x {p: 1}\nb: &y {q: 2}\nc: {<<: [*x, *y]}\n").at("c"),
            json({{"p", "1"}, {"q", "2"}}));
  EXPECT_EQ(read("a: 1\n---\n- b\n"), json({{{"a", "1"}}, {"b"}}));
  EXPECT_EQ(read(""), json::array());
}

TEST(Yaml, SaysWhichLineIsWrong) {
  refuses_yaml("a: [1\nb", "expected YAML, but libyaml says: did not find expected");
  refuses_yaml("a: 1\na: 2\n", "file: line 2: \"a\": expected once, but got two");
  refuses_yaml("a: *x\n", "file: line 1: expected an anchor &x before this");
  refuses_yaml("a: &x [*x]\n", "file: line 1: expected an anchor &x before this");
  refuses_yaml("? [a]\n: b\n", "file: line 1: expected a key that is a scalar");
  refuses_yaml("a: {<<: 1}\n", "<<: expected a mapping");
  refuses_yaml(std::string("a: \xff\n"), "file: line 1: expected YAML");
}

TEST(Yaml, IsBounded) {
  const auto nested = [](int depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(read(nested(kDeepestJson)).is_array());
  refuses_yaml(nested(kDeepestJson + 1),
               "expected at most 64 mappings and lists within each other");
  refuses_yaml(std::string(60'000, '['), "within each other, but got more");
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int n = 1; n < 20; ++n) {
    const std::string last = "*a" + std::to_string(n - 1);
    laughs += "a" + std::to_string(n) + ": &a" + std::to_string(n) + " [" + last;
    for (int copies = 1; copies < 10; ++copies) laughs += ", " + last;
    laughs += "]\n";
  }
  refuses_yaml(laughs, "expected at most 1048576 values and bytes, with what aliases stand for");
  // One long text, many times.
  std::string copies = "a: &a " + std::string(30'000, 'x') + "\nb: [*a";
  for (int n = 1; n < 30; ++n) copies += ", *a";
  EXPECT_EQ(read(copies + "]\n").at("b").size(), 30);
  for (int n = 0; n < 10; ++n) copies += ", *a";
  refuses_yaml(copies + "]\n", "file: line 2: expected at most 1048576 values and bytes");
  // Long keys, many times.
  std::string keys = "a: &a {? " + std::string(30'000, 'x') + " : y}\nb: [*a";
  for (int n = 1; n < 30; ++n) keys += ", *a";
  EXPECT_EQ(read(keys + "]\n").at("b").size(), 30);
  for (int n = 0; n < 10; ++n) keys += ", *a";
  refuses_yaml(keys + "]\n", "file: line 2: expected at most 1048576 values and bytes");
}

}  // namespace
}  // namespace sextant
