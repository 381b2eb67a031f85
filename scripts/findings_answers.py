"""The first block of docs/findings.md: which encoding to train with, and how to stretch a model."""
import findings_data
from findings_charts import image
from findings_scale import summary
from findings_words import NAMED, STRETCHED, beside, link, listed, values
from page_blocks import paragraph, table


def state(survey):
    document = survey.document
    if survey.is_complete:
        trained = sum(not method["base"] for method in survey.methods.values())
        return (f"All {document['planned']} arms are done: {trained} encodings and "
                f"{len(survey.methods) - trained} stretches of a trained {STRETCHED}, "
                f"{document['seeds']} seeds each. A number after ± is half of a 95 % interval over "
                "seeds (Student's t).")
    return (f"**{document['done']} of {document['planned']} arms are done so far; means are over "
            "the seeds that are there.** A value without ± has one seed and no interval, and close "
            "methods with one seed cannot be told apart; ± is half of a 95 % interval over seeds "
            "(Student's t). The answers below may change until the survey ends.")


def terms(survey):
    return (f"L is the training length, {survey.trained} bytes; losses are in nats per byte, of "
            f"the last {survey.trained // 2} bytes of a window that grows to "
            f"{survey.longest // survey.trained} L = {survey.longest}. A method holds if its loss "
            f"rises by {findings_data.HOLDS_BELOW:g} at most. It finds far pairs if a model "
            f"trained on retrieval in sequences of {survey.pair_trained} answers half of the "
            f"questions about the beginning of sequences of {max(survey.pair_lengths)}.")


def answer(survey, base):
    """The sentences on one question."""
    measured, kind = survey.measured(base), "stretches" if base else "encodings"
    stretched = f" of a trained `{base}`" if base else ""
    planned = sum(method["base"] == base for method in survey.methods.values())
    if not measured:
        return paragraph(f"**Stretches{stretched}: none of {planned} is measured yet.** They are "
                         "tested after the trainings.") if base else "No arm is done yet.\n"
    holding, candidates = survey.holding(base), survey.candidates(base)
    if not candidates:
        return paragraph(f"**None of the {len(measured)} {kind}{stretched} holds its loss at "
                         f"{survey.longest} bytes.** The lowest is `{measured[0]}` with "
                         f"{values(survey.loss(measured[0], survey.longest))}.")
    best = candidates[0]
    ties = [label for label in candidates[1:] if survey.is_tied(label, best)]
    waiting = [label for label in holding if survey.finds(label) is None]
    found = sum(bool(survey.finds(label)) for label in holding)
    advice = f"Stretch a trained `{base}` with `{best}`" if base else f"Train with `{best}`"
    if waiting:
        advice = f"So far `{best}` is first among the {kind}{stretched}"
    if ties:
        advice += f", or with {listed(ties, 'or')}" if len(ties) < NAMED else (
            f", or one of {len(ties)} others")
    text = [f"**{advice}.** Of {len(measured)} {kind}{stretched}, {len(holding)} hold their loss "
            f"at {survey.longest} bytes"
            + ("." if waiting else f", and {found or 'none'} of these "
               f"find{'s' * (found < 2)} far pairs.")]
    if ties:
        text.append("The methods named together are not told apart at that length." if
                    len(ties) < NAMED else f"The others are not told apart from `{best}` at that "
                    "length.")
    if waiting:
        text.append(f"Far pairs are measured for {len(holding) - len(waiting)} of these "
                    f"{len(holding)} so far.")
    lost = [label for label in holding if label not in candidates]
    if lost:
        text.append(f"Loss alone misleads: {listed(lost)} hold{'s' * (len(lost) == 1)} the loss, "
                    f"but {'does' if len(lost) == 1 else 'do'} not find far pairs.")
    head = ("stretch" if base else "encoding", f"loss at {survey.trained}",
            f"at {survey.longest}", f"minus `{best}`",
            *(f"far pairs at {length}" for length in survey.pair_lengths[-2:]))
    compared = candidates[:NAMED]
    if STRETCHED not in compared and survey.measured(STRETCHED if base else ""):
        compared.append(STRETCHED)
    rows = [[link(label), values(survey.loss(label, survey.trained)),
             values(survey.loss(label, survey.longest)), beside(survey, label, best),
             *(values(survey.share(label, "far", length), 2)
               for length in survey.pair_lengths[-2:])] for label in compared]
    return paragraph(*text) + "\n" + table(head, rows)


def answers(survey):
    return (paragraph(state(survey)) + "\n" + answer(survey, "") + "\n"
            + answer(survey, STRETCHED) + "\n" + image(survey, "answer") + "\n"
            + paragraph(terms(survey), *summary(survey)))
