#!/usr/bin/env python3
"""Memory and time of one training step of attention, forward and backward, with every encoding.

    SEXTANT_LIBRARY=build/release/lib/libsextant_torch.so PYTHONPATH=python \\
        python3 bench/memory.py --length 8192

Absolute encodings that are added to the input of a model act before attention and are not measured.
Seconds are those of the first call, which touches new memory. MB are mebibytes. "must" is the
memory of the step's results: the output and the gradients of q, k, v and the encoding's parameters.
"beyond" is the peak memory of the process minus "must" and minus the memory before the step (q, k,
v, parameters, the output's gradient). Each encoding runs in its own process.
"""

import argparse
import multiprocessing
import os
import sys
import time

import program
import sextant  # before torch: it sets how OpenMP's threads wait
import torch

MB = 2**20


def size(tensors):
    return sum(x.numel() * x.element_size() for x in tensors)


def step(name, options, results):
    """Puts the measurements of one step of `name`, or its error, into the queue `results`."""
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    shape = (1, options.heads, options.length, options.head_size)
    try:
        method = sextant.method(name, heads=options.heads, head_dim=options.head_size,
                                train_length=options.length)
        q, k, v = (torch.randn(shape, requires_grad=True) for _ in range(3))
        keys = method.keys(k, torch.randn(1, options.length, options.heads * options.head_size))
        d_out = torch.randn(shape)
        before = program.held("VmRSS")
        program.forget_peak()
        start = time.perf_counter()
        out = method(q, keys, v)
        out.backward(d_out)
        seconds = time.perf_counter() - start
        peak = program.held("VmHWM") - before
    except RuntimeError as error:
        results.put({"method": name, "error": str(error).splitlines()[0]})
        return
    given = [x.grad for x in (q, k, v, *method.parameters()) if x.grad is not None]
    must = size([out, *given])
    results.put({"method": name, "seconds": seconds, "must": must, "beyond": peak - must})


def measure(name, options):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    process = context.Process(target=step, args=(name, options, results))
    process.start()
    process.join(options.patience)
    if process.is_alive():
        process.kill()
        process.join()
        return {"method": name, "error": f"took more than {options.patience} s"}
    if process.exitcode != 0:
        return {"method": name, "error": f"ended with status {process.exitcode}"}
    return results.get()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=program.positive, default=8192,
                        help="queries and keys, causal")
    parser.add_argument("--methods", type=lambda x: x.split(","), help="these only")
    parser.add_argument("--heads", type=program.positive, default=8)
    parser.add_argument("--head-size", type=program.positive, default=64)
    parser.add_argument("--threads", type=program.positive, default=os.cpu_count())
    parser.add_argument("--patience", type=program.positive,
                        help="seconds that a method may take; default: any")
    parser.add_argument("--json", type=program.writable, help="write all numbers to this file")
    options = parser.parse_args()
    known = sextant.methods()
    for name in options.methods or []:
        if name not in known:
            parser.error(f"--methods: expected some of {', '.join(known)}, but got {name}")
    print(f"torch {torch.__version__}, {options.threads} threads, {options.heads} heads of "
          f"{options.head_size}, {options.length} queries and keys\n\n"
          f"{'':<24} {'seconds':>8} {'must, MB':>9} {'beyond, MB':>11}")
    rows = []
    for name in options.methods or known:
        row = measure(name, options)
        rows.append(row)
        if "error" in row:
            print(f"{name:<24} {row['error']}", flush=True)
        else:
            print(f"{name:<24} {row['seconds']:>8.2f} {row['must'] / MB:>9.0f} "
                  f"{row['beyond'] / MB:>11.0f}", flush=True)
    program.write(options.json, {"length": options.length, "head_dim": options.head_size,
                                 "threads": options.threads, "measured": rows})
    return 1 if any("error" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
