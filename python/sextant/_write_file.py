"""Atomic file writes, as ``sextant/files/write_file.h`` has them in C++."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pathlib
import secrets


def write_file(path: str | os.PathLike[str], text: str) -> None:
    """Replaces a file by one with the text. If that fails, with an OSError, the previous one stays.
    A link is followed, and text for a device, a pipe or a file without a name goes into it."""
    target = pathlib.Path(os.path.realpath(path))
    if os.path.exists(path) and not target.is_file():
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(text)
        return
    # remove_leftovers() of C++ knows this form of names, and the lock of a living owner.
    name = f"{target}.sextant-{secrets.token_hex(3)}"
    try:
        with open(name, "x", encoding="utf-8") as file:
            with contextlib.suppress(OSError):  # of file systems without locks
                fcntl.flock(file, fcntl.LOCK_EX)
            if target.exists():
                os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
