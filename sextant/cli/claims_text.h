// The list of claims as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "sextant/lab/report/claim.h"

namespace sextant::cli {

struct ListedClaim {
  std::string subject;
  lab::Claim claim;
};

// All claims, sorted by subject; only_open: those that belong to an open question.
std::vector<ListedClaim> listed_claims(bool only_open);

// Plain text of at most 100 columns.
std::string text_of(const std::vector<ListedClaim>& claims);
// A JSON array: of each claim its subject, text, source, task, arms, measure, side and bound, and
// the open question or null.
std::string json_text(const std::vector<ListedClaim>& claims);

}  // namespace sextant::cli
