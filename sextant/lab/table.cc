#include "sextant/lab/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace sextant::lab {
namespace {

constexpr size_t kLine = 100;

size_t width_of_labels(std::span<const MethodResult> methods) {
  size_t width = 10;
  for (const MethodResult& method : methods) width = std::max(width, method.label.size());
  return width;
}

std::string cell(const Spread& spread, bool with_sign) {
  std::string text =
      with_sign ? fmt::format("{:+.3f}", spread.mean) : fmt::format("{:.3f}", spread.mean);
  if (spread.deviation) text += fmt::format(" ±{:.3f}", *spread.deviation);
  return text;
}

// fmt counts bytes; ± is two.
std::string right(const std::string& text, size_t width) {
  const auto extra = static_cast<size_t>(std::ranges::count(text, '\xc2'));
  return fmt::format("{:>{}}", text, width + extra);
}

// In lines of at most kLine bytes.
std::string wrapped(std::string text) {
  for (size_t begin = 0; text.size() - begin > kLine;) {
    const size_t space = text.rfind(' ', begin + kLine);
    text[space] = '\n';
    begin = space + 1;
  }
  return text;
}

std::string section(std::span<const MethodResult> methods, const Settings& settings,
                    Mean AtLength::*loss, Mean AtLength::*change) {
  const bool spreads =
      std::ranges::any_of(methods, [](const auto& method) { return method.seeds.size() > 1; });
  const size_t width = spreads ? 15 : 8, labels = width_of_labels(methods);
  std::string text = fmt::format("{:<{}}", "method", labels);
  for (const int64_t length : settings.test.lengths) text += fmt::format("{:>{}}", length, width);
  text += fmt::format("{:>{}}\n", "change", width + 2);
  for (const MethodResult& method : methods) {
    text += fmt::format("{:<{}}", method.label, labels);
    if (method.seeds.empty()) {
      text += "  diverged: its loss was no longer a number\n";
      continue;
    }
    const size_t count = settings.test.lengths.size();
    for (size_t n = 0; n < count; ++n) text += right(cell(method.at(loss, n), false), width);
    text += right(cell(method.at(change, count - 1), true), width + 2);
    if (loss == &AtLength::sliding) text += "  " + verdict(method, settings);
    if (method.diverged > 0) {
      text += fmt::format("  ({} of {} diverged)", method.diverged,
                          method.diverged + static_cast<int64_t>(method.seeds.size()));
    }
    text += "\n";
  }
  return text;
}

}  // namespace

const char* const kCaveat =
    "A model of this size uses little more than a word or two of context after a minute of "
    "training: "
    "the numbers say where a method breaks past its training length, not who reads far back best.";

Spread spread(std::span<const double> values) {
  Spread spread;
  const auto count = static_cast<double>(values.size());
  for (const double value : values) spread.mean += value / count;
  if (values.size() < 2) return spread;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  spread.deviation = std::sqrt(squares / (count - 1));
  return spread;
}

Spread MethodResult::at(Mean AtLength::*what, size_t index) const {
  std::vector<double> values;
  for (const ArmResult& seed : seeds) values.push_back((seed.lengths.at(index).*what).value);
  return spread(values);
}

std::vector<MethodResult> by_method(std::span<const ArmResult> results) {
  std::vector<MethodResult> methods;
  for (const ArmResult& result : results) {
    auto found = std::ranges::find(methods, result.arm.label, &MethodResult::label);
    if (found == methods.end()) {
      found = methods.insert(methods.end(), {.label = result.arm.label, .seeds = {}});
    }
    if (result.diverged) {
      ++found->diverged;
    } else {
      found->seeds.push_back(result);
    }
  }
  return methods;
}

std::string verdict(const MethodResult& method, const Settings& settings) {
  if (method.seeds.empty()) return "diverged";
  const double change = method.at(&AtLength::sliding_change, settings.test.lengths.size() - 1).mean;
  return change > kBreaksAbove ? "breaks" : change > kHoldsBelow ? "drifts" : "holds";
}

std::string table(std::span<const MethodResult> methods, const Settings& settings) {
  const int64_t length = settings.training.length;
  std::string text = fmt::format(
      "Trained at {} bytes. Loss in nats per byte; change: at {} minus at {}, on the same "
      "bytes.\n\n"
      "The last {} bytes of a window of each length (sliding):\n",
      length, settings.test.longest(), length, length / 2);
  text += section(methods, settings, &AtLength::sliding, &AtLength::sliding_change);
  text +=
      "\nAll bytes, the text cut into pieces of each length (short pieces lack context at their "
      "start):\n";
  text += section(methods, settings, &AtLength::loss, &AtLength::loss_change);
  return text + "\n" + wrapped(kCaveat) + "\n";
}

std::string results_csv(std::span<const ArmResult> results, const Settings& settings) {
  std::string csv = "method,seed,measure,length,position,value\n";
  for (const ArmResult& result : results) {
    const std::string arm = fmt::format("{},{}", result.arm.label, result.arm.seed);
    for (const AtLength& at : result.lengths) {
      const auto row = [&](const char* measure, const Mean& mean) {
        csv += fmt::format("{},{},{},,{}\n", arm, measure, at.length, mean.value);
        csv += fmt::format("{},{}_standard_error,{},,{}\n", arm, measure, at.length, mean.error);
      };
      row("loss", at.loss);
      row("sliding", at.sliding);
      row("loss_change", at.loss_change);
      row("sliding_change", at.sliding_change);
    }
    for (size_t bin = 0; bin < result.loss_at.size(); ++bin) {
      csv += fmt::format("{},loss_at,{},{},{}\n", arm, settings.test.longest(),
                         static_cast<int64_t>(bin) * settings.test.bin, result.loss_at[bin]);
    }
    for (size_t n = 0; n < result.train_loss.size(); ++n) {
      const int64_t bytes = static_cast<int64_t>(n + 1) * kTrainLossSteps *
                            settings.training.batch * settings.training.length;
      csv += fmt::format("{},training,{},{},{}\n", arm, settings.training.length, bytes,
                         result.train_loss[n]);
    }
  }
  return csv;
}

std::string speed(std::span<const ArmResult> results, const Settings& settings) {
  double seconds = 0, bytes = 0;
  for (const ArmResult& result : results) {
    if (result.train_seconds <= 0 || result.diverged) continue;
    seconds += result.train_seconds;
    bytes += static_cast<double>(settings.training.steps() * settings.training.batch *
                                 settings.training.length);
  }
  return seconds > 0
             ? fmt::format("{:.1f} thousand bytes per second and worker", bytes / seconds / 1e3)
             : "";
}

}  // namespace sextant::lab
