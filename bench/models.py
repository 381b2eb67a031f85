#!/usr/bin/env python3
"""Time and memory of whole models of transformers, with their own attention and with Sextant's.

    scripts/torch_env.sh 2.15.0 transformers==5.24.0         an environment, and then
    SEXTANT_LIBRARY=... PYTHONPATH=python PYTHON bench/models.py

Models have the sizes of released ones and random weights. Each measurement is a process of its own:
the least time of some calls without gradients, and the peak memory beyond that before the first.
Implementations take turns. The result is written to bench/results/ (bench/records.py).
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time

import program
import records
import result_rows

# Model type, class, the input that is not tokens, and fields of the configuration.
MODELS = {
    "DeBERTa-v3-base": ("deberta-v2", "AutoModel", None, dict(
        vocab_size=1000, hidden_size=768, num_hidden_layers=12, num_attention_heads=12,
        intermediate_size=3072, relative_attention=True, position_buckets=256,
        pos_att_type=["p2c", "c2p"], norm_rel_ebd="layer_norm", share_att_key=True,
        position_biased_input=False, max_position_embeddings=512, type_vocab_size=0)),
    "T5-base encoder": ("t5", "T5EncoderModel", None, dict(
        vocab_size=1000, d_model=768, d_kv=64, d_ff=3072, num_layers=12, num_heads=12)),
    "SmolLM2-135M": ("llama", "AutoModel", None, dict(
        vocab_size=1000, hidden_size=576, intermediate_size=1536, num_hidden_layers=30,
        num_attention_heads=9, num_key_value_heads=3, max_position_embeddings=8192)),
    "Parakeet 0.6b, 4 layers": ("parakeet_encoder", "ParakeetEncoder", "input_features", dict(
        hidden_size=1024, num_hidden_layers=4, num_attention_heads=8, intermediate_size=4096,
        num_mel_bins=80)),
    "Wav2Vec2-BERT, 4 layers": ("wav2vec2-bert", "AutoModel", "input_features", dict(
        num_hidden_layers=4)),
    "SpeechT5 encoder, 4 layers": ("speecht5", "SpeechT5ForSpeechToText", "input_values", dict(
        vocab_size=1000, encoder_layers=4, decoder_layers=1)),
    "LongT5-base local, 4 layers": ("longt5", "LongT5EncoderModel", None, dict(
        vocab_size=1000, d_model=768, d_ff=2048, num_layers=4, num_heads=12)),
    "XLNet-base, 4 layers": ("xlnet", "AutoModel", None, dict(
        vocab_size=1000, d_model=768, n_layer=4, n_head=12, d_inner=3072)),
    "SAM ViT-B, 4 layers": ("sam_vision_model", "SamVisionModel", "pixel_values", dict(
        num_hidden_layers=4, global_attn_indexes=[3])),
}
# (batch, length): tokens, frames of 10 ms, of 20 ms for Wav2Vec2-BERT, samples at 16 kHz, pixels.
SIZES = {"DeBERTa-v3-base": ((8, 128), (4, 512), (1, 2048)),
         "T5-base encoder": ((8, 128), (4, 512), (1, 2048), (1, 4096)),
         "SmolLM2-135M": ((4, 512), (1, 2048), (1, 4096)),
         "Parakeet 0.6b, 4 layers": ((1, 2000), (1, 12000), (1, 30000), (1, 120000)),
         "Wav2Vec2-BERT, 4 layers": ((1, 1500),),
         "SpeechT5 encoder, 4 layers": ((1, 240000),),
         "LongT5-base local, 4 layers": ((1, 4096),),
         "XLNet-base, 4 layers": ((1, 512),),
         "SAM ViT-B, 4 layers": ((1, 1024),)}
# Matrices of queries x keys that do not fit into the memory of a common machine.
SEXTANT_ALONE = {("Parakeet 0.6b, 4 layers", 120000)}
IMPLEMENTATIONS = ("eager", "sdpa", "sextant")


def measure(options):
    """Prints {seconds, bytes} of one case."""
    import torch
    import transformers

    torch.set_num_threads(options.threads)
    kind, name, main, fields = MODELS[options.model]
    config = transformers.AutoConfig.for_model(kind, **fields)
    own = "eager" if options.implementation == "sextant" else options.implementation
    if hasattr(getattr(transformers, name), "from_config"):
        model = getattr(transformers, name).from_config(config, attn_implementation=own)
    else:
        model = getattr(transformers, name)._from_config(config, attn_implementation=own)
    model = model.eval().to(getattr(torch, options.dtype))
    if options.implementation == "sextant":
        import sextant.transformers
        sextant.transformers.accelerate(model)
    batch, length = options.batch, options.length
    tokens = torch.randint(0, 1000, (batch, length))
    columns = getattr(config, "num_mel_bins", getattr(config, "feature_projection_input_dim", 0))
    shape = {None: (), "input_values": (length,), "input_features": (length, columns),
             "pixel_values": (3, length, length)}[main]
    given = {"input_ids": tokens} if main is None else {
        main: torch.randn(batch, *shape).to(getattr(torch, options.dtype))}
    if kind == "speecht5":
        given["decoder_input_ids"] = tokens[:, :4]
    small = {key: x[:1, :max(length // 16, 16)] for key, x in given.items()}
    times = []
    with torch.no_grad():
        model(**(given if main == "pixel_values" else small))
        before = program.held("VmRSS")
        program.forget_peak()
        for _ in range(options.calls):
            start = time.perf_counter()
            model(**given)
            times.append(time.perf_counter() - start)
    print(json.dumps({"seconds": min(times), "bytes": program.held("VmHWM") - before,
                      "version": transformers.__version__}))


def run(options, model, implementation, batch, length, dtype):
    """The measurement of one process; None if the model has no such implementation."""
    command = [sys.executable, __file__, "--measure", "--model", model, "--implementation",
               implementation, "--batch", str(batch), "--length", str(length), "--dtype", dtype,
               "--threads", str(options.threads), "--calls", str(options.calls)]
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "TRANSFORMERS_VERBOSITY": "error"})
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1]
        if implementation == "sdpa" and "does not support" in done.stderr:
            return None
        raise SystemExit(f"models: {' '.join(command)}: {reason}")
    return json.loads(done.stdout.splitlines()[-1])


def cases(options):
    for model in options.models:
        for dtype in options.dtypes:
            for batch, length in SIZES[model]:
                yield model, dtype, batch, length


def rows_of(options, model, dtype, batch, length):
    found = {name: [] for name in IMPLEMENTATIONS}
    for _ in range(options.rounds):
        for name in IMPLEMENTATIONS:
            if name != "sextant" and (model, length) in SEXTANT_ALONE:
                continue
            one = run(options, model, name, batch, length, dtype)
            if one:
                found[name].append(one)
    shape = f"B {batch}, N {length}, {dtype}"
    ours = found["sextant"]
    if not found["eager"] and not found["sdpa"]:
        for unit, field in (("s", "seconds"), ("B", "bytes")):
            yield result_rows.row(model, shape, unit, [x[field] for x in ours])
    for peer in ("eager", "sdpa"):
        for unit, field in (("s", "seconds"), ("B", "bytes")):
            if found[peer]:
                yield result_rows.row(model, shape, unit, [x[field] for x in ours],
                                      [x[field] for x in found[peer]],
                                      f"{peer}, transformers {ours[0]['version']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",")  # noqa: E731
    parser.add_argument("--models", type=words, default=list(MODELS))
    parser.add_argument("--dtypes", type=words, default=["float32", "bfloat16"])
    parser.add_argument("--rounds", type=program.positive, default=3)
    parser.add_argument("--calls", type=program.positive, default=3)
    parser.add_argument("--threads", type=program.positive, default=os.cpu_count())
    one = parser.add_argument_group("one measurement, in a process of its own")
    one.add_argument("--measure", action="store_true")
    one.add_argument("--model")
    one.add_argument("--implementation", choices=IMPLEMENTATIONS)
    one.add_argument("--batch", type=program.positive)
    one.add_argument("--length", type=program.positive)
    one.add_argument("--dtype")
    options = parser.parse_args()
    if options.measure:
        return measure(options)
    rows, began, all_cases = [], time.monotonic(), list(cases(options))
    for done, case in enumerate(all_cases):
        for row in rows_of(options, *case):
            rows.append(row)
            ratio = f"{row['ratio']:8.2f} of {row['peer_version']}" if row["ratio"] else ""
            print(f"{row['name']:<28}{row['shape']:<24}{row['unit']:<3}{row['ours']:12.4g}{ratio}",
                  flush=True)
        left = (time.monotonic() - began) / (done + 1) * (len(all_cases) - done - 1)
        print(f"{left:.0f} s left", flush=True)
    path = records.write("models", rows, commit=records.commit_of("HEAD"), threads=options.threads,
                         statistic="median", command=shlex.join(["bench/models.py", *sys.argv[1:]]))
    print(path.relative_to(records.ROOT))
    return None


if __name__ == "__main__":
    main()
