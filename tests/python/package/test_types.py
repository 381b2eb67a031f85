"""The stubs (.pyi) have the package's functions with their arguments, and mypy accepts them."""

import ast
import importlib.util
import inspect
import pathlib
import subprocess
import sys
import tempfile
import unittest

import sextant
from sextant._attention import attend

PACKAGE = pathlib.Path(sextant.__file__).parent

USE = """
import sextant
import torch

q = torch.randn(1, 2, 4, 8)
out: torch.Tensor = sextant.attention(q, q, q, method="alibi", mask=None, max_bias=4.0)
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
"""
WRONG = """
import sextant
encoding = sextant.method("t5", heads=2, head_dim=8)
encoding(1, 2, 3, need_weights=True)
"""


def arguments(function):
    """The names of the arguments of a definition in a stub."""
    a = function.args
    names = [x.arg for x in a.posonlyargs + a.args + a.kwonlyargs]
    return names + [x.arg for x in (a.vararg, a.kwarg) if x is not None]


def required(function):
    a = function.args
    named = a.posonlyargs + a.args
    names = [x.arg for x in named[: len(named) - len(a.defaults)]]
    return names + [x.arg for x, default in zip(a.kwonlyargs, a.kw_defaults) if default is None]


class Stubs(unittest.TestCase):
    def agree(self, stub, function):
        # A stub need not list **unknown, which collects arguments to refuse them.
        parameters = [p for p in inspect.signature(function).parameters.values()
                      if p.name != "unknown"]
        variable = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        self.assertEqual(arguments(stub), [p.name for p in parameters])
        if "return_lse" not in arguments(stub):  # required by the overload that returns a pair
            self.assertEqual(
                set(required(stub)),
                {p.name for p in parameters if p.default is p.empty and p.kind not in variable})

    def definitions(self, body, of, skipped=()):
        for node in body:
            if isinstance(node, ast.FunctionDef) and node.name not in skipped:
                attribute = inspect.getattr_static(of, node.name)
                if isinstance(attribute, property):
                    attribute = attribute.fget
                with self.subTest(node.name):
                    self.agree(node, attribute)
            elif isinstance(node, ast.ClassDef) and hasattr(of, node.name):  # not a TypedDict
                skipped = ("forward",) if node.name == "Method" else ()  # it has overloads
                self.definitions(node.body, getattr(of, node.name), skipped)

    def test_have_the_arguments_of_the_functions(self):
        for name, module in (("__init__", sextant), ("cache", importlib.import_module(
                "sextant.cache")), ("encoding", importlib.import_module("sextant.encoding")),
                             ("tables", sextant.tables)):
            tree = ast.parse((PACKAGE / f"{name}.pyi").read_text())
            for public in getattr(module, "__all__", ()):
                getattr(module, public)  # loads it
            self.definitions(tree.body, module, ("doctor", "load", "method"))
            defined = {n.name for n in ast.walk(tree)
                       if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
            public = {n for n, f in vars(module).items() if inspect.isfunction(f)
                      and f.__module__ == module.__name__ and not n.startswith("_")}
            self.assertLessEqual(public, defined)

    def test_a_module_is_called_with_the_arguments_of_attention(self):
        tree = ast.parse((PACKAGE / "__init__.pyi").read_text())
        listed = next(n for n in tree.body if getattr(n, "name", "") == "CallArguments")
        parameters = inspect.signature(attend).parameters.values()
        expected = [p.name for p in parameters if p.kind == p.KEYWORD_ONLY]
        named = [n.target.id for n in listed.body if isinstance(n, ast.AnnAssign)]
        self.assertEqual(named, [name for name in expected if name != "return_lse"])

    def test_method_has_the_arguments_of_its_class(self):
        tree = ast.parse((PACKAGE / "__init__.pyi").read_text())
        method = next(n for n in tree.body if getattr(n, "name", "") == "method")
        expected = list(inspect.signature(sextant.Method).parameters)
        self.assertEqual(arguments(method), expected)

    def test_all_names_are_there(self):
        tree = ast.parse((PACKAGE / "__init__.pyi").read_text())
        listed = next(n.value for n in tree.body if isinstance(n, ast.Assign)
                      and n.targets[0].id == "__all__")
        self.assertEqual(ast.literal_eval(listed), sextant.__all__)
        self.assertTrue((PACKAGE / "py.typed").is_file())

    @unittest.skipUnless(importlib.util.find_spec("mypy"), "there is no mypy")
    def test_mypy_accepts_them(self):
        for source, status in ((USE, 0), (WRONG, 1)):
            with self.subTest(source), tempfile.TemporaryDirectory() as folder:
                (pathlib.Path(folder) / "use.py").write_text(source)
                done = subprocess.run(
                    [sys.executable, "-m", "mypy", "--strict", "--cache-dir", f"{folder}/cache",
                     "use.py"],
                    cwd=folder, env={"MYPYPATH": str(PACKAGE.parent), "PATH": "/usr/bin:/bin",
                                     "PYTHONPATH": ":".join(sys.path)},
                    capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, status, done.stdout + done.stderr)
                if status:
                    self.assertIn("need_weights", done.stdout)


if __name__ == "__main__":
    unittest.main()
