#!/usr/bin/env python3
"""Times a token of decoding from Python beside the C API, for one layer over 16 to 4096 keys.

    SEXTANT_LIBRARY=... PYTHONPATH=python PYTHON bench/python_decode.py

PYTHON has torch and transformers. The layer has 8 query and 2 key heads of 64 columns, with RoPE,
in float32 on one thread. Rows, in microseconds of a token:

    attention            sextant.attention(..., cache=cache)
    generate, sdpa       transformers' generate() of a Llama of this one layer, by torch's kernels
    generate, accelerate the same by Sextant's, and after stretch() with a fixed YaRN
    generate, stretch

The peer of all is the program bench_decode_step (C API: append, step and attend of a token) in the
same round. Times of Python are those of TOKENS tokens around the number of keys, so that each has a
layout of its own. Least values of the rounds are printed and written to
bench/results/MACHINE/DATE-python-decode.json (bench/records.py); `above` is what Python adds.
"""

import argparse
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import program
import records
import torch

import sextant

HEADS, KEY_HEADS, HEAD_DIM = 8, 2, 64
TOKENS = 16


def c_api(path, keys):
    """The least seconds of a token by the C API."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "step.json"
        subprocess.run([path, "--layers", "1", "--heads", str(HEADS), "--key-heads",
                        str(KEY_HEADS), "--keys", str(keys), "--methods", "", "--json", file],
                       check=True, stdout=subprocess.DEVNULL)
        return json.loads(file.read_text(encoding="utf-8"))["measured"][0]["least"]


def least_of_attention(keys, repeats):
    """The least seconds of a token by sextant.attention over a cache."""
    def rows(heads, count):
        return torch.randn(1, heads, count, HEAD_DIM)

    cache, first = sextant.Cache(), keys - TOKENS // 2
    token = rows(HEADS, 1), rows(KEY_HEADS, 1), rows(KEY_HEADS, 1)
    least = float("inf")
    with torch.no_grad():
        prompt = rows(HEADS, first), rows(KEY_HEADS, first), rows(KEY_HEADS, first)
        sextant.attention(*prompt, method="rope", cache=cache)
        for _ in range(repeats):
            began = time.perf_counter()
            for _ in range(TOKENS):
                sextant.attention(*token, method="rope", cache=cache)
            least = min(least, (time.perf_counter() - began) / TOKENS)
            cache.truncate(cache.sequences[0], first)
    return least


def llama(way):
    """A Llama of one layer, whose attention is computed in this way."""
    import transformers

    torch.manual_seed(0)
    width = HEADS * HEAD_DIM
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=width, intermediate_size=width, num_hidden_layers=1,
        num_attention_heads=HEADS, num_key_value_heads=KEY_HEADS, max_position_embeddings=8192,
        attn_implementation="sdpa")
    model = transformers.LlamaForCausalLM(config).eval()
    if way != "sdpa":
        from sextant import transformers as served
        if way == "accelerate":
            served.accelerate(model)
        else:
            served.stretch(model, "rope", stretch="yarn*4", train_length=2048)
    return model


def least_of_generate(model, keys, repeats):
    """The least seconds of a token by generate(): from the first of TOKENS more to the last."""
    import transformers

    ended = []

    class Clock(transformers.StoppingCriteria):
        """Keeps the time at which each token is there, and stops nothing."""

        def __call__(self, ids, scores, **_):
            ended.append(time.perf_counter())
            return torch.zeros(ids.shape[0], dtype=torch.bool)

    prompt = torch.randint(3, 64, (1, keys - TOKENS // 2))
    least = float("inf")
    for _ in range(repeats):
        ended.clear()
        model.generate(prompt, attention_mask=torch.ones_like(prompt), do_sample=False,
                       max_new_tokens=1 + TOKENS, min_new_tokens=1 + TOKENS, pad_token_id=0,
                       stopping_criteria=transformers.StoppingCriteriaList([Clock()]))
        assert len(ended) == 1 + TOKENS, ended
        least = min(least, (ended[-1] - ended[0]) / TOKENS)
    return least


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path,
                        default=records.ROOT / "build/release/bin/bench_decode_step")
    parser.add_argument("--rounds", type=program.positive, default=5)
    parser.add_argument("--keys", default="16,64,256,1024,4096")
    parser.add_argument("--no-transformers", action="store_true", help="leave generate() out")
    parser.add_argument("--results", type=pathlib.Path, default=records.RESULTS)
    options = parser.parse_args()
    torch.set_num_threads(1)

    ways = [] if options.no_transformers else ["sdpa", "accelerate", "stretch"]
    models = {way: llama(way) for way in ways}
    rows = []
    print(f"{'us a token':<24}{'keys':>6}{'ours':>10}{'C API':>10}{'ratio':>8}{'above':>10}")
    for keys in map(int, options.keys.split(",")):
        ours, peer = {}, []
        for _ in range(options.rounds):
            peer.append(1e6 * c_api(options.program, keys))
            ours.setdefault("attention", []).append(1e6 * least_of_attention(keys, 40))
            for way, model in models.items():
                ours.setdefault(f"generate, {way}", []).append(
                    1e6 * least_of_generate(model, keys, 4))
        for name, values in ours.items():
            row = records.least_row(name, f"{keys} keys", "us", values, peer, "C API")
            rows.append(row)
            print(f"{name:<24}{keys:>6}{row['ours']:>10.1f}{row['peer']:>10.1f}"
                  f"{row['ratio']:>8.2f}{row['ours'] - row['peer']:>10.1f}")
    path = records.write("python-decode", rows, commit=records.commit_of("HEAD"), threads=1,
                         command=shlex.join(["bench/python_decode.py", *sys.argv[1:]]),
                         folder=options.results)
    print(path)


if __name__ == "__main__":
    main()
