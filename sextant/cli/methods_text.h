// The output of `sextant methods`, as text and as JSON.
#pragma once

#include <span>
#include <string>

#include "sextant/lab/run/plugin.h"

namespace sextant::cli {

// One line per method.
std::string text_of(std::span<const lab::KnownMethod> methods);
// Summary, formula (one line per clause), options with their defaults, page.
std::string text_of(const lab::KnownMethod& method);

// An object {name, summary, formula, options, page}, or an array of such objects.
std::string json_text(const lab::KnownMethod& method);
std::string json_text(std::span<const lab::KnownMethod> methods);

}  // namespace sextant::cli
