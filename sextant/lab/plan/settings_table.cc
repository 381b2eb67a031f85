#include "sextant/lab/plan/settings.h"

#include <algorithm>

#include "sextant/lab/data/retrieval_task.h"

namespace sextant::lab {
namespace {

using Range = Setting::Range;

constexpr auto kNone = std::nullopt;
constexpr Range kCount{1, kMostSetting}, kTwoOrMore{2, kMostSetting}, kRate{0, 100},
    kMoment{0, 0.999999}, kSteps{0, kMostSetting}, kTextLength{kShortestPairText, kMostSetting};

std::vector<int64_t> four_lengths(int64_t first) {
  return {first, 2 * first, 4 * first, 8 * first};
}

void all_heads(Settings& all) { all.model.key_heads = all.model.heads; }
void four_widths(Settings& all) { all.model.mlp_width = 4 * all.model.width; }
void test_lengths(Settings& all) { all.test.lengths = four_lengths(all.training.length); }
void width_by_heads(Settings& all) { all.retrieval.width = 16 * all.model.heads; }
void small_lengths(Settings& all) { all.retrieval.lengths = four_lengths(all.retrieval.length); }

}  // namespace

std::string Setting::option() const {
  std::string words =
      part == "retrieval" ? std::string("--retrieval-") + name : std::string("--") + name;
  std::ranges::replace(words, '_', '-');
  return words;
}

std::vector<Setting> settings_table(Settings& settings) {
  DecoderOptions& model = settings.model;
  TrainingOptions& training = settings.training;
  TestOptions& test = settings.test;
  RetrievalOptions& small = settings.retrieval;
  return {
      {"model", "layers", &model.layers, kNone, "Layers", 1},
      {"model", "width", &model.width, kNone, "Width of the residual stream", 32},
      {"model", "heads", &model.heads, kNone, "Heads of queries", 2},
      {"model", "key_heads", &model.key_heads, kNone, "Heads of keys and values (else --heads)",
       kNone, all_heads},
      {"model", "mlp_width", &model.mlp_width, kNone, "Width of the hidden layer (else 4 widths)",
       kNone, four_widths},

      {"training", "length", &training.length, kTwoOrMore, "Length of the training sequences, L",
       32},
      {"training", "bytes", &training.bytes, kNone, "Bytes that each training sees", 25'600},
      {"training", "batch", &training.batch, kCount, "Sequences in a step"},
      {"training", "learning_rate", &training.learning_rate, kRate, "At its peak"},
      {"training", "warmup", &training.warmup, Range{0, 1}, "Share of the steps in which it rises"},
      {"training", "beta1", &training.beta1, kMoment},
      {"training", "beta2", &training.beta2, kMoment},
      {"training", "weight_decay", &training.weight_decay, kRate, "Of matrices"},
      {"training", "clip", &training.clip, Range{1e-9, 1e9}, "Largest norm of a gradient"},

      {"test", "lengths", &test.lengths, kNone, "Lengths tested (else 1, 2, 4 and 8 times L)",
       kNone, test_lengths},
      {"test", "blocks", &test.blocks, kTwoOrMore, "Sequences of the longest length", 8},
      {"test", "bin", &test.bin, kNone, "Positions in one point of \"loss by position\""},
      {"test", "share", &test.share, Range{0.001, 0.9}, "Share of the text that is held out"},

      {"retrieval", "steps", &small.steps, kSteps,
       "Training steps of the second task; 0: leave it out", 10},
      {"retrieval", "batch", &small.batch, kCount, "Sequences in a step", 8},
      {"retrieval", "length", &small.length, kTextLength, "Length of its training sequences", 16},
      {"retrieval", "learning_rate", &small.learning_rate, kRate, "At its peak"},
      {"retrieval", "layers", &small.layers, kNone, "Layers", 1},
      {"retrieval", "width", &small.width, kNone, "Width (else 16 for each head)", kNone,
       width_by_heads},
      {"retrieval", "lengths", &small.lengths, kNone,
       "Lengths tested (else 1, 2, 4 and 8 times its length)", kNone, small_lengths},
      {"retrieval", "texts", &small.texts, kTwoOrMore, "Sequences of each length and distance", 8},

      {"", "threads", &settings.threads, Range{1, 1024}, "Threads of each"},
      {"", "device", &settings.device, kNone,
       "Where each trains and is tested: cpu, cuda (--jobs is then 1 by default), or cuda:1 for "
       "the second GPU"},
  };
}

}  // namespace sextant::lab
