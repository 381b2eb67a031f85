"""The folder of an arm, and the progress of a worker (``sextant/lab/run/worker.h``)."""

from __future__ import annotations

import json
import os
import pathlib
import signal

from sextant._files import MOST_JSON, read_bytes
from sextant._write_file import write_file
from sextant.measure.errors import CannotWrite, MeasureError, Stopped

NO_PROGRESS_FILE = -1
STOPPED_STATUS = 75
CANNOT_WRITE_STATUS = 74


class Arm:
    """An assignment, and the records made for it so far.

    Each record is one line of records.jsonl. An interruption can leave an incomplete last line,
    which is dropped when the folder is opened again.
    """

    def __init__(self, folder: str | pathlib.Path) -> None:
        self.folder = pathlib.Path(folder)
        path = self.folder / "arm.json"
        try:
            self.assignment = _object(read_bytes(path, MOST_JSON))
        except OSError as error:
            raise MeasureError(f"{path}: {error.strerror}") from error
        except ValueError as error:
            raise MeasureError(f"{path}: expected the assignment of an arm, but got: {error}"
                               ) from error
        self._path = self.folder / "records.jsonl"
        self._records = self._read()
        self._rule = ""

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def done(self) -> bool:
        return (self.folder / "done.json").exists()

    def records(self) -> list[dict]:
        return list(self._records)

    def check_rule(self, rule: str) -> None:
        """Says how special tokens are treated, "" for a text as it is. Records have the rule, and
        MeasureError is raised if those that are there have another: an older version has none."""
        for record in self._records:
            if record.get("special_tokens", "") != rule:
                raise MeasureError(
                    f"{self._path}: expected records with the rule of this version for special "
                    f"tokens, {rule or 'none'}, but got {record.get('special_tokens') or 'none'}; "
                    "measure in another folder")
        self._rule = rule

    def append(self, record: dict) -> None:
        """Writes a record to the disk. Raises CannotWrite."""
        record = {**record, **self._with_rule()}
        try:
            with open(self._path, "ab") as file:
                file.write(json.dumps(record).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise CannotWrite(f"{self._path}: cannot write: {error.strerror}") from error
        self._records.append(record)

    def finish(self, **facts: object) -> None:
        """Notes that all records are there, beside facts such as versions."""
        path = self.folder / "done.json"
        try:
            write_file(path, json.dumps({**facts, **self._with_rule()}, indent=2) + "\n")
        except OSError as error:
            raise CannotWrite(f"{path}: cannot write: {error.strerror}") from error

    def _with_rule(self) -> dict[str, str]:
        return {"special_tokens": self._rule} if self._rule else {}

    def _read(self) -> list[dict]:
        try:
            data = read_bytes(self._path)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise MeasureError(f"{self._path}: {error.strerror}") from error
        whole = data.rfind(b"\n") + 1
        if whole != len(data):
            with open(self._path, "r+b") as file:
                file.truncate(whole)
        try:
            return [_object(line) for line in data[:whole].splitlines()]
        except ValueError as error:
            raise MeasureError(f"{self._path}: expected one JSON object per line, but got: {error}"
                               ) from error


def _object(text: bytes) -> dict:
    """Raises ValueError if the text is not a JSON object."""
    try:
        found = json.loads(text)
    except RecursionError as error:
        raise ValueError("values that are too deep") from error
    if not isinstance(found, dict):
        raise ValueError(type(found).__name__)
    return found


class Progress:
    """Reports to the command through a pipe.

    total: tokens of all arms; done: those whose records an earlier run made; file: the pipe's
    descriptor, or NO_PROGRESS_FILE."""

    def __init__(self, total: float, done: float, file: int = NO_PROGRESS_FILE) -> None:
        self._total, self._done, self._stop, self._file = total, done, False, file

    def catch_signals(self) -> None:
        """SIGTERM, and SIGHUP if it is not ignored, ask for a stop after the present record."""
        def ask(*_: object) -> None:
            self._stop = True

        signal.signal(signal.SIGTERM, ask)
        if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
            signal.signal(signal.SIGHUP, ask)
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    def add(self, tokens: float, text: str) -> None:
        """Counts tokens as done and says what comes next."""
        self._done += tokens
        self._send(f"{self._done} {self._total} {text}")

    def fail(self, reason: str) -> None:
        self._send(f"! {reason}")

    def stop_requested(self) -> bool:
        return self._stop

    def check_stop(self) -> None:
        if self._stop:
            raise Stopped

    def _send(self, line: str) -> None:
        if self._file == NO_PROGRESS_FILE:
            return
        try:
            os.write(self._file, line.replace("\n", " ").encode() + b"\n")
        except OSError:
            self._file = NO_PROGRESS_FILE  # the command may be gone; records are on the disk
