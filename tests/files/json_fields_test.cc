// Readers of JSON objects: the three kinds of rules, and which fields were requested.
#include "sextant/files/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sextant/base/error.h"

namespace sextant {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::ThrowsMessage;

const JsonRules kForeign = {.null_is_absent = true, .whole_floats_are_integers = true};

TEST(JsonFields, ReadsEachTypeWithinItsRange) {
  const json object = {{"i", 3},   {"n", 0.5},     {"f", true},      {"s", "word"},
                       {"c", "b"}, {"is", {1, 2}}, {"o", {{"x", 1}}}};
  const JsonFields fields(object, "file");
  EXPECT_EQ(fields.integer("i", 3, 3), 3);
  EXPECT_EQ(fields.number("n", 0, 1), 0.5);
  EXPECT_TRUE(fields.flag("f"));
  EXPECT_EQ(fields.string("s"), "word");
  EXPECT_EQ(fields.choice("c", {"a", "b"}), 1);
  EXPECT_THAT(fields.integers("is", 1, 2), ElementsAre(1, 2));
  EXPECT_EQ(fields.object("o"), json({{"x", 1}}));
  fields.finish();
}

TEST(JsonFields, NamesTheObjectTheFieldTheExpectationAndTheValue) {
  const json object = {{"i", 4}, {"c", "x"}, {"is", {1, "2"}}};
  const JsonFields fields(object, "file");
  EXPECT_THAT([&] { fields.integer("i", 1, 3); },
              ThrowsMessage<Error>("file: i: expected an integer from 1 to 3, but got 4"));
  EXPECT_THAT(
      [&] {
        fields.choice("c", {"a", "b"});
      },
      ThrowsMessage<Error>("file: c: expected one of \"a\", \"b\", but got \"x\""));
  EXPECT_THAT([&] { fields.integers("is", 0, 9); },
              ThrowsMessage<Error>("file: is: expected integers from 0 to 9, but got [1,\"2\"]"));
  EXPECT_THAT(
      [&] { fields.number("absent", 0, 1); },
      ThrowsMessage<Error>("file: absent: expected a number from 0 to 1, but it is missing"));
  EXPECT_THAT([] { JsonFields(json::array(), "file"); },
              ThrowsMessage<Error>("file: expected an object, but got array"));
}

TEST(JsonFields, IntegersDoNotWrap) {
  const json object = {{"beyond", UINT64_MAX}, {"minus", -1}};
  const JsonFields fields(object, "file");
  uint64_t count = 0;
  EXPECT_THROW(fields.integer("beyond", INT64_MIN, INT64_MAX), Error);
  EXPECT_THAT([&] { fields.read("minus", count); },
              ThrowsMessage<Error>("file: minus: expected a count, but got -1"));
}

TEST(JsonFields, NullIsAValueUnlessTheRulesSayOtherwise) {
  const json object = {{"x", nullptr}};
  const JsonFields own(object, "file"), foreign(object, "file", kForeign);
  EXPECT_THAT([&] { own.flag("x"); },
              ThrowsMessage<Error>("file: x: expected true or false, but got null"));
  EXPECT_THAT([&] { foreign.flag("x"); },
              ThrowsMessage<Error>("file: x: expected true or false, but it is missing"));
  EXPECT_FALSE(own.optional_flag("x"));
  EXPECT_TRUE(own.has("x"));
  EXPECT_FALSE(foreign.has("x"));
}

TEST(JsonFields, OnlySomeRulesTakeAWholeFloatForAnInteger) {
  const json object = {{"whole", 8192.0}, {"half", 0.5}};
  EXPECT_THROW(JsonFields(object, "file").integer("whole", 1, 9000), Error);
  EXPECT_EQ(JsonFields(object, "file", kForeign).integer("whole", 1, 9000), 8192);
  EXPECT_THROW(JsonFields(object, "file", kForeign).integer("half", 0, 1), Error);
}

TEST(JsonFields, FinishRefusesFieldsThatWereNotRequested) {
  const json object = {{"a", 1}, {"b", 2}, {"c", nullptr}};
  const JsonFields own(object, "file"), foreign(object, "file", kForeign);
  for (const JsonFields* fields : {&own, &foreign}) {
    fields->skip("a");
    EXPECT_TRUE(fields->was_requested("a"));
    EXPECT_FALSE(fields->was_requested("b"));
    EXPECT_THAT([&] { fields->finish(); },
                ThrowsMessage<Error>("file: b: expected no such field, but got one"));
  }
  EXPECT_THAT(own.unrequested(), ElementsAre("b", "c"));
  EXPECT_THAT(foreign.unrequested(), ElementsAre("b"));
  EXPECT_EQ(foreign.optional_integer("b", 0, 9), 2);
  foreign.finish();
}

}  // namespace
}  // namespace sextant
