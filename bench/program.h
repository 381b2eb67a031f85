// Shared code of the benchmark programs: error handling and the file of --json.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/rounds.h"

namespace sextant::bench {

// Runs `body` and writes its result to `file`, unless that is empty. It checks first that the file
// can be written, since timing takes minutes. Returns the exit status of main(): 0, or 1 after it
// has printed an error.
int run_program(const std::string& file, const std::function<nlohmann::json()>& body);

// {"seconds": [one per round], "least", "median"}
nlohmann::json to_json(const Seconds& seconds);

}  // namespace sextant::bench
