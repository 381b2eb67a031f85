#!/usr/bin/env python3
"""Draws the tables and settings of docs/extend-smollm2.md from docs/data/*-smollm2.json.

    scripts/draw_smollm2.py           rewrites the marked blocks
    scripts/draw_smollm2.py --check   writes nothing, and fails if the page is stale

The data are the output of `sextant extend --json` and `sextant retrieve --json`; the page has the
commands, which also make its chart and docs/retrieve-smollm2.html.
"""
import json
import re
import sys

import page_blocks
from page_blocks import ROOT, paragraph, table

PAGE, DATA = ROOT / "docs/extend-smollm2.md", ROOT / "docs/data"


def minus(text):
    """The text with the sign of numbers instead of a hyphen before them."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", text)


def signed(mean):
    return minus(f"{mean['mean']:+.3f} ± {mean['standard_error']:.3f}")


def candidates(found):
    near, far = (str(at["length"]) for at in found["candidates"][0]["lengths"])
    rows = [[each["name"], *(f"{at['sliding']['mean']:.3f}" for at in each["lengths"]),
             signed(each["behind"]), signed(each["lengths"][0]["sliding_change"]),
             "yes" if each["hugging_face"] else "no"] for each in found["candidates"]]
    bytes_per_token = found["bytes_per_token"]
    minutes = sum(each["seconds"] for each in found["candidates"]) / 60
    return (table(["candidate", near, far, "behind the best", f"change at {near}", "config.json"],
                  rows) + "\n" +
            paragraph(f"Nats per token on the last {found['stride']} tokens of {found['blocks']} "
                      f"blocks, ± standard errors of paired differences; a token has "
                      f"{bytes_per_token:.2f} bytes. The forward passes took {minutes:.0f} minutes "
                      "on two cores."))


def answer(found):
    reason = found["reason"].strip()
    return paragraph(minus(f"`{found['recommended']}`{reason.removeprefix(found['recommended'])}."))


def words(found):
    said = found["words"]
    parameters = json.loads(said["hugging_face"]["words"])
    shown = {key: parameters[key] for key in ("max_position_embeddings", "rope_parameters")}
    lines = [f"transformers, `{said['hugging_face']['candidate']}`, in `config.json`:", "",
             "```json", json.dumps(shown, indent=2), "```"]
    for name, engine in (("vllm", "vLLM"), ("llama_cpp", "llama.cpp")):
        options = re.sub(r" (?=--?[a-z])", " \\\\\n  ", said[name]["words"].strip())
        lines += ["", f"{engine}, `{said[name]['candidate']}`:", "", "```", options, "```"]
    return "\n".join(lines) + "\n"


def interval(at):
    return f"{at['mean']:.2f} ({at['low']:.2f} to {at['high']:.2f})"


def retrieval(found):
    asked = found["settings"]["retrieval"]
    rows = [[f"`{each['task']}`", *map(interval, each["lengths"])] for each in found["tasks"]]
    rows.append(["mean", *map(interval, found["mean_of_tasks"])])
    low, high = found["effective_length_low"], found["effective_length_high"]
    if low == high:
        effective = f"is {low} tokens" if low else f"is below {asked['lengths'][0]} tokens"
    else:
        effective = (f"lies between {low or 'less than ' + str(asked['lengths'][0])} and {high} "
                     "tokens: the intervals do not decide it")
    return (table(["task", *(f"{length} tokens" for length in asked["lengths"])], rows) + "\n" +
            paragraph(f"Scores from 0 to 1, with 95 % intervals, of {asked['samples']} prompts per "
                      "task and length. The effective length, up to which the mean is at least "
                      f"{found['threshold']:.1%}, {effective}."))


BLOCKS = {"table": ("extend", candidates), "answer": ("extend", answer), "words": ("extend", words),
          "retrieval": ("retrieve", retrieval)}


def block(name):
    if name not in BLOCKS:
        sys.exit(f"block {name}: expected one of {' '.join(BLOCKS)}")
    command, draw = BLOCKS[name]
    return draw(json.loads((DATA / f"{command}-smollm2.json").read_text(encoding="utf-8")))


def main(arguments):
    page = page_blocks.filled(PAGE.read_text(encoding="utf-8"), "smollm2", block)
    return page_blocks.write({PAGE: page}, "--check" in arguments, "draw_smollm2.py")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
