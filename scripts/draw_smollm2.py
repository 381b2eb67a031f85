#!/usr/bin/env python3
"""Draws the table, charts and words of docs/extend-smollm2.md from docs/data/extend-smollm2.json.

    scripts/draw_smollm2.py           rewrites the marked blocks and docs/figures/smollm2/*.svg
    scripts/draw_smollm2.py --check   writes nothing, and fails if the page is stale

The data are the output of `sextant extend --json`; docs/extend-smollm2.md has the command.
"""
import json
import pathlib
import re
import sys

from figure_rows import paragraph, table

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE, DATA = ROOT / "docs/extend-smollm2.md", ROOT / "docs/data/extend-smollm2.json"
BLOCK = re.compile(r"(<!-- smollm2:(\w+) -->\n).*?(<!-- /smollm2 -->)", re.DOTALL)


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


BLOCKS = {"table": candidates, "answer": answer, "words": words}


def main(arguments):
    found = json.loads(DATA.read_text(encoding="utf-8"))
    before = PAGE.read_text(encoding="utf-8")
    after = BLOCK.sub(lambda block: block[1] + BLOCKS[block[2]](found) + block[3], before)
    if "--check" in arguments:
        if after != before:
            print(f"{PAGE.relative_to(ROOT)}: stale; run scripts/draw_smollm2.py", file=sys.stderr)
        return int(after != before)
    PAGE.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
