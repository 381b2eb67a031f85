// The output of `sextant methods`, for people and as JSON.
#pragma once

#include <span>
#include <string>

#include "sextant/lab/run/plugin.h"

namespace sextant::cli {

// A line for each.
std::string text_of(std::span<const lab::KnownMethod> methods);
// Summary, formula (a line for each clause), options with their defaults, page.
std::string text_of(const lab::KnownMethod& method);

// An object {name, summary, formula, options, page}, or an array of them.
std::string json_text(const lab::KnownMethod& method);
std::string json_text(std::span<const lab::KnownMethod> methods);

}  // namespace sextant::cli
