// Claims on stretches of a trained RoPE with a little more training at the longest length, beside
// the stretch without it and beside the plain RoPE with as much of it.
#include "sextant/lab/report/claim_tables/claim.h"
#include "sextant/lab/report/claim_tables/sources.h"

namespace sextant::lab {
namespace {

using enum Measure;
using enum Side;

constexpr const char* kTuned = "Does a stretch and a little tuning beat tuning alone?";
constexpr const char* kPlain = "rope:weights=rope:tune=N";

constexpr Claim kTuning[] = {
    {.text = "A little tuning repairs PI: it is better than without",
     .source = kPi,
     .measure = kLongest,
     .method = "pi:tune=N",
     .other = "pi",
     .side = kBelow,
     .question = kTuned},
    {.text = "PI with a little tuning holds up to the length that it is tuned at",
     .source = kNotesLength,
     .measure = kChange,
     .method = "pi:tune=N",
     .side = kBelow,
     .bound = kHoldsBelow,
     .question = kTuned},
    {.text = "PI with a little tuning is better than RoPE tuned alike",
     .source = kPi,
     .measure = kLongest,
     .method = "pi:tune=N",
     .other = kPlain,
     .side = kBelow,
     .question = kTuned},
    {.text = "PI is a good start of tuning: less is lost at the training length than by RoPE",
     .source = kNotesSurvey,
     .measure = kCost,
     .method = "pi:tune=N",
     .other = kPlain,
     .side = kBelow,
     .question = kTuned},
    {.text = "NTK with a little tuning is better than RoPE tuned alike",
     .source = kNtk,
     .measure = kLongest,
     .method = "ntk:tune=N",
     .other = kPlain,
     .side = kBelow,
     .question = kTuned},
    {.text = "YaRN with a little tuning is better than without",
     .source = kYarn,
     .measure = kLongest,
     .method = "yarn:tune=N",
     .other = "yarn",
     .side = kBelow,
     .question = kTuned},
    {.text = "YaRN with a little tuning is better than RoPE tuned alike",
     .source = kYarn,
     .measure = kLongest,
     .method = "yarn:tune=N",
     .other = kPlain,
     .side = kBelow,
     .question = kTuned},
    {.text = "YaRN needs less tuning than PI: tuned alike, it is better",
     .source = kYarn,
     .measure = kLongest,
     .method = "yarn:tune=N",
     .other = "pi:tune=N",
     .side = kBelow,
     .question = kTuned},
};

}  // namespace

std::span<const Claim> tuning_claims() { return kTuning; }

}  // namespace sextant::lab
