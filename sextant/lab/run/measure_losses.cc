// Each candidate is an arm of a measurement (measure.h). The losses of its blocks become the
// evaluation, or the extension, that the request asks for.
#include "sextant/lab/run/measure_losses.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "sextant/base/error.h"
#include "sextant/files/write_file.h"
#include "sextant/lab/data/corpus.h"
#include "sextant/lab/result/block_losses.h"
#include "sextant/lab/result/engine_words.h"
#include "sextant/lab/result/stretch_candidates.h"

namespace sextant::lab {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int64_t kMostStride = 4096, kBin = 256;
constexpr const char* kTextFile = "text.txt";
const std::vector<std::string> kBestKnown = {"direct",  "pi",     "ntk",         "yarn",
                                             "dynamic", "rerope", "self-extend", "dual-chunk"};

[[noreturn]] void wrong(const CheckpointRequest& request, const char* field,
                        const std::string& expected) {
  fail(fmt::format("{}: {}: expected {}", request.command, field, expected));
}

void check(const CheckpointRequest& request) {
  const EvaluationRequest& text = request.text;
  if (text.lengths.empty() || text.lengths.front() < 1)
    wrong(request, "lengths", "at least one, of at least 1");
  if (!std::ranges::is_sorted(text.lengths, std::less_equal<>{}))
    wrong(request, "lengths", "each above the one before");
  if (text.stride < 0 || text.stride > text.lengths.front())
    wrong(
        request, "stride",
        fmt::format("1 to the shortest length, {}, but got {}", text.lengths.front(), text.stride));
  if (text.blocks != 0 && text.blocks < kFewestBlocks)
    wrong(request, "blocks", fmt::format("at least {}, but got {}", kFewestBlocks, text.blocks));
  if (text.drop_channels != 0)
    wrong(request, "drop_channels",
          fmt::format("0 for a checkpoint, but got {}", text.drop_channels));
}

class Losses {
 public:
  Losses(CheckpointRequest request, const Checkpoint& checkpoint,
         const std::vector<StretchCandidate>& candidates)
      : request_(std::move(request)), checkpoint_(checkpoint) {
    check(request_);
    const Corpus corpus = read_corpus(request_.text.text, request_.text.share);
    measurement_.command = request_.command;
    measurement_.folder = folder_of(request_, checkpoint);
    measurement_.hand_out = request_.hand_out;
    const EvaluationRequest& text = request_.text;
    const json losses{
        {"lengths", text.lengths}, {"blocks", blocks()}, {"stride", text.stride}, {"bin", kBin}};
    measurement_.manifest = {
        {"measure", "losses"},
        {"model", {{"path", checkpoint.path.string()}, {"files", checkpoint.files}}},
        {"text", identity(corpus)},
        {"share", text.share},
        {"dtype", request_.dtype},
        {"losses", losses}};
    for (const StretchCandidate& candidate : candidates) {
      const bool own = candidate.name == candidates.front().name;
      measurement_.arms.push_back(
          {.name = candidate.name,
           .assignment = {{"measure", "losses"},
                          {"model", checkpoint.path.string()},
                          {"candidate",
                           {{"name", candidate.name},
                            {"method", own ? json() : json(candidate.method)},
                            {"options", own ? json::object() : json::parse(candidate.options)}}},
                          {"dtype", request_.dtype},
                          {"threads", request_.threads},
                          {"text", fs::path("../..") / kTextFile},
                          {"ends", corpus.test_ends},
                          {"losses", losses}}});
    }
    check_can_write(measurement_.folder);
    if (!fs::exists(measurement_.folder / kTextFile))
      write_file(measurement_.folder / kTextFile, corpus.test);
  }

  MeasureEnd run() const { return run_measurement(measurement_); }

  // The losses of the n-th candidate.
  CandidateLosses losses_of(size_t n, const StretchCandidate& candidate) const {
    const std::vector<int64_t>& lengths = request_.text.lengths;
    const auto count = static_cast<size_t>(blocks());
    std::vector<BlockLosses> found(lengths.size());
    for (BlockLosses& each : found) {
      each.loss.resize(count, NAN);
      each.sliding.resize(count);
    }
    std::vector<std::vector<double>> bins;  // by bin, then by block
    CandidateLosses losses{.candidate = candidate, .by_position = {.bin = kBin}};
    for_each_record(
        measurement_, measurement_.arms.at(n), records(), [&](const JsonFields& fields) {
          const LossRecord record = loss_record(fields, lengths, blocks());
          const auto at =
              static_cast<size_t>(std::ranges::find(lengths, record.length) - lengths.begin());
          const std::vector<double>&nats = record.nats, &tokens = record.tokens;
          losses.seconds += record.seconds;
          if (!std::isnan(found[at].loss[record.block]))
            fields.refuse("block", fmt::format("each once at length {}", record.length));
          found[at].loss[record.block] =
              std::reduce(nats.begin(), nats.end()) / std::reduce(tokens.begin(), tokens.end());
          found[at].sliding[record.block] = record.last_nats / record.last_tokens;
          if (at + 1 != lengths.size()) return true;
          if (bins.empty()) bins.resize(nats.size(), std::vector<double>(count));
          if (nats.size() != bins.size())
            fields.refuse("nats", fmt::format("{} numbers, as in the line before", bins.size()));
          for (size_t bin = 0; bin < nats.size(); ++bin)
            bins[bin][record.block] = nats[bin] / tokens[bin];
          return true;
        });
    losses.blocks = found;
    for (const std::vector<double>& bin : bins)
      losses.by_position.loss.push_back(mean_of_blocks(bin));
    return losses;
  }

