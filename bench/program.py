"""Command-line values, files and memory of the Python benchmarks."""

import argparse
import json


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, but got {number}")
    return number


def numbers(text):
    """"377,1500" as [377, 1500]."""
    return [positive(each) for each in text.split(",")]


def writable(path):
    """Checks that a file can be written before the timing, which takes minutes. Its old content
    stays until the new one is written."""
    try:
        with open(path, "a", encoding="utf-8"):
            return path
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"expected a file that can be written, but got {path}: {error.strerror}") from error


def write(path, content):
    if path:
        with open(path, "w", encoding="utf-8") as to:
            json.dump(content, to, indent=1)


def held(line):
    """The value of a line of /proc/self/status such as "VmHWM:    1234 kB", in bytes."""
    with open("/proc/self/status", encoding="ascii") as status:
        for text in status:
            if text.startswith(line + ":"):
                return int(text.split()[1]) * 1024
    raise SystemExit(f"/proc/self/status has no {line}")


def forget_peak():
    """Lets VmHWM, the peak of the process's memory, start again."""
    with open("/proc/self/clear_refs", "w", encoding="ascii") as refs:
        refs.write("5")
