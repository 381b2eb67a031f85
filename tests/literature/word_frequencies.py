#!/usr/bin/env python3
"""Lists the frequencies that words learned in complex embeddings.

usage: word_frequencies.py MODEL [RESULT]

MODEL is a folder that `sextant train` wrote, with the method complex, `amplitude` "word" and
`frequency` "word-and-component" (docs/data/complex-words.json). All bytes start with the same
frequencies. For a byte with amplitudes r_c and frequencies w_c the script prints

  sqrt( sum_c r_c^2 w_c^2 / sum_c r_c^2 )        radians a position

the speed at which its vector rotates, as a ratio to that of the frequencies it started with: below
1 the byte became less sensitive to position. Bytes whose frequencies moved by less than 1 % of
their length are left out as not trained. RESULT is a JSON file for all values;
docs/data/complex-words-result.json is one, with its source added.
"""
import array
import json
import math
import pathlib
import struct
import sys


def tensors(path):
    """The float32 tensors of a safetensors file with two dimensions, {name: rows}."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    found = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32" and len(entry["shape"]) == 2:
            begin, end = entry["data_offsets"]
            values = array.array("f", data[8 + size + begin:8 + size + end])
            rows, columns = entry["shape"]
            found[name] = [values[row * columns:(row + 1) * columns] for row in range(rows)]
    return found


def table(found, ending):
    names = [name for name in found if name.endswith(ending)]
    if len(names) != 1:
        sys.exit(f"word_frequencies.py: model: expected one tensor *{ending} by word, but got "
                 f"{', '.join(names) or 'none'}")
    return found[names[0]]


def shown(byte):
    return repr(chr(byte)) if byte < 127 else f"{byte:#x}"


def rotation_speed(amplitudes, frequencies):
    energy = sum(r * r for r in amplitudes)
    return math.sqrt(sum((r * w)**2 for r, w in zip(amplitudes, frequencies)) / energy)


def ratios(found):
    """{byte: ratio to the start} of the bytes whose frequencies moved."""
    amplitudes, frequencies = table(found, "amplitude_emb"), table(found, "frequency_emb")
    width = len(amplitudes[0])
    if len(frequencies) != len(amplitudes) or len(frequencies[0]) != width:
        sys.exit("word_frequencies.py: model: expected frequencies by word and component, but got "
                 f"[{len(frequencies)}, {len(frequencies[0])}]")
    start = [10000.0 ** (-2 * (c // 2) / width) for c in range(width)]
    result = {}
    for byte, (r, w) in enumerate(zip(amplitudes, frequencies)):
        if math.dist(w, start) > 0.01 * math.hypot(*start):
            result[byte] = round(rotation_speed(r, w) / rotation_speed(r, start), 4)
    return result


def main(model, result=None):
    found = ratios(tensors(pathlib.Path(model) / "model.safetensors"))
    order = sorted(found, key=found.get)
    print(f"{len(order)} bytes with trained frequencies; rotation speed, of that at the start:")
    for title, few in (("least", order[:10]), ("most", order[:-11:-1])):
        print(f"  {title}: " + "  ".join(f"{shown(byte)} {found[byte]:.3f}" for byte in few))
    if result:
        pathlib.Path(result).write_text(json.dumps(
            {"rotation_speed": {shown(byte): found[byte] for byte in order}}, indent=1,
            ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: word_frequencies.py MODEL [RESULT]")
    main(*sys.argv[1:])
