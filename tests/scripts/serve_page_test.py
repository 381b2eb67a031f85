"""Checks every block of docs/serve.md by `sextant explain`: serve_page_test.py PROGRAM

A block follows a comment `<!-- explain MODEL OPTIONS -->`. JSON is merged into the configuration of
a released model (tests/rope_config/released); other blocks are command lines and compose files.
"""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs/serve.md").read_text(encoding="utf-8")
# The released model of each name, its row of the table, and its stretch where the text has another.
MODELS = {
    "qwen": ("qwen3.5-27b", "Qwen3.5, 3.6, 3.8", None),
    "qwen3": ("qwen3-235b-a22b", "Qwen3", None),
    "llama": ("meta-llama-3.1-405b", "Llama 3.1", None),
    "llama-gguf": (None, "Llama 3.1", "YaRN x 2"),
    "gpt-oss": ("gpt-oss-120b", "gpt-oss", None),
    "gpt-oss-cut": (None, "gpt-oss", None),
    "gemma": ("gemma-3-27b-it", "Gemma 3", None),
}


def merged(config, changes):
    both = {**config, **changes}
    for key in config.keys() & changes.keys():
        if isinstance(config[key], dict) and isinstance(changes[key], dict):
            both[key] = merged(config[key], changes[key])
    return both


def explained(program, text, options):
    """The layers that are stretched most."""
    run = subprocess.run([program, "explain", "-", "--json", *options], input=text, text=True,
                         capture_output=True, timeout=60, check=False)
    if run.returncode != 0:
        raise ValueError(run.stderr)
    return max(json.loads(run.stdout)["configs"], key=lambda group: group["factor"])


def frequencies(group):
    return [pair["stretched"] for pair in group["pairs"]]


def complaints(program, blocks, rows):
    seen = {}
    for model, options, kind, text in blocks:
        released, row, stretch = MODELS[model]
        length, said = rows[row]
        if kind == "json" or "vllm" in text:
            if f'"max_position_embeddings": {length},' not in text:
                yield f"{model}, {kind}: expected max_position_embeddings {length}"
        if kind == "json":
            options += f" --length {length}"
            path = ROOT / f"tests/rope_config/released/{released}.json"
            config = json.loads(path.read_text(encoding="utf-8"))["config"]
            text = json.dumps(merged(config, json.loads(text)))
        group = explained(program, text, options.split())
        got = f"{group['method']} x {group['factor']:g}"
        if (got, group["target_length"]) != (stretch or said, int(length)):
            yield f"{model}, {kind}: expected {stretch or said} to {length}, but got {got} to " \
                  f"{group['target_length']}"
        first = seen.setdefault(model, group)
        same = len(first["pairs"]) == len(group["pairs"]) and all(
            abs(a - b) <= 1e-9 * a for a, b in zip(frequencies(first), frequencies(group)))
        if not same or abs(first["attention_factor"] - group["attention_factor"]) > 1e-9:
            yield f"{model}, {kind}: expected the frequencies and the gain of its first block"
        for warning in group["warnings"]:
            if re.search("helps nothing|more than factor|divides|is missing", warning):
                yield f"{model}, {kind}: {warning}"
    if set(seen) != set(MODELS):
        yield f"expected blocks of {set(MODELS)}, but got {set(seen)}"


def main():
    blocks = re.findall(r"<!-- explain ([\w-]+) ?(.*?) ?-->\n```(\w+)\n(.*?)```\n", PAGE, re.DOTALL)
    fences = len(re.findall(r"^```\w+$", PAGE, re.MULTILINE))
    rows = {cells[0]: (cells[2], cells[3]) for cells in
            (line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| "))
            if len(cells) == 4}
    found = list(complaints(sys.argv[1], blocks, rows))
    if len(blocks) != fences:
        found.append(f"expected {fences} blocks behind a comment, but got {len(blocks)}")
    print("\n".join(found) or f"{len(blocks)} blocks")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
