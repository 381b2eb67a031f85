"""Checks every command of docs/literature.md and learn.md: literature_commands_test.py PROGRAM

Surveys are planned (--smoke --dry-run), those that differ in their methods only in one; plots go to
a temporary folder; `methods` must list the methods, and of the Python commands the arguments are
checked: literature_checks_test and conditions_are_fresh run the scripts.
"""
import ast
import concurrent.futures
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests/literature"), str(ROOT / "scripts")]

import draw_literature  # noqa: E402
import lesson_pages  # noqa: E402

METHODS = ROOT / "docs/methods"  # enough text to plan with


def all_commands():
    """The commands of the page and of the lesson, without repetitions."""
    entries = draw_literature.items() + draw_literature.misprints()
    commands = [each for entry in entries for each in entry["commands"]]
    for step in lesson_pages.steps():
        commands += step["commands"]
    return list(dict.fromkeys(commands))


def names_of_checks():
    names = set()
    for path in (ROOT / "tests/literature").glob("*.py"):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.FunctionDef) and any(
                    isinstance(each, ast.Name) and each.id == "check"
                    for each in node.decorator_list):
                names.add(node.name.replace("_", "-"))
    return names


def python_complaint(words):
    """Says why a Python command of the page is none, or returns None."""
    script, arguments = words[1], words[2:]
    if script == "tests/literature/word_frequencies.py":  # run behind its training, below
        return None if len(arguments) == 1 else "expected a model"
    if script == "tests/literature/draw_conditions.py":
        return None if arguments == ["--check"] else "expected --check"
    if script != "tests/literature/check_literature.py":
        return "expected check_literature.py or draw_conditions.py of tests/literature"
    unknown = set(arguments) - names_of_checks()
    return f"no such check: {', '.join(unknown)}" if unknown or not arguments else None


def smoke_form(program, words, folder):
    extra = []
    if words[1] == "survey" and "--list" not in words:
        extra = ["--smoke", "--dry-run", "--text", str(METHODS), "--out", folder]
    elif words[1] == "plot":
        extra = ["--as", "svg", "--out", folder]
    return [program, *words[1:], *extra]


def training_complaint(program, words):
    """Trains the model of a configuration on a few bytes, and lists its words' frequencies."""
    with tempfile.TemporaryDirectory() as folder:
        settings = json.loads((ROOT / words[2]).read_text("utf-8"))
        settings["training"]["bytes"], settings["test"] = 16384, {"blocks": 4}
        path = pathlib.Path(folder) / "settings.json"
        path.write_text(json.dumps(settings), "utf-8")
        for command in ([program, "train", str(path), "--text", str(METHODS), "--out", folder],
                        [sys.executable, "tests/literature/word_frequencies.py", folder]):
            ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            if ended.returncode != 0:
                return ended.stderr.strip() or f"{command[1]}: exit {ended.returncode}"
    return None


def without_methods(words):
    """The words of a survey without --methods, and the methods."""
    if words[:2] != ["sextant", "survey"] or "--methods" not in words:
        return tuple(words), []
    at = words.index("--methods")
    return tuple(words[:at] + words[at + 2:]), words[at + 1].split(",")


def together(commands):
    """The commands, with surveys that differ in their methods only as one."""
    methods = {}
    for command in commands:
        words, named = without_methods(shlex.split(command))
        methods.setdefault((words, bool(named)), {}).update(dict.fromkeys(named))
    return [shlex.join([*words, *(["--methods", ",".join(named)] if named else [])])
            for (words, _), named in methods.items()]


def known_methods(program):
    said = subprocess.run([program, "methods", "--json"], check=True, capture_output=True,
                          text=True)
    return {each["name"] for each in json.loads(said.stdout)}


def complaint(program, known, command):
    words = shlex.split(command)
    if words[:2] == ["sextant", "methods"]:
        return f"no such method: {words[2:]}" if set(words[2:]) - known else None
    if words[:2] == ["sextant", "train"]:
        return training_complaint(program, words)
    if words[0] == "python3":
        return python_complaint(words)
    if words[0] != "sextant":
        return "expected a command of sextant or python3"
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(smoke_form(program, words, folder), cwd=ROOT, capture_output=True,
                               text=True)
    return None if ended.returncode == 0 else ended.stderr.strip() or f"exit {ended.returncode}"


def lesson_complaint(program):
    """Says how the pictures of `plot lesson` differ from those of the page, or returns None."""
    expected = [f"lesson-{n:02}-{name}.svg" for n, step in enumerate(lesson_pages.steps(), 1)
                for picture in step["pictures"] for name in [picture["name"]]]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "plot", "lesson", "--as", "svg", "--out", folder], check=True,
                       capture_output=True)
        drawn = {path.name: path.read_bytes() for path in pathlib.Path(folder).glob("*.svg")}
    if sorted(drawn) != sorted(expected):
        return f"plot lesson: expected {expected}, but got {sorted(drawn)}"
    stale = [name for name, text in drawn.items()
             if (ROOT / "docs/images/methods" / name[len("lesson-00-"):]).read_bytes() != text]
    return f"plot lesson: not those of docs/images/methods: {stale}" if stale else None


def main(program):
    commands = all_commands()
    known = known_methods(program)
    alone = together(commands)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        found = zip(alone, pool.map(lambda each: complaint(program, known, each), alone))
        failed = [f"{command}: {said}" for command, said in found if said]
    failed += filter(None, [lesson_complaint(program)])
    print(f"{len(commands)} commands, {len(failed)} failed", *failed, sep="\n")
    return 1 if failed or not commands else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
