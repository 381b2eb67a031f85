"""The command and the claims of a survey's folder, as the pages of docs have them."""
import json
import re
import subprocess
import sys

from page_blocks import shown

# Measures that are shares from 0 to 1; the others are losses in nats per byte.
SHARES = ("attention", "attention_past", "direction", "far", "products")


def command_of(folder):
    """The command in the footer of the report, without the folder."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    found = re.search(r"<footer><p>sextant [\d.]+: \S+ (.*?)</p>", page, re.DOTALL)
    if not found:
        sys.exit(f"{folder / 'report.html'}: expected a footer with the command")
    return "sextant " + re.sub(r" --out \S+", "", found[1].strip())


def known(program):
    """The claims that this sextant lists."""
    return json.loads(subprocess.run([program, "claims", "--json"], check=True,
                                     capture_output=True, text=True).stdout)


def rounded(value):
    return None if value is None else round(value, 4)


def checked(results, claims):
    """The outcomes of results.json, with the question and the source of each claim."""
    named = {each["claim"]: each for each in claims}
    return [{"question": named[each["claim"]]["question"], "claim": each["claim"],
             "source": named[each["claim"]]["source"], "arms": each["arms"],
             "measure": each["measure"], "side": each["side"], "bound": each["bound"],
             "outcome": each["outcome"], "mean": rounded(each["mean"]),
             "half": rounded(each["half_interval95"]), "over": each["over"]}
            for each in results["claims"]]


def cells(each):
    """The columns "here", "measured", "arms" and "claimed"."""
    decimals = 2 if each["measure"] in SHARES else 3
    return (f"**{each['outcome']}**",
            shown([each["mean"], each["half"]], decimals, sign=len(each["arms"]) == 2),
            " minus ".join(f"`{arm}`" for arm in each["arms"]), f"{each['side']} {each['bound']:g}")
