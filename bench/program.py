"""Command-line numbers and files, for the Python programs that time something."""

import argparse
import json


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected at least 1, but got {number}")
    return number


def writable(path):
    """Checked first, for timing takes minutes. The old content stays until there is a new one."""
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
