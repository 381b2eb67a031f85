// The report of `sextant extend`, of its JSON.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "sextant/files/json_fields.h"
#include "sextant/lab/report/model_report.h"
#include "sextant/lab/result/interval.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

constexpr double kLargest = std::numeric_limits<double>::max();
constexpr int64_t kLongest = int64_t{1} << 40;

Mean mean_of(const json& object, const std::string& where) {
  const JsonFields fields(object, where);
  return {.value = fields.number("mean", -kLargest, kLargest),
          .error = fields.number("standard_error", 0, kLargest)};
}

MeasuredCandidate candidate_of(const JsonFields& fields) {
  MeasuredCandidate found{.candidate = {.name = fields.string("name"),
                                        .summary = fields.string("summary"),
                                        .method = fields.string("method"),
                                        .options = fields.object("options").dump(),
                                        .in_hugging_face = fields.flag("hugging_face")},
                          .behind = mean_of(fields.object("behind"), fields.where() + ": behind"),
                          .seconds = fields.optional_number("seconds", 0, kLargest).value_or(0)};
  for (const json& entry : fields.at("lengths")) {
    const JsonFields at(entry, fields.where() + ": lengths");
    const auto mean = [&](const char* name) {
      return mean_of(at.object(name), at.where() + ": " + name);
    };
    found.lengths.push_back({.length = at.integer("length", 1, kLongest),
                             .loss = mean("loss"),
                             .sliding = mean("sliding"),
                             .sliding_change = mean("sliding_change")});
  }
  if (found.lengths.empty()) fields.refuse("lengths", "at least one");
  if (const json* const object = fields.optional_object("by_position")) {
    const JsonFields positions(*object, fields.where() + ": by_position");
    found.by_position.bin = positions.integer("bin", 1, kLongest);
    for (const json& entry : positions.at("loss"))
      found.by_position.loss.push_back(mean_of(entry, positions.where() + ": loss"));
  }
  return found;
}

// The candidates begin with the unchanged model, which model_report.h expects.
Extension extension_of(const JsonFields& file, Recommendation& recommendation) {
  Extension found;
  for (const json& entry : file.at("candidates"))
    found.candidates.push_back(candidate_of(JsonFields(entry, file.where() + ": candidates")));
  const auto lengths = [](const MeasuredCandidate& one) { return one.lengths.size(); };
  if (std::ranges::adjacent_find(found.candidates, std::not_equal_to{}, lengths) !=
      found.candidates.end()) {
    file.refuse("candidates", "the same lengths of all");
  }
  const auto named = [&](const std::string& name) {
    return std::ranges::find_if(
        found.candidates, [&](const MeasuredCandidate& one) { return one.candidate.name == name; });
  };
  const auto direct = named("direct"), end = found.candidates.end();
  if (direct == end) file.refuse("candidates", "\"direct\" among them");
  std::rotate(found.candidates.begin(), direct, direct + 1);
  const auto best = named(file.string("recommended"));
  if (best == end) file.refuse("recommended", "a candidate");
  recommendation = {.best = static_cast<size_t>(best - found.candidates.begin()),
                    .reason = file.string("reason")};
  found.model = {
      .train_length = file.integer("train_length", 0, kLongest),
      .weights = file.optional_integer("weights", 0, kLongest).value_or(0),
      .blocks = file.integer("blocks", 1, kLongest),
      .stride = file.integer("stride", 1, kLongest),
      .lengths = found.candidates.front().lengths,
      .unit = file.string("unit").ends_with("token") ? "token" : "byte",
      .bytes_per_token = file.optional_number("bytes_per_token", 0, kLargest).value_or(1),
      .by_position = found.candidates.front().by_position};
  return found;
}

std::string signed_mean(const Mean& mean) {
  return fmt::format("{} ± {:.3f}", signed_fixed(mean.value), mean.error);
}

