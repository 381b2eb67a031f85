"""Files that users give, read whole: a device, a folder or a named pipe is refused before anything
is read, and so is a file that is too large."""

from __future__ import annotations

import errno
import os
import stat

MOST_JSON = 64 << 20  # bytes; as in sextant/files/read_file.h
MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")  # of this machine


def read_bytes(path: str | os.PathLike[str], most: int = MEMORY) -> bytes:
    """The bytes of a regular file of at most `most`. Raises OSError, whose strerror is a reason."""
    # Without O_NONBLOCK, opening a named pipe waits for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise OSError(errno.EINVAL, "expected a file, but got a folder, a device or a pipe",
                          str(path))
        if facts.st_size > most:
            raise OSError(errno.EFBIG, f"expected at most {most} bytes, but got {facts.st_size}",
                          str(path))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)

