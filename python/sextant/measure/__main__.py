"""``python -m sextant.measure [--progress-fd N] FOLDER...``: runs prepared arms, several of one
model at once."""

from __future__ import annotations

import argparse
import importlib
import sys
import traceback

from sextant._printable import print_error, printable_lines
from sextant.measure.arm import CANNOT_WRITE_STATUS, NO_PROGRESS_FILE, STOPPED_STATUS, Arm, Progress
from sextant.measure.errors import CannotWrite, MeasureError, Stopped

MEASURES = ("losses", "retrieval")


def measure_of(arm: Arm):
    """The module of the arm's measure, with work(arm) and measure(arm, loaded, progress)."""
    name = arm.assignment.get("measure")
    if name not in MEASURES:
        raise MeasureError(f"{arm.folder}: measure: expected one of {', '.join(MEASURES)}, but got "
                           f"{name!r}")
    return importlib.import_module(f"sextant.measure.{name}")


def run(arms: list[Arm], progress: Progress) -> None:
    """Runs the arms in order; consecutive arms of one model share it."""
    from sextant.measure import model

    loaded, key = None, None
    for arm in arms:
        asked = model.key_of(arm.assignment)
        if arm.assignment["model"] is None or arm.assignment.get("endpoint"):
            loaded, key = None, None
        elif key != asked:
            progress.add(0, "loading the model")
            loaded = None  # frees the memory first
            loaded = model.load(arm.assignment["model"], arm.assignment["dtype"],
                                arm.assignment["threads"])
            key = asked
        measure_of(arm).measure(arm, loaded, progress)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m sextant.measure")
    parser.add_argument("--progress-fd", type=int, default=NO_PROGRESS_FILE)
    parser.add_argument("folders", nargs="+")
    asked = parser.parse_args(words)
    folders, file = asked.folders, asked.progress_fd
    progress = Progress(0, 0, file)
    try:
        arms = [Arm(folder) for folder in folders]
        work = {arm.name: measure_of(arm).work(arm) for arm in arms}
        progress = Progress(sum(total for total, _ in work.values()),
                            sum(done for _, done in work.values()), file)
        progress.catch_signals()
        run([arm for arm in arms if not arm.done], progress)
        return 0
    except Stopped:
        return STOPPED_STATUS
    except MeasureError as error:
        print_error(error)
        progress.fail(str(error))
        return CANNOT_WRITE_STATUS if isinstance(error, CannotWrite) else 1
    except Exception as error:  # the log has where; the command says what
        print(printable_lines(traceback.format_exc()), end="", file=sys.stderr)
        progress.fail(f"{type(error).__name__}: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
