"""Runs golden cases and reports their results."""

import dataclasses
from pathlib import Path

import torch

import sextant
from sextant.conformance.case import Case, NotCovered, handler_of
from sextant.conformance.rounding import allowances


@dataclasses.dataclass
class Result:
    name: str
    status: str  # "pass", "FAIL" or "not covered"
    compared: str = ""
    errors: dict = dataclasses.field(default_factory=dict)  # dtype name -> worst relative error
    share: float = 0  # the largest float32 error as a fraction of its tolerance
    detail: str = ""


def own_cases():
    """The folder of the cases that the package has, or that of a source tree."""
    package = Path(__file__).resolve().parent
    for folder in (package / "data", package.parents[2] / "tests" / "golden" / "data"):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(
        f"conformance: expected golden cases in {package / 'data'}, but they are not there: name "
        "a folder that has some, such as tests/golden/data of a clone"
    )


def find_cases(paths):
    """The files of cases. Raises FileNotFoundError for a path that does not exist and for a folder
    without cases."""
    found = []
    for path in map(Path, paths):
        if not path.exists():
            raise FileNotFoundError(
                f"conformance: expected a folder, or a .safetensors or .npz file, but got {path}"
            )
        cases = [path]
        if path.is_dir():
            cases = sorted(one for one in path.iterdir() if one.suffix in (".npz", ".safetensors"))
        if not cases:
            raise FileNotFoundError(
                f"conformance: {path}: expected golden cases (*.safetensors or *.npz), but "
                "the folder has none"
            )
        found += cases
    return found


def run_case(path, library):
    probe = Case(path, library, torch.float64)
    handler = handler_of(probe.meta, probe.arrays)
    if handler is None:
        return Result(probe.name, "not covered", detail=probe.meta.get("method", ""))
    result = Result(probe.name, "pass")
    for dtype in (torch.float64, torch.float32):
        label = str(dtype).removeprefix("torch.")
        try:
            allowed = None if dtype == torch.float64 else allowances(path, sextant, handler)
            one = Case(path, library, dtype, allowed)
            handler(one)
        except (AttributeError, NotImplementedError) as error:
            if not _is_missing(error, library):
                raise
            return Result(probe.name, "not covered", detail=str(error))
        except (RuntimeError, ValueError) as error:
            result.status = "FAIL"
            result.detail = f"{label}: {str(error).splitlines()[0]}"
            continue
        if not one.comparisons:
            return Result(probe.name, "not covered", detail="the case compares nothing")
        result.errors[label] = max(c.error for c in one.comparisons)
        result.share = max(c.share for c in one.comparisons)
        result.compared = " ".join(dict.fromkeys(c.what for c in one.comparisons))
        failed = [c for c in one.comparisons if not c.passed]
        if failed:
            worst = max(failed, key=lambda c: c.error)
            result.status = "FAIL"
            result.detail = (
                f"{label} {worst.what}: {worst.error:.1e}, allowed {worst.tolerance:.1e}"
            )
    return result


def _is_missing(error, library):
    return isinstance(error, NotCovered) or getattr(error, "obj", None) is library


def run_paths(paths, library):
    return [run_case(path, library) for path in find_cases(paths)]


def table(results):
    """The results as a text table, one line per case."""
    width = max((len(r.name) for r in results), default=4)
    lines = [f"{'case':{width}}  {'result':11}  float64  float32  share  compared"]
    for r in results:
        errors = [
            f"{r.errors[t]:7.0e}" if t in r.errors else "      -" for t in ("float64", "float32")
        ]
        share = f"{r.share:5.2f}" if "float32" in r.errors else "    -"
        lines.append(f"{r.name:{width}}  {r.status:11}  {errors[0]}  {errors[1]}  {share}  "
                     f"{r.detail if r.status != 'pass' else r.compared}")
    return "\n".join(lines)
