"""python -m sextant.conformance [PATH...]"""

import argparse
import collections
import dataclasses
import importlib
import json
import sys

from sextant._printable import printable_lines
from sextant.conformance.runner import own_cases, run_paths, table


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="python -m sextant.conformance", description=__doc__)
    parser.add_argument(
        "paths",
        nargs="*",
        help="folders of golden cases, or single files (default: the cases of the package)",
    )
    parser.add_argument("--library", default="sextant",
                        help="the module to test (default: sextant)")
    parser.add_argument("--json", action="store_true", help="print results as JSON")
    options = parser.parse_args(arguments)
    try:
        library = importlib.import_module(options.library)
        results = run_paths(options.paths or [own_cases()], library)
    except (FileNotFoundError, ImportError, ValueError) as error:
        print(printable_lines(error), file=sys.stderr)
        return 2
    counts = collections.Counter(r.status for r in results)
    if options.json:
        print(json.dumps([dataclasses.asdict(r) for r in results], indent=1))
    else:
        print(printable_lines(table(results)))
        print(
            f"{counts['pass']} passed, {counts['FAIL']} failed, "
            f"{counts['not covered']} not covered"
        )
    return 1 if counts["FAIL"] else 0


if __name__ == "__main__":
    sys.exit(main())
