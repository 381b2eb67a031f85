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

std::string table_head(const MeasureOptions& options) {
  const bool eager = options.eager;
  std::string names, columns;
  const auto add_peer = [&](const std::string& name) {
    names += fmt::format(" {:>19} {:>13}", name + ", ms", name + " / ours");
    columns += fmt::format(" {:>9} {:>9} {:>6} {:>6}", "least", "median", "least", "median");
  };
  if (eager) add_peer("eager");
  if (options.ggml) add_peer("ggml");
  return fmt::format("{:<15} {:<8} {:>17} {:>13}{} {:>22} {:>9}{}\n", "", "", "ours, ms",
                     "ours / plain", names, "ours", "ours",
                     eager ? fmt::format(" {:>9}", "eager") : "") +
         fmt::format("{:<15} {:<8} {:>8} {:>8} {:>6} {:>6}{} {:>15} {:>6} {:>9}{}\n", "kind",
                     "pass", "least", "median", "least", "median", columns, "a second", "of peak",
                     "peak MB", eager ? fmt::format(" {:>9}", "peak MB") : "");
}

std::string table_row(const Measured& m, const MeasureOptions& options) {
  const Seconds& ours = m.ours.time;
  const bool reads = m.reading.has_value();
  const double speed = (reads ? m.bytes : m.operations) / ours.least();
  const double share = (reads ? m.reading : m.multiplying)->least() / ours.least();
  std::string plain = fmt::format(" {:>6} {:>6}", "-", "-"), peers, eager_peak;
  if (m.plain) {
    plain = fmt::format(" {:>6.3f} {:>6.3f}", ours.least() / m.plain->least(),
                        median_ratio(ours, *m.plain));
  }
  const auto add_peer = [&](const Seconds& time) {
    peers +=
        fmt::format(" {:>9.2f} {:>9.2f} {:>6.2f} {:>6.2f}", 1e3 * time.least(), 1e3 * time.median(),
                    time.least() / ours.least(), median_ratio(time, ours));
  };
  if (m.eager) {
    add_peer(m.eager->time);
    eager_peak = fmt::format(" {:>9}", megabytes(m.eager->peak_bytes));
  }
  if (m.ggml)
    add_peer(*m.ggml);
  else if (options.ggml)
    peers += fmt::format(" {:>9} {:>9} {:>6} {:>6}", "-", "-", "-", "-");
  const std::string products = m.products ? fmt::format("  its products alone {:.0f}%",
                                                        100 * median_ratio(*m.reading, *m.products))
                                          : "";
  return fmt::format("{:<15} {:<8} {:>8.2f} {:>8.2f}{}{} {:>7.1f} {:<7} {:>6.0f}% {:>9}{}{}\n",
                     m.kind, m.pass, 1e3 * ours.least(), 1e3 * ours.median(), plain, peers,
                     speed / 1e9, reads ? "GB" : "GFLOP", 100 * share, megabytes(m.ours.peak_bytes),
                     eager_peak, products);
}

nlohmann::json to_json(const Measured& m) {
  nlohmann::json json{{"kind", m.kind},
                      {"pass", m.pass},
                      {"operations", m.operations},
                      {"bytes", m.bytes},
                      {"ours", side_json(m.ours)}};
  if (m.reading) json["reading"] = to_json(*m.reading);
  if (m.products) json["products"] = to_json(*m.products);
  if (m.multiplying) json["multiplying"] = to_json(*m.multiplying);
  if (m.plain) json["plain"] = to_json(*m.plain);
  if (m.eager) json["eager"] = side_json(*m.eager);
  if (m.ggml) json["ggml"] = to_json(*m.ggml);
  return json;
}

}  // namespace sextant::bench
