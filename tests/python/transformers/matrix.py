"""Runs the cases of small models of transformers before and after ``sextant.transformers``, and
writes the table of docs/transformers.md.

    python matrix.py [--write table|summary] [--models llama,t5] [--cases plain,generate]

"table" is for the newest transformers, "summary" (a sentence) for an older one. A cell is "equal",
or the number of the sentence with which the model or the case is refused. A difference, or an error
that is no ModelError, is a failure.
"""

import argparse
import pathlib
import re
import sys
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python"))

import torch  # noqa: E402
import transformers  # noqa: E402

from cases import CASES, OwnFailure  # noqa: E402
from tiny import MODELS, build  # noqa: E402

import sextant.transformers as ours  # noqa: E402
from sextant.transformers import swap  # noqa: E402

PAGE = ROOT / "docs/transformers.md"
BEGIN, END = "<!-- models:{} -->", "<!-- /models -->"
TOLERANCE = 3e-5  # of the largest result


def outcome(name, function):
    """"equal", or "" where the case does not apply. Raises AssertionError for a difference."""
    found = function(name)
    if found is None:
        return ""
    difference, size = found
    if difference > TOLERANCE * max(size, 1):
        raise AssertionError(f"expected a difference below {TOLERANCE * max(size, 1):.1e}, but got "
                             f"{difference:.1e}")
    return "equal"


def run(names, titles):
    cells, sentences, failures = {}, [], []
    began, count = time.monotonic(), len(names) * len(titles)
    for at, name in enumerate(names):
        try:
            build(name)
        except Exception as error:
            failures.append(f"{name}: cannot be built: {error}")
            continue
        for number, title in enumerate(titles):
            function, kinds = CASES[title]
            cell = ""
            if MODELS[name][1] in kinds:
                try:
                    cell = outcome(name, function)
                except ours.ModelError as error:
                    text = re.sub(r"\s+", " ", str(error)).replace("|", "\\|")
                    if text not in sentences:
                        sentences.append(text)
                    cell = str(sentences.index(text) + 1)
                except OwnFailure:
                    cell = "-"
                except Exception as error:
                    failures.append(f"{name}, {title}: {type(error).__name__}: "
                                    f"{str(error).splitlines()[0] if str(error) else ''}")
                    cell = "FAILED"
            cells[name, title] = cell
        done = (at + 1) * len(titles)
        left = (time.monotonic() - began) / done * (count - done)
        print(f"{name:<30}{' '.join(cells[name, t] or '.' for t in titles)}   {left:.0f} s left",
              flush=True)
    return cells, sentences, failures


def wrapped(text, indent=""):
    return textwrap.fill(text, 100, subsequent_indent=indent, break_long_words=False,
                         break_on_hyphens=False)


def table(names, titles, cells, sentences):
    lines = [wrapped(f"transformers {transformers.__version__}, torch "
                     f"{torch.__version__.split('+')[0]}; differences below 3e-5 of the largest "
                     "result are equal. -: transformers itself fails."),
             "", "| model | " + " | ".join(titles) + " |", "| --- " * (len(titles) + 1) + "|"]
    for name in names:
        lines.append(f"| {name} | " + " | ".join(cells.get((name, t), "") for t in titles) + " |")
    lines += ["", *(wrapped(f"{n + 1}. {text}", "   ") for n, text in enumerate(sentences))]
    return "\n".join(lines)


def summary(names, titles, cells):
    """Sentences instead of a table."""
    kinds = {"equal": [], "refused": [], "transformers fails in a use": []}
    for name in names:
        row = {cells.get((name, title), "") for title in titles} - {""}
        kinds["equal" if row == {"equal"} else "transformers fails in a use"
              if row <= {"equal", "-"} else "refused"].append(name)
    found = [f"{kind}: {', '.join(models)}" for kind, models in kinds.items() if models]
    return wrapped(f"With transformers {transformers.__version__}, torch "
                   f"{torch.__version__.split('+')[0]}: {'; '.join(found)}.")


def kinds():
    """The attention that accelerate() replaces, by method."""
    found = {}
    for one in swap.all_replacements():
        if one.by is not None:
            found.setdefault(one.by, {}).setdefault(one.kind, set()).update(one.folders)
    lines = ["| method of Sextant | class of transformers (folders, where the names differ) |",
             "| --- | --- |"]
    for method, classes in sorted(found.items()):
        named = [f"{kind} ({', '.join(sorted(folders))})" for kind, folders in classes.items()]
        lines.append(f"| {method} | {'; '.join(sorted(named))} |")
    return "\n".join(lines)


def written(block, text):
    begin, page = BEGIN.format(block), PAGE.read_text(encoding="utf-8")
    page = re.sub(f"{begin}.*?{END}", lambda _: f"{begin}\n{text}\n{END}", page, flags=re.DOTALL)
    PAGE.write_text(page, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", choices=("table", "summary"), help="this block of the page")
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS))
    parser.add_argument("--cases", type=lambda text: text.split(","), default=list(CASES))
    options = parser.parse_args()
    cells, sentences, failures = run(options.models, options.cases)
    new = table(options.models, options.cases, cells, sentences)
    print(new)
    if options.write and not failures:
        if options.write == "summary":
            new = summary(options.models, options.cases, cells)
        written(options.write, new)
        written("kinds", kinds())
    for failure in failures:
        print(f"FAILED {failure}")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
