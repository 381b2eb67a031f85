#include "bench/attention/report.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "bench/program.h"

namespace sextant::bench {
namespace {

std::string megabytes(const std::optional<int64_t>& bytes) {
  return bytes ? fmt::format("{:.1f}", static_cast<double>(*bytes) / 1e6) : "-";
}

nlohmann::json side_json(const Side& side) {
  nlohmann::json json = to_json(side.time);
  if (side.peak_bytes) json["peak_bytes"] = *side.peak_bytes;
  return json;
}

}  // namespace

std::string table_head(bool eager) {
  const std::string of_eager[] = {
      eager ? fmt::format(" {:>19} {:>13}", "eager, ms", "eager / ours") : "",
      eager ? fmt::format(" {:>9} {:>9} {:>6} {:>6}", "least", "median", "least", "median") : ""};
  return fmt::format("{:<15} {:<8} {:>17} {:>13}{} {:>22} {:>9}{}\n", "", "", "ours, ms",
                     "ours / plain", of_eager[0], "ours", "ours",
                     eager ? fmt::format(" {:>9}", "eager") : "") +
         fmt::format("{:<15} {:<8} {:>8} {:>8} {:>6} {:>6}{} {:>15} {:>6} {:>9}{}\n", "kind",
                     "pass", "least", "median", "least", "median", of_eager[1], "a second",
                     "of peak", "peak MB", eager ? fmt::format(" {:>9}", "peak MB") : "");
}

std::string table_row(const Measured& m, const Peaks& peaks) {
  const Seconds& ours = m.ours.time;
  const bool reads = m.bytes > 0;
  const double speed = (reads ? m.bytes : m.operations) / ours.least();
  std::string plain = fmt::format(" {:>6} {:>6}", "-", "-"), eager, eager_peak;
  if (m.plain) {
    plain = fmt::format(" {:>6.3f} {:>6.3f}", ours.least() / m.plain->least(),
                        median_ratio(ours, *m.plain));
  }
  if (m.eager) {
    const Seconds& time = m.eager->time;
    eager = fmt::format(" {:>9.2f} {:>9.2f} {:>6.2f} {:>6.2f}", 1e3 * time.least(),
                        1e3 * time.median(), time.least() / ours.least(), median_ratio(time, ours));
    eager_peak = fmt::format(" {:>9}", megabytes(m.eager->peak_bytes));
  }
  return fmt::format("{:<15} {:<8} {:>8.2f} {:>8.2f}{}{} {:>7.1f} {:<7} {:>6.0f}% {:>9}{}\n",
                     m.kind, m.pass, 1e3 * ours.least(), 1e3 * ours.median(), plain, eager,
                     speed / 1e9, reads ? "GB" : "GFLOP",
                     100 * speed / (reads ? peaks.bytes_read : peaks.operations),
                     megabytes(m.ours.peak_bytes), eager_peak);
}

nlohmann::json to_json(const Measured& m) {
  nlohmann::json json{{"kind", m.kind},
                      {"pass", m.pass},
                      {"operations", m.operations},
                      {"bytes", m.bytes},
                      {"ours", side_json(m.ours)}};
  if (m.plain) json["plain"] = to_json(*m.plain);
  if (m.eager) json["eager"] = side_json(*m.eager);
  return json;
}

}  // namespace sextant::bench
