// What the programs that time share: how they end, and the file of --json.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/rounds.h"

namespace sextant::bench {

// Runs a program and, unless `file` is empty, writes there what `body` returns. That it can be
// written is asked first, for timing takes minutes. Returns what main() returns: 0, or 1 after
// printing an error.
int run_program(const std::string& file, const std::function<nlohmann::json()>& body);

// {"seconds": of each round, "least", "median"}
nlohmann::json to_json(const Seconds& seconds);

}  // namespace sextant::bench
