// Claims on rotary positions that are trained.
#include "sextant/lab/report/claim_tables/claim.h"
#include "sextant/lab/report/claim_tables/sources.h"

namespace sextant::lab {
namespace {

using enum Measure;
using enum Side;

constexpr const char* kDecay = "Has RoPE a decay with distance or not?";

constexpr Claim kRotary[] = {
    {.text = "RoPE breaks past the training length",
     .source = kAlibi,
     .measure = kChange,
     .method = "rope",
     .side = kAbove,
     .bound = kBreaksAbove},
    {.text = "XPOS loses less than RoPE past the training length",
     .source = "Sun et al. 2022 (arXiv 2212.10554)",
     .measure = kChange,
     .method = "xpos",
     .other = "rope",
     .side = kBelow},
    {.text = "RoPE attends less to far keys than a model without encoding: it has a decay",
     .source = kNotesLength,
     .measure = kAttention,
     .method = "rope",
     .other = "none",
     .side = kBelow,
     .question = kDecay},
    {.text = "RoPE has no decay of ALiBi's kind: it attends more to far keys",
     .source = kNotesSurvey,
     .measure = kAttention,
     .method = "rope",
     .other = "alibi",
     .side = kAbove,
     .question = kDecay},
    {.text = "RoPE attends less beyond the training length than a model without encoding",
     .source = kNotesLength,
     .measure = kAttentionPast,
     .method = "rope",
     .other = "none",
     .side = kBelow,
     .question = kDecay},
    {.text = "RoPE attends more beyond the training length than ALiBi",
     .source = kNotesSurvey,
     .measure = kAttentionPast,
     .method = "rope",
     .other = "alibi",
     .side = kAbove,
     .question = kDecay},
    {.text = "A base of 10000 is better than one of 100 for RoPE at the training length",
     .source = kNotesClock,
     .measure = kTrained,
     .method = "rope:base=100",
     .other = "rope",
     .side = kAbove,
     .question = kWhichBase},
    {.text = "A base of 10000 is better than a million for RoPE at the training length",
     .source = kNotesClock,
     .measure = kTrained,
     .method = "rope:base=1e6",
     .other = "rope",
     .side = kAbove,
     .question = kWhichBase},
    {.text = "A larger base makes RoPE better on the longest texts",
     .source = kNotesClock,
     .measure = kLongest,
     .method = "rope:base=1e6",
     .other = "rope",
     .side = kBelow,
     .question = kWhichBase},
    {.text = "A smaller base makes RoPE worse on the longest texts",
     .source = kNotesClock,
     .measure = kLongest,
     .method = "rope:base=100",
     .other = "rope",
     .side = kAbove,
     .question = kWhichBase},
};

}  // namespace

std::span<const Claim> rotary_claims() { return kRotary; }

}  // namespace sextant::lab
