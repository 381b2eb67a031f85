"""Runs the audit of each folder in its own process, several in parallel, and keeps the results."""

from __future__ import annotations

import json
import os
import pathlib
import resource
import signal
import sys
import time
from typing import Callable

from .findings import UNBUILT, FolderResult

TIMEOUT = 300  # seconds for a folder
MEMORY = 24 << 30  # address space of a process

Audit = Callable[[str], FolderResult]


def file_of(out: pathlib.Path, name: str) -> pathlib.Path:
    return out / f"{name.strip('()').replace(' ', '_')}.json"


def store(path: pathlib.Path, result: FolderResult, key: str) -> None:
    unfinished = path.with_suffix(".new")
    unfinished.write_text(json.dumps({"key": key, "result": result.to_json()}, indent=1))
    unfinished.rename(path)


def load(path: pathlib.Path, key: str) -> FolderResult | None:
    """The stored result, if it was made by the same command, code and versions."""
    if not path.exists():
        return None
    stored = json.loads(path.read_text())
    return FolderResult.from_json(stored["result"]) if stored["key"] == key else None


def failed(name: str, why: str, seconds: float) -> FolderResult:
    result = FolderResult(name, text=True, seconds=seconds)
    result.add("audit", "its process", UNBUILT, [why])
    return result


def work(name: str, audit: Audit, path: pathlib.Path, key: str) -> None:
    """Audits a folder in the child process. Never returns."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.alarm(TIMEOUT)
    began = time.time()
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        result = audit(name)
        result.seconds = round(time.time() - began, 1)
    except BaseException as error:  # pylint: disable=broad-except
        result = failed(name, f"{type(error).__name__}: {error}"[:200], time.time() - began)
    store(path, result, key)
    os._exit(0)  # pylint: disable=protected-access


def say_progress(done: int, total: int, began: float, name: str) -> None:
    spent = time.time() - began
    left = spent / done * (total - done)
    line = f"Audit: {done} of {total}, {spent:.0f} s, about {left:.0f} s left ({name})"
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="" if done < total else "\n", file=sys.stderr, flush=True)
    elif done == total or done % 20 == 0:
        print(line, file=sys.stderr, flush=True)


def run_all(names: list[str], audit: Audit, out: pathlib.Path, key: str, processes: int,
            resume: bool) -> list[FolderResult]:
    """Audits the folders and returns the results in the order of the names."""
    out.mkdir(parents=True, exist_ok=True)
    paths = {name: file_of(out, name) for name in names}
    todo = [name for name in names if not (resume and load(paths[name], key))]
    for name in todo:
        paths[name].unlink(missing_ok=True)
    running: dict[int, tuple[str, float]] = {}
    began, done, total = time.time(), 0, len(todo)
    while todo or running:
        while todo and len(running) < processes:
            name = todo.pop(0)
            child = os.fork()
            if child == 0:
                work(name, audit, paths[name], key)
            running[child] = (name, time.time())
        child, status = os.wait()
        name, started = running.pop(child)
        if not paths[name].exists():
            store(paths[name], failed(name, f"the process ended with status {status}",
                                      time.time() - started), key)
        done += 1
        say_progress(done, total, began, name)
    return [result for name in names if (result := load(paths[name], key))]
