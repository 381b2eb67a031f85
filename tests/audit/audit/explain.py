"""Calls `sextant explain --json` and represents its answer as values."""

from __future__ import annotations

import json
import pathlib
import re
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Any

from .findings import ASKS, REFUSES

ASKING = re.compile(r"--base|--head-dim|--local-base|would say")


@dataclass(frozen=True)
class Setting:
    """A group of layers as explain describes it: an entry of `configs`."""

    layers: str
    layer_numbers: tuple[int, ...] | None  # None: all layers, or unknown
    rotates: bool
    pairing: str | None
    rotated_channels: tuple[int, int] | None
    head_dim: int | None
    frequencies: tuple[float, ...]
    attention_factor: float
    softmax_scale: float | None
    window: int | None
    has_window: bool  # whether the answer has the key "window" (schema 2)
    remarks: tuple[str, ...]

    @staticmethod
    def of(entry: dict[str, Any]) -> Setting:
        numbers, channels = entry.get("layer_numbers"), entry.get("rotated_channels")
        return Setting(
            layers=entry.get("layers") or "",
            layer_numbers=tuple(numbers) if numbers else None,
            rotates=entry.get("rotates", True),
            pairing=entry.get("pairing"),
            rotated_channels=(channels[0], channels[1]) if channels else None,
            head_dim=entry.get("head_dim"),
            frequencies=tuple(float(pair["stretched"]) for pair in entry.get("pairs", [])),
            attention_factor=float(entry.get("attention_factor") or 1.0),
            softmax_scale=entry.get("softmax_scale"),
            window=entry.get("window") or None,
            has_window="window" in entry,
            remarks=tuple(entry.get("notes", [])) + tuple(entry.get("warnings", [])))


@dataclass(frozen=True)
class Answer:
    """The settings, or the message if explain refused."""

    settings: tuple[Setting, ...] | None
    message: str

    @property
    def refusal(self) -> str:
        """The state of a folder whose answer is this message."""
        return ASKS if ASKING.search(self.message) else REFUSES


class Sextant:
    """The command under audit."""

    def __init__(self, binary: str) -> None:
        self.binary = binary

    def explain_file(self, path: pathlib.Path, length: int = 0) -> Answer:
        command = [self.binary, "explain", str(path), "--json"]
        if length:
            command += ["--length", str(length)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            said = done.stderr.strip().replace(f"{path.parent}/", "")
            return Answer(None, said or f"ended with {done.returncode}")
        entries = json.loads(done.stdout)["configs"]
        return Answer(tuple(Setting.of(entry) for entry in entries), "")

    def explain_whole(self, fields: dict[str, Any]) -> dict[str, Any] | str:
        """The whole answer as JSON, or the message if explain refused."""
        done = subprocess.run([self.binary, "explain", "-", "--json"], capture_output=True,
                              input=json.dumps(fields, default=str), text=True, timeout=60,
                              check=False)
        return json.loads(done.stdout) if done.returncode == 0 else done.stderr.strip()

    def explain_fields(self, fields: dict[str, Any], length: int = 0) -> Answer:
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "config.json")
            path.write_text(json.dumps(fields, default=str))
            return self.explain_file(path, length)

    def explain_config(self, config: Any, length: int = 0) -> Answer:
        """Explains a configuration in the form in which transformers saves it."""
        with tempfile.TemporaryDirectory() as folder:
            config.save_pretrained(folder)
            return self.explain_file(pathlib.Path(folder, "config.json"), length)
