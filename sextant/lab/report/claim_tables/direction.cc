// Claims on the direction of a distance: whether a model can tell left from right. They need
// encoders, because a causal mask shows the left side only.
#include "sextant/lab/report/claim_tables/claim.h"
#include "sextant/lab/report/claim_tables/sources.h"

namespace sextant::lab {
namespace {

using enum Measure;
using enum Side;

constexpr const char* kLost =
    "Do symmetric encodings fail at direction, and only without the causal mask?";
constexpr auto kMasked = Objective::kMasked;

constexpr Claim kDirections[] = {
    {.text = "ALiBi does not tell direction, because its bias is symmetric",
     .source = kNotesSurvey,
     .measure = kDirection,
     .method = "alibi",
     .other = "shaw",
     .side = kBelow,
     .question = kLost,
     .objective = kMasked},
    {.text = "ALiBi with another slope for keys in the future tells direction better",
     .source = kAlibi,
     .measure = kDirection,
     .method = "alibi:future_scale=0.5",
     .other = "alibi",
     .side = kAbove,
     .question = kLost,
     .objective = kMasked},
    {.text = "TENER tells direction better than added sinusoids",
     .source = kTener,
     .measure = kDirection,
     .method = "tener",
     .other = "sinusoidal",
     .side = kAbove,
     .question = kLost,
     .objective = kMasked},
    {.text = "NEZHA tells direction better than ALiBi",
     .source = kNotesShort,
     .measure = kDirection,
     .method = "nezha",
     .other = "alibi",
     .side = kAbove,
     .question = kLost,
     .objective = kMasked},
    {.text = "Without a causal mask, no encoding at all is worse than ALiBi",
     .source = kNotesSurvey,
     .measure = kTrained,
     .method = "none",
     .other = "alibi",
     .side = kAbove,
     .bound = kHoldsBelow,
     .question = kLost,
     .objective = kMasked},
    {.text = "With a causal mask, ALiBi tells direction as well as Shaw's encoding",
     .source = kNotesSurvey,
     .measure = kDirection,
     .method = "alibi:causal=true",
     .other = "shaw:causal=true",
     .side = kAbove,
     .bound = -0.05,
     .question = kLost,
     .objective = kMasked},
};

}  // namespace

std::span<const Claim> direction_claims() { return kDirections; }

}  // namespace sextant::lab
