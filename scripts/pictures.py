#!/usr/bin/env python3
"""Redraws the figures of docs/methods: scripts/pictures.py [COMMAND], by default
build/release/bin/sextant.

For each method, one or more figures of `sextant plot` are written to docs/images/methods/.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# The picture: the figure's name and the options of `sextant plot METHOD`. The picture's name is
# that of the method, or METHOD/ANOTHER for the picture METHOD-ANOTHER.
PICTURES = {
    "alibi": ("distance", []),
    "alibi/both": ("distance", ["--direction", "both"]),
    "binary": ("vectors", []),
    "chunk": ("score", ["--options", '{"chunk": 16, "of": "none"}']),
    "clock": ("similarity", []),
    "clock/alien": ("vectors", ["--options", '{"system": "alien", "hands": 4}', "--length", "200"]),
    "complex": ("distance", []),
    "deberta": ("distance", ["--direction", "both", "--options",
                             '{"buckets": 16, "max_positions": 64}']),
    "dual-chunk": ("score", ["--length", "96"]),
    "fire": ("distance", ["--options", '{"threshold": 64}']),
    "floater": ("score", ["--heads", "1"]),
    "fox": ("distance", ["--heads", "2"]),
    "hierarchical": ("similarity", ["--options", '{"rows": 8}']),
    "kerple-log": ("distance", []),
    "kerple-power": ("distance", []),
    "leaky-rerope": ("distance", ["--heads", "1"]),
    "nezha": ("distance", ["--direction", "both", "--heads", "1", "--options",
                           '{"max_relative_position": 32}']),
    "pi/pair": ("pair", []),
    "recursive": ("similarity", []),
    "relative-key": ("distance", ["--direction", "both", "--heads", "2"]),
    "rerope": ("distance", ["--heads", "1"]),
    "rope": ("distance", []),
    "rope/bound": ("bound", ["--length", "512"]),
    "rope/pair": ("pair", []),
    "rope-mixed": ("distance", []),
    "sandwich": ("distance", ["--length", "256"]),
    "self-extend": ("score", ["--length", "96", "--options", '{"window": 24, "group": 8}']),
    "shaw": ("distance", []),
    "sinusoidal": ("vectors", []),
    "sinusoidal/explained": ("explained-distance", []),
    "skew": ("distance", ["--options", '{"max_relative_position": 32}']),
    "streaming": ("score", ["--options", '{"sinks": 4, "recent": 16}']),
    "t5": ("distance", []),
    "tener": ("distance", ["--direction", "both", "--heads", "2"]),
    "transformer-xl": ("distance", []),
    "tupe": ("score", ["--direction", "both"]),
    "window": ("visible", []),
    "xlnet": ("distance", ["--direction", "both"]),
    "xpos": ("distance", ["--heads", "1", "--length", "256"]),
}


def main():
    command = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/release/bin/sextant")
    images = ROOT / "docs" / "images" / "methods"
    images.mkdir(parents=True, exist_ok=True)
    for picture, (figure, options) in PICTURES.items():
        method = picture.split("/")[0]
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                [command, "plot", method, *options, "--format", "svg", "--out", folder],
                check=True, stdout=subprocess.DEVNULL,
            )
            # Other figures' names may end alike: distance, explained-distance.
            drawn = min(pathlib.Path(folder).glob(f"{method}*-{figure}.svg"),
                        key=lambda path: len(path.name))
            shutil.copy(drawn, images / (picture.replace("/", "-") + ".svg"))


if __name__ == "__main__":
    main()
