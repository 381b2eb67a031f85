"""The build backend of pip: scikit-build-core, with progress on the terminal.

pip keeps the output of a build to itself unless it is called with -v, and building the library
takes minutes. Ninja prints "[120/310] Building ..." to standard output. Here that output goes
through a pipe: it is passed on unchanged, and for every tenth of the steps a line is written to the
terminal of the user. Without a terminal (CI, a service) nothing is added; `pip install -v` shows
all there.
"""

import contextlib
import os
import re
import sys
import threading
import time

from scikit_build_core.build import *  # noqa: F401,F403  (the hooks of PEP 517)
from scikit_build_core import build as _build

TERMINAL = "/dev/tty"
_STEP = re.compile(rb"\[(\d+)/(\d+)\] ")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with shown_progress():
        return _build.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    with shown_progress():
        return _build.build_editable(wheel_directory, config_settings, metadata_directory)


@contextlib.contextmanager
def shown_progress(terminal=None):
    """Shows the progress of the programs that are run in the block. terminal: the path of the
    terminal, or of a file."""
    try:
        # pylint: disable=consider-using-with
        screen = open(terminal or TERMINAL, "w", encoding="utf-8")
    except OSError:
        yield
        return
    sys.stdout.flush()
    original, (end, start) = os.dup(1), os.pipe()
    os.dup2(start, 1)
    os.close(start)
    copier = threading.Thread(target=_copy, args=(end, original, screen))
    copier.start()
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(original, 1)  # closes the last writing end of the pipe
        copier.join()
        os.close(original)
        screen.close()


def _copy(end, original, screen):
    """Copies the pipe to the original output line by line, and writes progress to the screen."""
    began, shown = time.monotonic(), 0
    with open(end, "rb") as lines, open(original, "wb", buffering=0, closefd=False) as output:
        for line in lines:
            output.write(line)
            step = _STEP.match(line)
            if not step or int(step[2]) == 0:
                continue
            tenth = 10 * int(step[1]) // int(step[2])
            if tenth != shown:
                shown = tenth
                with contextlib.suppress(OSError):
                    screen.write(f"\nsextant: built {step[1].decode()} of {step[2].decode()}, "
                                 f"{time.monotonic() - began:.0f} s\n")
                    screen.flush()