  // The first candidate, which is the unchanged model.
  ModelEvaluation described(const CandidateLosses& losses, int64_t reference) const {
    const std::vector<int64_t>& lengths = request_.text.lengths;
    const auto at = static_cast<size_t>(std::ranges::find(lengths, reference) - lengths.begin());
    return {.method = checkpoint_.model_type,
            .options = "{}",
            .train_length = checkpoint_.train_length,
            .weights = facts_of(measurement_, measurement_.arms.front()).weights,
            .blocks = blocks(),
            .stride = request_.text.stride,
            .lengths = at_lengths(lengths, losses.blocks, at),
            .reference = reference,
            .unit = "token",
            .bytes_per_token = bytes_per_token(),
            .by_position = losses.by_position};
  }

 private:
  int64_t blocks() const {
    return request_.text.blocks == 0 ? kCheckpointBlocks : request_.text.blocks;
  }

  // The number of records of each arm.
  int64_t records() const { return blocks() * static_cast<int64_t>(request_.text.lengths.size()); }

  double bytes_per_token() const {
    double bytes = 0, tokens = 0;
    for_each_record(
        measurement_, measurement_.arms.front(), records(), [&](const JsonFields& fields) {
          const LossRecord record = loss_record(fields, request_.text.lengths, blocks());
          tokens += record.last_tokens;
          bytes += record.last_bytes;
          return true;
        });
    return bytes / tokens;
  }

  CheckpointRequest request_;
  const Checkpoint& checkpoint_;
  Measurement measurement_;
};

}  // namespace

fs::path folder_of(const CheckpointRequest& request, const Checkpoint& checkpoint) {
  if (!request.out.empty()) return request.out;
  return fs::path("runs") / (request.command + "-" + checkpoint.name);
}

std::optional<ModelEvaluation> evaluate_checkpoint(const CheckpointRequest& request,
                                                   const Checkpoint& checkpoint, MeasureEnd& end) {
  CheckpointRequest asked = request;
  const std::vector<int64_t>& lengths = asked.text.lengths;
  if (asked.text.stride == 0 && !lengths.empty())
    asked.text.stride = std::clamp<int64_t>(lengths.front() / 2, 1, kMostStride);
  const std::vector<StretchCandidate> own = {{.name = "direct", .options = "{}"}};
  const Losses losses(asked, checkpoint, own);
  end = losses.run();
  if (end != MeasureEnd::kDone) return std::nullopt;
  const bool has_trained = std::ranges::find(lengths, checkpoint.train_length) != lengths.end();
  return losses.described(losses.losses_of(0, own.front()),
                          has_trained ? checkpoint.train_length : lengths.front());
}

std::optional<Extension> extend_checkpoint(const CheckpointRequest& request,
                                           const Checkpoint& checkpoint,
                                           const std::vector<StretchCandidate>& candidates,
                                           MeasureEnd& end) {
  CheckpointRequest asked = request;
  const int64_t longest = asked.text.lengths.back(), trained = checkpoint.train_length;
  if (asked.text.stride == 0)
    asked.text.stride = std::min({longest - trained, trained, kMostStride});
  const Losses losses(asked, checkpoint, candidates);
  end = losses.run();
  if (end != MeasureEnd::kDone) return std::nullopt;
  std::vector<CandidateLosses> found;
  for (size_t n = 0; n < candidates.size(); ++n) {
    found.push_back(losses.losses_of(n, candidates[n]));
    found.back().candidate.in_hugging_face =
        !engine_words(checkpoint, candidates[n], longest).hugging_face.text.empty();
  }
  return extension_of(losses.described(found.front(), trained), found);
}

std::vector<StretchCandidate> checkpoint_candidates(const Checkpoint& checkpoint, int64_t length,
                                                    const std::vector<std::string>& names) {
  std::vector<StretchCandidate> all = stretch_candidates("{}", checkpoint.train_length, length);
  std::erase_if(all, [](const StretchCandidate& one) { return one.method == "window"; });
  std::vector<std::string> known;
  for (const StretchCandidate& one : all) known.push_back(one.name);
  for (const std::string& name : names) {
    if (name != "all" && std::ranges::find(known, name) == known.end())
      fail(fmt::format("extend: --candidates: expected all or some of {}, but got {}",
                       fmt::join(known, ", "), name));
  }
  if (std::ranges::find(names, "all") != names.end()) return all;
  const std::vector<std::string>& chosen = names.empty() ? kBestKnown : names;
  std::erase_if(all, [&](const StretchCandidate& one) {
    return one.name != "direct" && std::ranges::find(chosen, one.name) == chosen.end();
  });
  return all;
}

}  // namespace sextant::lab
