// The backends of tests that run all of them with operands in host memory.
#pragma once

#include <cstdio>
#include <vector>

#include "sextant/attention/attend.h"

namespace sextant {

// Says once of each other backend why no test runs it.
inline std::vector<const Backend*> host_backends() {
  static bool said = false;
  std::vector<const Backend*> some;
  for (const Backend* backend : backends()) {
    const std::string why = why_not(*backend);
    if (backend->device == Device::kHost && why.empty())
      some.push_back(backend);
    else if (!said)
      std::fprintf(stderr, "SKIPPED: backend %s: %s\n", backend->name.data(),
                   why.empty() ? "card_test runs it, on a GPU" : why.c_str());
  }
  said = true;
  return some;
}

}  // namespace sextant
