"""The arms of a survey's folder, reduced to the numbers of docs/findings.md, and their statistics.

The document of take() is {command, date, sextant, machines, planned, done, seeds, settings, text,
methods, claims, ...}. A method is {base, text: {seed: {sliding: {length: loss}, train_seconds,
test_seconds, weights}}, pairs: {seed: {far: {length: share}, near: {length: share}, ...}}}; `base`
is the label of the method whose weights it is tested with, or empty. A diverged training is
{"diverged": true}. The rules are those of sextant/lab/report: interval.cc, method_result.cc,
learned.cc and ranking.cc.
"""
import datetime
import json
import math
import pathlib
import sys

import survey_claims

# Student's t at 0.975 for 1, 2, ... degrees of freedom.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
HOLDS_BELOW, BREAKS_ABOVE, BELOW_NONE, RETRIEVES_FROM = 0.1, 0.25, 0.1, 0.5


def interval(values):
    """(mean, half of the 95 % interval); half is None for one value, and both for no value."""
    values = list(values)
    if not values:
        return None, None
    mean = sum(values) / len(values)
    if len(values) == 1:
        return mean, None
    squares = sum((value - mean) ** 2 for value in values)
    error = math.sqrt(squares / (len(values) - 1) / len(values))
    return mean, STUDENT[len(values) - 2] * error


# ---- from a survey's folder ----


def kept(result, settings):
    """The numbers of one arm that the page needs."""
    if result["diverged"]:
        return {"diverged": True}
    row = {"train_seconds": round(result["train_seconds"], 1),
           "test_seconds": round(result["test_seconds"], 1), "weights": result["weights"]}
    if result["lengths"]:
        row["sliding"] = {str(at["length"]): round(at["sliding"]["mean"], 5)
                          for at in result["lengths"]}
    if result["retrieval"]:
        by_length = {}
        for at in result["retrieval"]:
            by_length.setdefault(at["length"], {})[at["distance"]] = at["accuracy"]["mean"]
        trained = sorted(by_length[settings["retrieval"]["length"]])
        near = trained[-2] if len(trained) > 1 else trained[-1]
        row["far"] = {str(length): round(found[max(found)], 5)
                      for length, found in by_length.items()}
        row["near"] = {str(length): round(found[near], 5) for length, found in by_length.items()}
    return row


def read_arms(folder, settings):
    """(methods, machines, number of arms, of arms that are done) of the folder."""
    arms = {path.parent: json.loads(path.read_text(encoding="utf-8"))["arm"]
            for path in sorted(folder.glob("arms/*/arm.json"))}
    methods, machines, done = {}, set(), 0
    for path, arm in arms.items():
        base = arms[path.parent / arm["weights_from"]]["label"] if arm["weights_from"] else ""
        method = methods.setdefault(arm["label"], {"base": base, "text": {}, "pairs": {}})
        if not (path / "result.json").exists():
            continue
        result = json.loads((path / "result.json").read_text(encoding="utf-8"))
        method[arm["task"]][str(arm["seed"])] = kept(result, settings)
        machines.add(result["machine"])
        done += 1
    return methods, sorted(machines), len(arms), done


def checked_claims(results, known):
    subjects = {each["claim"]: each["subject"] for each in known}
    return [{"subject": subjects[each["claim"]], **each}
            for each in survey_claims.checked(results, known)]


def disagreements(document, results):
    """Means and verdicts of the command's results.json that the document does not lead to."""
    survey, found = Survey(document), []
    for row in results["summary"]:
        length, value = row["length"], None
        if row["measure"] == "sliding":
            value = interval(survey.loss(row["method"], length).values())
        elif row["measure"] == "retrieval" and row["distance"] == survey.far_distance(length):
            value = interval(survey.share(row["method"], "far", length).values())
        if value is None:
            continue
        theirs = (row["mean"], row.get("half_interval95"))
        if any(abs((a or 0) - (b or 0)) > 1e-4 for a, b in zip(value, theirs)):
            found.append(f"{row['method']} {row['measure']} at {length}: {value}, {theirs}")
    for row in results["verdicts"]:
        ours = survey.verdict(row["method"])
        if ours != row["verdict"]:
            found.append(f"{row['method']}: {ours}, and {row['verdict']} in results.json")
    return found


def take(folder, program):
    """The document of a finished or unfinished survey; claims only of a finished one."""
    folder = pathlib.Path(folder)
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    methods, machines, planned, done = read_arms(folder, manifest["settings"])
    newest = max(path.stat().st_mtime for path in folder.glob("arms/*/result.json"))
    known = [each for each in survey_claims.known(program) if each["task"] == "causal"]
    document = {"command": survey_claims.command_of(folder),
                "date": datetime.datetime.fromtimestamp(
                    newest, datetime.timezone.utc).date().isoformat(),
                "sextant": manifest["sextant"], "machines": machines, "planned": planned,
                "done": done, "seeds": len({path.name.rsplit("-", 1)[1]
                                            for path in folder.glob("arms/*")}),
                "settings": manifest["settings"], "text": manifest["text"], "methods": methods,
                "known_claims": len(known),
                "claims_of_arms": sum(all(arm in methods for arm in each["arms"])
                                      for each in known),
                "claims": []}
    path = folder / "results.json"
    if done == planned and not path.exists():
        sys.exit(f"{path}: expected the results of a finished survey; run its command again")
    if done == planned:
        results = json.loads(path.read_text(encoding="utf-8"))
        wrong = disagreements(document, results)
        if wrong:
            sys.exit(f"{path}: expected the numbers of the arms, but got\n" + "\n".join(wrong))
        document["claims"] = checked_claims(results, known)
    return document


