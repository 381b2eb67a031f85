// The list of claims as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "sextant/cli/commands.h"
#include "sextant/lab/report/claims.h"

namespace sextant::cli {
namespace {

using lab::Claim;

struct ListedClaim {
  std::string subject;
  Claim claim;
};

bool is_open(const Claim& claim) { return !claim.question.empty(); }

std::string arms_of(const Claim& claim) {
  return has_other(claim) ? fmt::format("{}, {}", claim.method, claim.other) : claim.method;
}

std::string lines_of(const Claim& claim) {
  std::string lines = fmt::format("  {}\n", claim.text);
  const auto add = [&](const char* field, const std::string& value) {
    lines += fmt::format("      {:<9} {}\n", field, value);
  };
  add("arms", fmt::format("{} ({})", arms_of(claim), name(claim.objective)));
  add("measure",
      fmt::format("{}{}", name(claim.measure), has_other(claim) ? "; first minus second" : ""));
  add("claimed", bound_of(claim));
  add("source", claim.source);
  if (is_open(claim)) add("question", claim.question);
  return lines;
}

// All claims, sorted by subject; only_open: those that belong to an open question.
std::vector<ListedClaim> listed_claims(bool only_open) {
  std::vector<ListedClaim> listed;
  for (const lab::ClaimSubject& subject : lab::claim_subjects()) {
    for (const Claim& claim : subject.claims) {
      if (!only_open || is_open(claim)) listed.push_back({subject.name, claim});
    }
  }
  return listed;
}

// Plain text of at most 100 columns.
std::string text_of(const std::vector<ListedClaim>& claims) {
  std::string text;
  std::string_view subject;
  for (const ListedClaim& listed : claims) {
    if (listed.subject != subject) {
      subject = listed.subject;
      text += fmt::format("{}{}\n", text.empty() ? "" : "\n", subject);
    }
    text += lines_of(listed.claim);
  }
  const auto open = std::ranges::count_if(
      claims, [](const ListedClaim& listed) { return is_open(listed.claim); });
  return text + fmt::format(
                    "\n{} claims, {} of them on open questions. To run the arms of these:\n"
                    "  sextant survey --claims open\n"
                    "  sextant survey --claims open --task masked\n",
                    claims.size(), open);
}

std::string json_text(const std::vector<ListedClaim>& claims) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const auto& [subject, claim] : claims) {
    nlohmann::ordered_json arms = nlohmann::ordered_json::array({claim.method});
    if (has_other(claim)) arms.push_back(claim.other);
    nlohmann::ordered_json question;
    if (is_open(claim)) question = claim.question;
    all.push_back({{"subject", subject},
                   {"claim", claim.text},
                   {"source", claim.source},
                   {"task", name(claim.objective)},
                   {"arms", arms},
                   {"measure", key(claim.measure)},
                   {"side", name(claim.side)},
                   {"bound", claim.bound},
                   {"question", question}});
  }
  return all.dump(2) + "\n";
}

}  // namespace

std::string claims_text(bool only_open, bool as_json) {
  const std::vector<ListedClaim> claims = listed_claims(only_open);
  return as_json ? json_text(claims) : text_of(claims);
}

}  // namespace sextant::cli
