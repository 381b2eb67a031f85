// Claims on retrieval, whose failures a loss on text does not show; local methods first.
#include "sextant/lab/report/claim_tables/claim.h"
#include "sextant/lab/report/claim_tables/sources.h"

namespace sextant::lab {
namespace {

using enum Measure;
using enum Side;

constexpr Claim kRetrieval[] = {
    {.text = "A window finds nothing beyond itself",
     .source = kRerope,
     .measure = kFar,
     .method = "window",
     .side = kBelow,
     .bound = kRetrievesFrom},
    {.text = "Chunks find nothing beyond themselves",
     .source = kRerope,
     .measure = kFar,
     .method = "chunk",
     .side = kBelow,
     .bound = kRetrievesFrom},
    {.text = "ALiBi does not find what lies far back",
     .source = kSandwich,
     .measure = kFar,
     .method = "alibi",
     .side = kBelow,
     .bound = kRetrievesFrom},
    {.text = "ALiBi finds more far back than a window",
     .source = kNotesSurvey,
     .measure = kFar,
     .method = "alibi",
     .other = "window",
     .side = kAbove},
    {.text = "KERPLE (log) does not find what lies far back",
     .source = kSandwich,
     .measure = kFar,
     .method = "kerple-log",
     .side = kBelow,
     .bound = kRetrievesFrom},
    {.text = "Sandwich does not find what lies far back",
     .source = kSandwich,
     .measure = kFar,
     .method = "sandwich",
     .side = kBelow,
     .bound = kRetrievesFrom},
    {.text = "RoPE does not find what lies far back",
     .source = kNoPe,
     .measure = kFar,
     .method = "rope",
     .side = kBelow,
     .bound = kRetrievesFrom},
    {.text = "T5's bias finds more than RoPE far back",
     .source = kNoPe,
     .measure = kFar,
     .method = "t5",
     .other = "rope",
     .side = kAbove},
    {.text = "No encoding at all finds more than RoPE far back",
     .source = kNoPe,
     .measure = kFar,
     .method = "none",
     .other = "rope",
     .side = kAbove},
    {.text = "ReRoPE finds more than YaRN far back",
     .source = kRerope,
     .measure = kFar,
     .method = "rerope",
     .other = "yarn",
     .side = kAbove},
    {.text = "Log n makes ReRoPE find more far back",
     .source = kLogN,
     .measure = kFar,
     .method = "rerope:log_n=L",
     .other = "rerope",
     .side = kAbove},
    {.text = "Log n makes RoPE find more far back",
     .source = kLogN,
     .measure = kFar,
     .method = "log-n",
     .other = "rope",
     .side = kAbove},
};

}  // namespace

std::span<const Claim> retrieval_claims() { return kRetrieval; }

}  // namespace sextant::lab
