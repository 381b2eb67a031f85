"""The hooks for continuous integration, .pre-commit-hooks.yaml and action.yml, as far as they run
without a network: their command lines judge the configurations of a small repository of git. The
blocks of docs/doctor.md that use the hooks run on it, too.

    tests/cli/hooks_test.py COMMAND     COMMAND: the program sextant
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMMAND = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else ""
LLAMA = {"model_type": "llama", "hidden_size": 1024, "num_attention_heads": 8,
         "num_hidden_layers": 4, "max_position_embeddings": 4096, "rope_theta": 10000.0}
DOUBTFUL = {**LLAMA, "max_position_embeddings": 32768, "rope_scaling": {
    "rope_type": "linear", "factor": 4.0, "original_max_position_embeddings": 8192}}
SAID_SOUND = "models/sound/config.json: sound (model: not measured)\n"
WRONG = {**LLAMA, "rope_scaling": {"rope_type": "yarrn", "factor": 4.0}}


def read_yaml(path):
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


def page_blocks():
    """The blocks of YAML in the page's section on the hooks, by the file that their first line
    names."""
    page = (ROOT / "docs/doctor.md").read_text(encoding="utf-8")
    section = page.split("\n## In continuous integration\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```yaml\n# (\S+)\n(.*?)```", section, re.DOTALL)
    return {name: yaml.safe_load(text) for name, text in blocks}


@unittest.skipUnless(shutil.which("git"), "there is no git")
class Hooks(unittest.TestCase):
    """A repository of configurations, in which each test adds its files."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.repository = self.home / "repository"
        programs = self.home / "programs"
        programs.mkdir()
        (programs / "sextant").symlink_to(COMMAND)
        installs = programs / "python3"  # records its arguments in place of an installation
        installs.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >>"$INSTALLED"\n', encoding="utf-8")
        installs.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}",
                            "INSTALLED": str(self.home / "installed"), "SEXTANT_PYTHON": "/no"}
        subprocess.run(["git", "init", "--quiet", self.repository], check=True)
        self.add("models/sound/config.json", LLAMA)
        self.add("models/sound/tokenizer_config.json", {"a": 1})

    def add(self, path, config):
        file = self.repository / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(config, indent=1), encoding="utf-8")
        subprocess.run(["git", "-C", self.repository, "add", path], check=True)

    def run_line(self, line, **variables):
        return subprocess.run(line, cwd=self.repository, env={**self.environment, **variables},
                              capture_output=True, text=True, check=False)

    def run_action(self, **given):
        """The steps of action.yml as GitHub runs them. Returns the last one's status and the
        output of all."""
        action = read_yaml("action.yml")
        inputs = {name: entry["default"] for name, entry in action["inputs"].items()}
        self.assertLessEqual(set(given), set(inputs))
        inputs.update(given)
        said, status = "", 0
        for step in action["runs"]["steps"]:
            condition = re.fullmatch(r"inputs\.(\w+) != ''", step.get("if", ""))
            if condition and not inputs[condition[1]]:
                continue
            self.assertEqual(step["shell"], "bash")
            self.assertNotIn("${{", step["run"])  # an input is no text of a script
            script = self.home / "step.sh"
            script.write_text(step["run"], encoding="utf-8")
            variables = {name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: inputs[m[1]], value)
                         for name, value in step["env"].items()}
            done = self.run_line(["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
                                 **variables)
            said, status = said + done.stdout + done.stderr, done.returncode
            if status:
                break
        return status, said

    def run_hook(self, hook, arguments=(), files=None):
        """As pre-commit runs a hook: all files of git that match its pattern, in one call."""
        names = subprocess.run(["git", "ls-files"], cwd=self.repository, capture_output=True,
                               text=True, check=True).stdout.split()
        matching = [n for n in names if re.search(files or hook["files"], n)]
        return self.run_line([*shlex.split(hook["entry"]), *arguments, *matching])

    def hook(self):
        (hook,) = read_yaml(".pre-commit-hooks.yaml")
        return hook

    def test_the_hook_judges_all_files_of_a_change(self):
        hook = self.hook()
        self.assertLessEqual({"id", "name", "entry", "language"}, set(hook))
        self.assertEqual(self.run_hook(hook).stdout, SAID_SOUND)
        self.add("models/doubtful/config.json", DOUBTFUL)
        self.assertEqual(self.run_hook(hook).returncode, 0)
        self.assertEqual(self.run_hook(hook, ["--strict"]).returncode, 1)
        self.add("models/wrong/config.json", WRONG)
        done = self.run_hook(hook)
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertIn('got "yarrn"', " ".join(done.stdout.split()))
        self.assertIn(SAID_SOUND, done.stdout)

    def test_the_action_annotates_a_change(self):
        status, said = self.run_action()
        self.assertEqual((status, "errors 0" in said, "::" in said), (0, True, False), said)
        self.add("models/a wrong, one/config.json", WRONG)
        self.add("models/doubtful/config.json", DOUBTFUL)
        status, said = self.run_action()
        self.assertEqual(status, 1, said)
        line = json.dumps(WRONG, indent=1).splitlines().index('  "rope_type": "yarrn",') + 1
        self.assertIn(f"::error file=models/a wrong%2C one/config.json,line={line},title=", said)
        self.assertIn("::warning file=models/doubtful/config.json,line=", said)
        self.assertIn("reports 3, errors 1, warnings 1, not judged 0", said)

    def test_the_action_is_strict_if_asked_to(self):
        self.add("models/doubtful/config.json", DOUBTFUL)
        self.assertEqual(self.run_action()[0], 0)
        self.assertEqual(self.run_action(strict="true")[0], 1)

    def test_the_action_writes_sarif(self):
        self.add("models/wrong/config.json", WRONG)
        status, said = self.run_action(sarif="doctor.sarif")
        self.assertEqual(status, 1, said)
        text = (self.repository / "doctor.sarif").read_text(encoding="utf-8")
        (result,) = json.loads(text)["runs"][0]["results"]
        place = result["locations"][0]["physicalLocation"]["artifactLocation"]
        self.assertEqual(place["uri"], "models/wrong/config.json")

    def test_the_action_takes_patterns_and_refuses_those_that_match_nothing(self):
        self.add("launch/serve.txt", LLAMA)
        self.add("other/config.json", WRONG)
        status, said = self.run_action(files="models/*/config.json\n\nlaunch\n")
        self.assertEqual((status, "reports 2," in said), (0, True), said)
        for nothing in ("none/*.json", "", "$(touch injected)", "`touch injected`",
                        "; touch injected"):
            status, said = self.run_action(files=nothing)
            self.assertEqual((status, "::error title=" in said), (2, True), said)
        self.assertFalse((self.repository / "injected").exists())

    def test_the_action_installs_the_wheel(self):
        self.assertEqual(self.run_action(wheel="a b.whl")[0], 0)
        words = (self.home / "installed").read_text(encoding="utf-8").splitlines()
        self.assertEqual(words, ["-m", "pip", "install", "--quiet", "--", "a b.whl"])

    def test_the_pages_hook_runs(self):
        (repo,) = page_blocks()[".pre-commit-config.yaml"]["repos"]
        (entry,) = repo["hooks"]
        self.assertEqual(entry.pop("id"), self.hook()["id"])
        self.assertLessEqual({"repo", "rev"}, set(repo))
        self.assertLessEqual(set(entry), {"args", "files"})
        self.add("models/doubtful/config.json", DOUBTFUL)
        done = self.run_hook(self.hook(), entry["args"], entry["files"])
        self.assertEqual((done.returncode, done.stdout.count(": sound (")), (1, 1), done.stderr)

    def test_the_pages_workflow_runs(self):
        workflow = page_blocks()[".github/workflows/positions.yml"]
        (job,) = workflow["jobs"].values()
        (step,) = [s for s in job["steps"] if "sextant" in s["uses"]]
        self.add("models/wrong/config.json", WRONG)
        status, said = self.run_action(**{k: str(v).lower() for k, v in step["with"].items()})
        self.assertEqual((status, "::error file=models/wrong/config.json" in said), (1, True), said)
        uploaded = [s["with"]["sarif_file"] for s in job["steps"] if "upload-sarif" in s["uses"]]
        self.assertEqual(uploaded, [step["with"]["sarif"]])


if __name__ == "__main__":
    unittest.main()
