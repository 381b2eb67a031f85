#include "sextant/lab/report/claim_tables/claim.h"

namespace sextant::lab {

const char* name(Side side) { return side == Side::kBelow ? "below" : "above"; }

std::span<const ClaimSubject> claim_subjects() {
  static const ClaimSubject kSubjects[] = {
      {"absolute positions", absolute_claims()},
      {"biases by distance", bias_claims()},
      {"direction", direction_claims()},
      {"relative positions", relative_claims()},
      {"retrieval", retrieval_claims()},
      {"rotary positions", rotary_claims()},
      {"stretches with more training", tuning_claims()},
      {"stretches without more training", stretch_claims()},
  };
  return kSubjects;
}

}  // namespace sextant::lab