def text_of(document):
    """JSON with a line for each method and claim."""
    lines = []
    for key, value in document.items():
        if key in ("methods", "claims") and value:
            pair = key == "methods"
            rows = [f"  {json.dumps(name)}: {json.dumps(value[name])}" if pair
                    else f"  {json.dumps(name)}" for name in value]
            opening, closing = "{}" if pair else "[]"
            lines.append(f" {json.dumps(key)}: {opening}\n" + ",\n".join(rows) + f"\n {closing}")
        else:
            lines.append(f" {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


# ---- statistics ----


def minus(ours, theirs):
    """The differences of two values by seed, of the seeds that both have."""
    return {seed: value - theirs[seed] for seed, value in ours.items() if seed in theirs}


class Survey:
    """The document, with values by seed and the rules of the survey's report; `larger` is the
    Survey of larger models, or None."""

    def __init__(self, document, larger=None):
        self.document, self.larger = document, larger
        settings = document["settings"]
        self.trained, self.lengths = settings["training"]["length"], settings["test"]["lengths"]
        self.longest = max(self.lengths)
        self.pair_trained = settings["retrieval"]["length"]
        self.pair_lengths = settings["retrieval"]["lengths"]
        self.methods = document["methods"]
        self.is_complete = document["done"] == document["planned"]

    def far_distance(self, length):
        return length - self.pair_trained // 8

    def rows(self, label, task):
        found = self.methods.get(label, {}).get(task, {})
        return {seed: row for seed, row in found.items() if "diverged" not in row}

    def loss(self, label, length):
        return {seed: row["sliding"][str(length)] for seed, row in self.rows(label, "text").items()}

    def change(self, label, length):
        """The loss minus that of the trained method at L, by seed."""
        base = self.methods[label]["base"] or label
        return minus(self.loss(label, length), self.loss(base, self.trained))

    def share(self, label, which, length):
        """The share of pairs found; which: "far" or "near"."""
        return {seed: row[which][str(length)] for seed, row in self.rows(label, "pairs").items()}

    def has_learned_text(self, label):
        label = self.methods[label]["base"] or label
        if label == "none":
            return False
        mean, half = interval(minus(self.loss(label, self.trained),
                                    self.loss("none", self.trained)).values())
        return mean is None or (mean <= -BELOW_NONE and mean + (half or 0) < 0)

    def has_learned_pairs(self, label):
        """None if it is not measured yet."""
        label = self.methods[label]["base"] or label
        mean, _ = interval(self.share(label, "near", self.pair_trained).values())
        return None if mean is None else mean >= RETRIEVES_FROM

    def verdict(self, label):
        """None if the method has no result yet."""
        mean, _ = interval(self.change(label, self.longest).values())
        if mean is None:
            return "diverged" if self.methods[label]["text"] else None
        if not self.has_learned_text(label):
            return "not learned"
        return ("breaks" if mean > BREAKS_ABOVE else "drifts" if mean > HOLDS_BELOW else "holds")

    def finds(self, label):
        """Whether half of the far pairs of the longest sequences are found; None: not measured."""
        mean, _ = interval(self.share(label, "far", max(self.pair_lengths)).values())
        return None if mean is None else mean >= RETRIEVES_FROM

    def measured(self, base):
        """The methods with this base and a loss, by loss at the longest length."""
        labels = [label for label, method in self.methods.items()
                  if method["base"] == base and self.loss(label, self.longest)]
        return sorted(labels, key=lambda label: interval(
            self.loss(label, self.longest).values())[0])

    def holding(self, base):
        """Of measured(base), those that hold their loss and have learned both tasks."""
        return [label for label in self.measured(base) if self.verdict(label) == "holds"
                and self.has_learned_pairs(label) is not False]

    def candidates(self, base):
        """Of holding(base), those that find far pairs or are not measured there yet; or else
        all that hold."""
        holding = self.holding(base)
        return [label for label in holding if self.finds(label) is not False] or holding

    def behind(self, label, best):
        """(mean, half) of the loss at the longest length minus that of `best`, paired by seed."""
        return interval(minus(self.loss(label, self.longest),
                              self.loss(best, self.longest)).values())

    def is_tied(self, label, best):
        """Not told apart from `best`: the interval of the difference reaches 0. False for one
        seed, which has no interval."""
        mean, half = self.behind(label, best)
        return half is not None and mean - half <= 0
