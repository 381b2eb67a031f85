"""The sentences of docs/findings.md on the survey itself: its size, its limits, its command."""
from findings_words import grouped
from page_blocks import paragraph


def hours(survey):
    """The time of all arms that are done."""
    rows = [row for label in survey.methods for task in ("text", "pairs")
            for row in survey.rows(label, task).values()]
    return sum(row["train_seconds"] + row["test_seconds"] for row in rows) / 3600


def sizes(survey):
    document, settings = survey.document, survey.document["settings"]
    rows = {task: [row for label, method in survey.methods.items() if not method["base"]
                   for row in survey.rows(label, task).values()] for task in ("text", "pairs")}
    model, pairs = settings["model"], settings["retrieval"]

    def parameters(task):
        counts = [row["weights"] for row in rows[task]]
        return " to ".join(dict.fromkeys((grouped(min(counts)), grouped(max(counts)))))

    text = [
        f"`{document['command']}` with Sextant {document['sextant']}; the newest arm is of "
        f"{document['date']}.",
        f"{'; '.join(document['machines'])}; {settings['threads']} "
        f"thread{'s' * (settings['threads'] > 1)} per arm. The arms that are done took "
        f"{hours(survey):.1f} hours of one thread.",
        f"Text: {model['layers']} layers of width {model['width']} with {model['heads']} heads, "
        f"{parameters('text')} parameters, {grouped(settings['training']['bytes'])} bytes of "
        f"training in sequences of {survey.trained}; the test scores "
        f"{settings['test']['blocks']} blocks."]
    if rows["pairs"]:
        text.append(f"Retrieval: {pairs['layers']} layers of width {pairs['width']}, "
                    f"{parameters('pairs')} parameters, {pairs['steps']} steps of "
                    f"{pairs['batch']} sequences of {survey.pair_trained}; the test asks "
                    f"{pairs['texts']} sequences at each length and distance.")
    return "".join(paragraph("* " + line) for line in text)


def second_scale(survey):
    if survey.larger is None:
        return "Every method is tested at one scale only. A second scale is not run yet."
    return (f"{len(survey.larger.methods)} of {len(survey.methods)} methods are tested at a second "
            "scale, with the same amount of training; two scales show no trend.")


def limits(survey):
    settings = survey.document["settings"]
    model, lengths = settings["model"], f"{survey.trained} and {survey.longest}"
    return paragraph(
        f"* Models of {model['layers']} layers of width {model['width']} that read bytes are "
        "small. A larger model may rank the methods differently, and where a claim of the "
        "literature is about such a model, an outcome here does not refute it.") + paragraph(
        f"* A model this small gains nothing from text beyond a few words of context: the loss "
        f"shows where a method breaks between {lengths} bytes, and only retrieval shows long-range "
        "use.") + paragraph(
        "* Each method has the defaults of its page and the same schedule of training. None is "
        "tuned, and a method that learns slowly counts as worse, or as not learned.") + paragraph(
        f"* There are {survey.document['seeds']} seeds. Their interval is wide where trainings "
        "differ, and a method that is not told apart from another one is not thereby equal.") + (
        paragraph("* " + second_scale(survey)))


def command(survey):
    return (f"```\n{survey.document['command']} --out runs/findings\n"
            "scripts/draw_findings.py --take runs/findings && scripts/draw_findings.py\n```\n")
