// The numbers of a survey as CSV.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sextant/lab/report/findings.h"

namespace sextant::lab {

// A CSV field (RFC 4180), quoted if it contains a separator, a quote or a line break.
std::string csv_field(const std::string& text);

// "method,seed,measure,length,position,value": every number of every arm. position is the first
// position of a bin; the bytes read for "training", the distance for "retrieval" and "direction",
// the layer for "attention_...".
std::string results_csv(const Findings& findings);

inline constexpr const char* kBaseChange = "base_change";

// One measure of one method over its seeds: those of AtLength, "retrieval" or "direction", and
// "lost" of a method with dropped channels (MethodResult::lost).
struct Summary {
  std::string method, measure;
  int64_t length = 0;
  std::optional<int64_t> distance;  // of the small task
  size_t seeds = 0;
  MeanInterval value;
};
// kBaseChange, of a method with a base such as a stretch, is the sliding loss minus the base's at
// L. "sliding_minus_reference" is the loss at L minus that of the reference of learning
// (learned.h).
std::vector<Summary> summary(const Findings& findings);

// The mean that "loss", "sliding", "loss_change" or "sliding_change" names; nullopt for others.
std::optional<MeanInterval LossMeans::*> loss_measure(const std::string& name);

// "method,measure,length,distance,seeds,mean,half_interval95"
std::string summary_csv(const Findings& findings);

}  // namespace sextant::lab