chart::Table candidates_table(const Extension& found) {
  const ModelEvaluation& model = found.model;
  double seconds = 0;
  for (const MeasuredCandidate& each : found.candidates) seconds += each.seconds;
  chart::Table table{
      .caption = fmt::format(
          "Loss in nats per {} on the last {} {}s of {} blocks; ±: standard errors of paired "
          "differences; config.json: whether it has words for it{}{}",
          model.unit, model.stride, model.unit, model.blocks,
          model.unit == "token" ? fmt::format("; a token has {:.2f} bytes", model.bytes_per_token)
                                : "",
          seconds > 0 ? fmt::format("; the forward passes took {:.0f} minutes", seconds / 60) : ""),
      .columns = {{"candidate"}},
      .name = "losses"};
  for (const AtLength& at : model.lengths)
    table.columns.push_back({.name = std::to_string(at.length), .unit = model.unit + "s"});
  table.columns.insert(table.columns.end(),
                       {{"behind the best"},
                        {.name = "change", .unit = fmt::format("at {}", model.lengths[0].length)},
                        {"config.json"}});
  std::vector<const MeasuredCandidate*> order;
  for (const MeasuredCandidate& each : found.candidates) order.push_back(&each);
  std::ranges::stable_sort(order, {},
                           [](const auto* each) { return each->lengths.back().sliding.value; });
  for (const MeasuredCandidate* const each : order) {
    std::vector<chart::Cell>& row = table.rows.emplace_back();
    row.push_back({.text = each->candidate.name, .is_code = true});
    for (const AtLength& at : each->lengths) row.push_back(chart::number(at.sliding.value, 3));
    row.push_back({.text = signed_mean(each->behind), .value = each->behind.value});
    const Mean& change = each->lengths.front().sliding_change;
    row.push_back({.text = signed_mean(change), .value = change.value});
    row.push_back(chart::words(each->candidate.in_hugging_face ? "yes" : "no"));
  }
  return table;
}

// Of a whole config.json the two fields that a stretch decides.
std::string shown_words(const std::string& engine, const std::string& words) {
  const json config = engine == "hugging_face" ? json::parse(words, nullptr, false) : json();
  if (!config.is_object()) return words;
  json shown;
  for (const char* name :
       {"max_position_embeddings", "rope_parameters", "rope_scaling", "rope_theta"}) {
    if (config.contains(name)) shown[name] = config.at(name);
  }
  return shown.dump(2);
}

}  // namespace

chart::Report extension_page(const json& content, const std::string& where) {
  const JsonFields file(content, where);
  Recommendation recommendation;
  const Extension found = extension_of(file, recommendation);
  chart::Report page;
  page.title = fmt::format("{}, stretched to {} {}s",
                           file.optional_string("model").value_or("A trained rope"),
                           found.model.lengths.back().length, found.model.unit);
  std::string reason = recommendation.reason;
  while (reason.ends_with('\n') || reason.ends_with(' ')) reason.pop_back();
  page.lead = reason + ".";
  chart::LineChart by_length = chart_of(found, recommendation);
  by_length.name = "loss-by-length";
  page.sections.push_back({"Candidates", {candidates_table(found), std::move(by_length)}});
  if (!found.model.by_position.loss.empty()) {
    chart::LineChart chart = chart_by_position(found, recommendation);
    chart.name = "loss-by-position";
    page.sections.back().blocks.emplace_back(std::move(chart));
  }
  const json* const words = file.optional_object("words");
  if (words == nullptr) return page;
  chart::Section& section = page.sections.emplace_back();
  section.heading = "In the words of engines";
  for (const auto& [key, name] : {std::pair{"hugging_face", "transformers, config.json"},
                                  std::pair{"vllm", "vLLM"}, std::pair{"llama_cpp", "llama.cpp"}}) {
    const JsonFields fields(*words, where + ": words");
    const json* const choice = fields.optional_object(key);
    if (choice == nullptr) continue;
    const JsonFields said(*choice, fields.where() + ": " + key);
    section.blocks.emplace_back(
        chart::Prose{fmt::format("{}: `{}`", name, said.string("candidate"))});
    section.blocks.emplace_back(chart::Listing{shown_words(key, said.string("words"))});
  }
  return page;
}

}  // namespace sextant::lab
