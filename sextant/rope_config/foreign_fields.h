// The fields of a configuration that another program wrote: null counts as absent, integers may be
// written as 8192.0, and long values are shortened in messages.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "sextant/base/error.h"
#include "sextant/files/json_fields.h"

namespace sextant {

// Foreign values in messages, shortened and in ASCII since they are printed on a terminal.
std::string shown(const nlohmann::json& value, size_t most = 60);

struct ForeignFields : JsonFields {
  ForeignFields(const nlohmann::json& object, const std::string& where)
      : JsonFields(expect_object(object, where), where,
                   {.null_is_absent = true,
                    .whole_floats_are_integers = true,
                    .string = "a text",
                    .shown = [](const nlohmann::json& value) { return sextant::shown(value); }}) {}

 private:
  static const nlohmann::json& expect_object(const nlohmann::json& object,
                                             const std::string& where) {
    if (!object.is_object())
      fail(where + ": expected an object, but got " + sextant::shown(object));
    return object;
  }
};

}  // namespace sextant
