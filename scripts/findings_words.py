"""Values, names and differences as docs/findings.md writes them."""
from findings_data import interval
from page_blocks import ROOT, shown

STRETCHED = "rope"
# The most methods that a sentence names, and that a table of candidates or a chart has.
NAMED = 5
PENDING = "not yet"


def values(found, decimals=3, sign=False):
    """The mean of values by seed, with its interval."""
    mean, half = interval(found.values())
    return PENDING if mean is None else shown([mean, half], decimals, sign)


def grouped(count):
    return f"{count:,}".replace(",", " ")


def link(label):
    page = f"methods/{label.split(':')[0]}.md"
    return f"[`{label}`]({page if (ROOT / 'docs' / page).exists() else 'methods/stretches.md'})"


def listed(labels, last="and"):
    names = [f"`{label}`" for label in labels]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {last} {names[-1]}"


def beside(survey, label, best):
    """The difference to the best at the longest length."""
    if label == best:
        return "first"
    mean, half = survey.behind(label, best)
    if mean is None:
        return ""
    text = shown([mean, half], sign=True)
    return text + ", not told apart" * (half is not None and abs(mean) <= half)
