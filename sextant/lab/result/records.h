// The records of a measurement, one JSON object per line (python/sextant/measure/arm.py).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sextant {
class JsonFields;
}

namespace sextant::lab {

// Calls take() with the fields of each record. An Error begins with `where` and the line.
void for_each_record(const std::string& text, const std::string& where,
                     const std::function<void(const JsonFields&)>& take);

// The losses of one sequence of a measurement of "losses".
struct LossRecord {
  int64_t length = 0;
  size_t block = 0;
  std::vector<double> nats, tokens;                       // by bin of positions; of equal sizes
  double last_nats = 0, last_tokens = 0, last_bytes = 0;  // of the end that a window scores
  double seconds = 0;
};

// Throws Error unless the length is one of `lengths` and the block below `blocks`.
LossRecord loss_record(const JsonFields& fields, const std::vector<int64_t>& lengths,
                       int64_t blocks);

}  // namespace sextant::lab
