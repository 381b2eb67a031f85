"""The package has types, which mypy accepts, and help() shows the keywords of a call."""

import dataclasses
import importlib.metadata
import inspect
import pathlib
import subprocess
import sys
import tempfile
import unittest

import sextant
from sextant._call import Call, CallArguments

PACKAGE = pathlib.Path(sextant.__file__).parent
# Modules of which each function has types. A folder has them in its public functions.
TYPED = sorted(path for path in PACKAGE.glob("*.py") if path.name != "own_arm.py")
INSIDE = sorted(PACKAGE.glob("*/*.py"))  # checked, though not all of it has types

USE = """
import sextant
import torch

q = torch.randn(1, 2, 4, 8)
out: torch.Tensor = sextant.attention(q, q, q, method="alibi", mask=None,
                                      options={"max_bias": 4.0})
pair: tuple[torch.Tensor, torch.Tensor] = sextant.attention(q, q, q, return_lse=True, window=3)
encoding = sextant.method("t5", heads=2, head_dim=8)
result: torch.Tensor = encoding(q, q, q, packed_queries=torch.tensor([0, 4]), packed_keys=[0, 4])
torch.optim.AdamW(encoding.parameter_groups(1e-3))
cache = sextant.Cache(dtype=torch.bfloat16)
rows: int = cache.rows(cache.add())
slopes: torch.Tensor = sextant.tables.alibi_slopes(8)
report = sextant.doctor(object()).verdict
version: str = sextant.__version__


class Mine(sextant.Encoding):
    def bias(self, distances: torch.Tensor) -> torch.Tensor:
        return -distances.abs().sqrt()[None]


mine: torch.Tensor = Mine(heads=2)(q, q, q, causal=False)
dropped: torch.Tensor = encoding(q, q, q, dropout_p=0.1, softcap=30.0)
both: tuple[torch.Tensor, torch.Tensor] = encoding(q, q, q, return_lse=True)
lse: torch.Tensor = Mine(heads=2)(q, q, q, return_lse=True, window=3, dropout_p=0.1)[1]
arguments: sextant.CallArguments = {"softcap": 30.0}
encoding(q, q, q, **arguments)
try:
    sextant.ring_attention(q, q, q, "rope", options={"base": 500.0}, shards="contiguous")
except sextant.Error:
    pass
"""
WRONG = """
import sextant
encoding = sextant.method("t5", heads=2, head_dim=8)
encoding(1, 2, 3, need_weights=True)
sextant.attention(1, 2, 3, attn_mask=None)
"""


def has_mypy():
    """Whether there is a mypy that reads keywords typed by a dict (1.7, PEP 692)."""
    try:
        version = importlib.metadata.version("mypy").split(".")
    except importlib.metadata.PackageNotFoundError:
        return False
    return (int(version[0]), int(version[1])) >= (1, 7)


class Types(unittest.TestCase):
    def test_the_record_and_its_types_are_one_list(self):
        fields = {f.name: f.type for f in dataclasses.fields(Call) if f.name != "return_lse"}
        types = {name: kind.__forward_arg__ for name, kind in CallArguments.__annotations__.items()}
        self.assertEqual(list(fields), list(types))
        for name in set(fields) - {"packed_queries", "packed_keys"}:  # in many forms at first
            self.assertEqual(fields[name], types[name])

    def test_help_shows_the_keywords(self):
        names = [field.name for field in dataclasses.fields(Call)]
        for function, own in ((sextant.attention, ["q", "k", "v", "method", "parameters", "layers",
                                                   "width", "train_length", "options"]),
                              (sextant.Method.forward, ["self", "q", "k", "v"]),
                              (sextant.Encoding.forward, ["self", "q", "k", "v"])):
            self.assertEqual(list(inspect.signature(function).parameters), own + names)

    def test_all_names_are_there(self):
        for name in sextant.__all__:
            self.assertTrue(hasattr(sextant, name), name)
        self.assertTrue((PACKAGE / "py.typed").is_file())

    def mypy(self, folder, *files):
        return subprocess.run(
            [sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir",
             f"{folder}/cache", *map(str, files)],
            cwd=folder, env={"MYPYPATH": str(PACKAGE.parent), "PATH": "/usr/bin:/bin",
                             "PYTHONPATH": ":".join(sys.path)},
            capture_output=True, text=True, check=False)

    @unittest.skipUnless(has_mypy(), "there is no mypy 1.7 or later")
    def test_mypy_accepts_the_package_and_its_use(self):
        with tempfile.TemporaryDirectory() as folder:
            for source, status in ((USE, 0), (WRONG, 1)):
                path = pathlib.Path(folder) / "use.py"
                path.write_text(source)
                done = self.mypy(folder, "--strict", path)
                self.assertEqual(done.returncode, status, done.stdout + done.stderr)
            self.assertIn("need_weights", done.stdout)
            self.assertIn("attn_mask", done.stdout)
            for options in (["--strict", *TYPED], ["--ignore-missing-imports", *INSIDE]):
                done = self.mypy(folder, *options)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
