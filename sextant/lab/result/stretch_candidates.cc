// The list of candidates comes first, then the choice: the lowest loss far out plus what it costs
// at the trained length, with ties by the interval of paired blocks.
#include "sextant/lab/result/stretch_candidates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sextant/base/error.h"
#include "sextant/lab/plan/stretches.h"

namespace sextant::lab {
namespace {

using nlohmann::json;

// Options of rope that all candidates share.
constexpr const char* kShared[] = {
    "dim", "columns", "base", "pairing", "sense", "float32_frequencies", "axes", "sections"};

class StretchCandidates {
 public:
  StretchCandidates(const json& options, int64_t train_length, int64_t length)
      : train_length_(train_length),
        length_(length),
        factor_(static_cast<double>(length) / static_cast<double>(train_length)) {
    for (const char* option : kShared)
      if (options.contains(option)) shared_[option] = options.at(option);
    const char* old_name = "float32_speeds";  // in files of an older version
    if (options.contains(old_name)) shared_["float32_frequencies"] = options.at(old_name);
  }

  std::vector<StretchCandidate> all() && {
    add("direct", "as it was trained (Su et al. 2021)", "rope", {});
    stretch("pi", "positions interpolated (Chen et al. 2023)", named("pi"));
    stretch("ntk", "another base (bloc97 2023)", named("ntk"));
    stretch("ntk-mixed", "a ladder between NTK and interpolation (Su 2023)", named("ntk-mixed"));
    stretch("by-parts", "slow pairs interpolated, fast ones kept (Peng et al. 2023)",
            {{"rope_type", "by-parts"}});
    stretch("llama3", "the same with 1 and 4 turns (Llama 3, 2024)",
            {{"rope_type", "llama3"}, {"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}});
    stretch("yarn", "by parts and a temperature (Peng et al. 2023)", named("yarn"));
    stretch("yarn-8-turns", "the same, pairs of 8 turns and more kept", named("yarn-8-turns"));
    dynamic("dynamic", "NTK by the text's length, as Hugging Face has it (2023)",
            {{"rope_type", "dynamic"}, {"factor", 1.0}}, "length");
    dynamic("dynamic-pi", "interpolated by each query's position", named("dynamic-pi"), "query");
    dynamic("dynamic-ntk", "NTK by each query's position", named("dynamic-ntk"), "query");
    dynamic("dynamic-by-parts", "by parts by each query's position",
            {{"rope_type", "dynamic-by-parts"}, {"beta_fast", kFewTurns}}, "query");
    dynamic("dynamic-yarn", "YaRN by each query's position", named("dynamic-yarn"), "query");
    piecewise();
    return std::move(candidates_);
  }

 private:
  void add(const char* name, const char* summary, const char* method, const json& more) {
    json options = shared_;
    if (!more.is_null()) options.update(more);
    candidates_.push_back(
        {.name = name, .summary = summary, .method = method, .options = options.dump()});
  }

  json named(const char* name) const { return stretch_named(name, factor_); }

  void stretch(const char* name, const char* summary, json object) {
    object["factor"] = factor_;
    object["original_max_position_embeddings"] = train_length_;
    for (const char* without : {"linear", "ntk", "ntk-mixed"})
      if (object.at("rope_type") == without) object.erase("original_max_position_embeddings");
    add(name, summary, "rope", {{"stretch", object}});
  }

  void dynamic(const char* name, const char* summary, json object, const char* by) {
    object["original_max_position_embeddings"] = train_length_;
    add(name, summary, "rope", {{"stretch", object}, {"dynamic", by}});
  }

  void piecewise() {
    add("log-n", "queries times log n (Su 2021)", "rope", {{"query_scale", "logn"}});
    add("rerope", "no distance beyond L/2 (Su 2023)", "rerope", {});
    add("leaky-rerope", "distances beyond L/2 grow slower (Su 2023)", "leaky-rerope",
        piecewise_options("leaky-rerope", train_length_, length_));
    add("self-extend", "distances beyond L/4 in groups (Jin et al. 2024)", "self-extend",
        piecewise_options("self-extend", train_length_, length_));
    add("dual-chunk", "positions that start again in chunks (An et al. 2024)", "dual-chunk", {});
    add("streaming", "4 first keys and the last L (Xiao et al. 2023)", "streaming", {});
    // The window wraps rope, so rope's options are nested in its own.
    candidates_.push_back(
        {.name = "window",
         .summary = "the last L keys and no other (Beltagy et al. 2020)",
         .method = "window",
         .options = json{{"window", train_length_}, {"of", "rope"}, {"options", shared_}}.dump()});
  }

  int64_t train_length_, length_;
  double factor_;
  json shared_ = json::object();
  std::vector<StretchCandidate> candidates_;
};

// Layers of window and streaming attend only to the last L keys (streaming also to the first 4).
// Their loss on text stays low, because text depends almost only on the last words; little
// information from further back reaches the output.
bool sees_all(const MeasuredCandidate& candidate) {
  return candidate.candidate.method != "window" && candidate.candidate.method != "streaming";
}

const AtLength& at_trained(const MeasuredCandidate& candidate, int64_t trained) {
  const auto found = std::ranges::find(candidate.lengths, trained, &AtLength::length);
  return found == candidate.lengths.end() ? candidate.lengths.front() : *found;
}

// The loss at L minus that of the unchanged model; 0 if it is lower.
double cost_at_trained(const MeasuredCandidate& candidate, int64_t trained) {
  return std::max(0.0, at_trained(candidate, trained).sliding_change.value);
}

double far_loss(const MeasuredCandidate& candidate) {
  return candidate.lengths.back().sliding.value;
}

// The criterion of the recommendation: the loss at the longest length plus the loss it costs at L.
double cost(const MeasuredCandidate& candidate, int64_t trained) {
  return far_loss(candidate) + cost_at_trained(candidate, trained);
}

// The index of the allowed candidate with the lowest cost.
std::optional<size_t> best_of(const Extension& extension, const auto& allowed) {
  const int64_t trained = extension.model.reference;
  std::optional<size_t> found;
  for (size_t n = 0; n < extension.candidates.size(); ++n) {
    const MeasuredCandidate& candidate = extension.candidates[n];
    if (!allowed(candidate)) continue;
    if (!found || cost(candidate, trained) < cost(extension.candidates[*found], trained)) found = n;
  }
  return found;
}

// cost() of each block. The mean over blocks decides whether a candidate costs anything at L: if
// its mean loss at L is not above that of the unchanged model, no block counts the difference at L.
// Empty if blocks were not kept.
std::vector<double> cost_by_block(const Extension& extension, const MeasuredCandidate& candidate) {
  const int64_t trained = extension.model.reference;
  std::vector<double> blocks = candidate.lengths.back().sliding_blocks;
  if (cost_at_trained(candidate, trained) == 0) return blocks;
  const std::vector<double>&near = at_trained(candidate, trained).sliding_blocks,
        &direct = at_trained(extension.candidates.front(), trained).sliding_blocks;
  if (near.size() != blocks.size() || direct.size() != blocks.size()) return {};
  for (size_t block = 0; block < blocks.size(); ++block)
    blocks[block] += near[block] - direct[block];
  return blocks;
}

// The allowed candidates whose cost is not significantly above that of `best`, lowest first.
std::vector<Recommendation::Tie> ties_of(const Extension& extension, size_t best,
                                         const auto& allowed) {
  std::vector<Recommendation::Tie> ties;
  const std::vector<double> blocks = cost_by_block(extension, extension.candidates[best]);
  for (size_t n = 0; n < extension.candidates.size(); ++n) {
    if (n == best || !allowed(extension.candidates[n])) continue;
    const std::vector<double> here = cost_by_block(extension, extension.candidates[n]);
    if (here.size() < 2 || here.size() != blocks.size()) continue;
    const MeanInterval interval = interval95(paired_differences(here, blocks));
    if (interval.low() <= 0) ties.push_back({.candidate = n, .behind = interval});
  }
  std::ranges::stable_sort(ties, {},
                           [](const Recommendation::Tie& tie) { return tie.behind.mean; });
  return ties;
}

// "a 1.533 and b 1.534"
std::string losses_of(const Extension& extension, const std::vector<size_t>& candidates) {
  std::vector<std::string> texts;
  for (const size_t n : candidates) {
    const MeasuredCandidate& candidate = extension.candidates[n];
    texts.push_back(fmt::format("{} {:.3f}", candidate.candidate.name, far_loss(candidate)));
  }
  return fmt::format("{}", fmt::join(texts, " and "));
}

// " (-1.234 ± 0.056, 95 %)": the loss at the longest length less that of the unchanged model,
// paired over blocks. Empty if blocks were not kept, or for the unchanged model.
std::string against(const MeasuredCandidate& candidate, const MeasuredCandidate& direct) {
  const std::vector<double>&ours = candidate.lengths.back().sliding_blocks,
        &theirs = direct.lengths.back().sliding_blocks;
  if (ours.size() < 2 || ours.size() != theirs.size() || &candidate == &direct) return "";
  return fmt::format(" ({}, 95 %)", signed_fixed(interval95(paired_differences(ours, theirs))));
}

// Explains why candidates with a lower loss at the longest length are not recommended; ties are
// left out.
std::string why_not_lower(const Extension& extension, const Recommendation& found) {
  const int64_t trained = extension.model.reference;
  std::vector<size_t> windowed, costly;
  for (size_t n = 0; n < extension.candidates.size(); ++n) {
    const MeasuredCandidate& candidate = extension.candidates[n];
    if (far_loss(candidate) >= far_loss(extension.candidates[found.best])) continue;
    if (std::ranges::find(found.ties, n, &Recommendation::Tie::candidate) != found.ties.end())
      continue;
    (sees_all(candidate) ? costly : windowed).push_back(n);
  }
  std::string text;
  if (!costly.empty())
    text +=
        fmt::format(". Lower there, but worse at {}: {}", trained, losses_of(extension, costly));
  if (!windowed.empty())
    text += fmt::format(
        ". Do not be misled by {}: in each layer that is without anything further back than {} {}s",
        losses_of(extension, windowed), trained, extension.model.unit);
  return text;
}

}  // namespace

std::vector<StretchCandidate> stretch_candidates(const std::string& rope_options,
                                                 int64_t train_length, int64_t length) {
  if (length <= train_length)
    fail(fmt::format("extend: length: expected more than the model's {}, but got {}", train_length,
                     length));
  return StretchCandidates(json::parse(rope_options), train_length, length).all();
}

Recommendation recommend(const Extension& extension) {
  const int64_t trained = extension.model.reference;
  // Candidate 0 is the unchanged model, which sees the whole sequence, so there is a best one.
  Recommendation found{.best = best_of(extension, sees_all).value(), .reason = ""};
  found.writable = best_of(extension, [](const MeasuredCandidate& candidate) {
    return candidate.candidate.in_hugging_face && sees_all(candidate);
  });
  const MeasuredCandidate &best = extension.candidates[found.best],
                          &direct = extension.candidates.front();
  found.ties = ties_of(extension, found.best, sees_all);
  const AtLength &far = best.lengths.back(), &near = at_trained(best, trained);
  found.reason = fmt::format(
      "{} is best for sequences of {} {}s, with its cost at {} counted, among the candidates that "
      "see all of them: {:.3f} nats per {} on their last {}, against {:.3f} of the model as it "
      "is{}; at {} it has {:.3f} ({})",
      best.candidate.name, far.length, extension.model.unit, near.length, far.sliding.value,
      extension.model.unit, extension.model.stride, far_loss(direct), against(best, direct),
      near.length, near.sliding.value, signed_fixed(near.sliding_change.value));
  std::string others;
  for (const Recommendation::Tie& tie : found.ties)
    others +=
        fmt::format("{}{} ({})", others.empty() ? "" : ", ",
                    extension.candidates[tie.candidate].candidate.name, signed_fixed(tie.behind));
  if (!others.empty())
    found.reason += fmt::format("; on this text {} {} not to be told apart from it", others,
                                found.ties.size() == 1 ? "is" : "are");
  found.reason += why_not_lower(extension, found);
  return found;
}

std::vector<size_t> best_first(const Extension& extension) {
  const int64_t trained = extension.model.reference;
  std::vector<size_t> order;
  for (size_t n = 0; n < extension.candidates.size(); ++n)
    if (sees_all(extension.candidates[n])) order.push_back(n);
  std::ranges::stable_sort(order, {},
                           [&](size_t n) { return cost(extension.candidates[n], trained); });
  return order;
}

}  // namespace sextant::lab
