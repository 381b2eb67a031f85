#include "bench/attention/report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

namespace sextant::bench {
namespace {

std::string megabytes(const std::optional<int64_t>& bytes) {
  return bytes ? fmt::format("{:.1f}", static_cast<double>(*bytes) / 1e6) : "-";
}

nlohmann::json side_json(const Side& side) {
  nlohmann::json json{{"seconds", side.time.rounds}};
  if (side.peak_bytes) json["peak_bytes"] = *side.peak_bytes;
  return json;
}

}  // namespace

std::string table_head() {
  return fmt::format("{:<15} {:<8} {:>17} {:>17} {:>13} {:>22} {:>9} {:>9}\n", "", "", "ours, ms",
                     "eager, ms", "eager / ours", "ours", "ours", "eager") +
         fmt::format("{:<15} {:<8} {:>8} {:>8} {:>8} {:>8} {:>6} {:>6} {:>15} {:>6} {:>9} {:>9}\n",
                     "kind", "pass", "least", "median", "least", "median", "least", "median",
                     "a second", "of peak", "peak MB", "peak MB");
}

std::string table_row(const Measured& m, const Peaks& peaks) {
  const Seconds &ours = m.ours.time, &eager = m.eager.time;
  const bool reads = m.bytes > 0;
  const double speed = (reads ? m.bytes : m.operations) / ours.least();
  return fmt::format(
      "{:<15} {:<8} {:>8.2f} {:>8.2f} {:>8.2f} {:>8.2f} {:>6.2f} {:>6.2f} {:>7.1f} {:<7} {:>6.0f}% "
      "{:>9} {:>9}\n",
      m.kind, m.pass, 1e3 * ours.least(), 1e3 * ours.median(), 1e3 * eager.least(),
      1e3 * eager.median(), eager.least() / ours.least(), eager.median() / ours.median(),
      speed / 1e9, reads ? "GB" : "GFLOP",
      100 * speed / (reads ? peaks.bytes_read : peaks.operations), megabytes(m.ours.peak_bytes),
      megabytes(m.eager.peak_bytes));
}

nlohmann::json to_json(const Measured& m) {
  return {{"kind", m.kind},
          {"pass", m.pass},
          {"operations", m.operations},
          {"bytes", m.bytes},
          {"ours", side_json(m.ours)},
          {"eager", side_json(m.eager)}};
}

}  // namespace sextant::bench
