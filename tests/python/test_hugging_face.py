"""Loads the laboratory's models of every architecture with transformers and compares logits.

    test_hugging_face.py CASES

CASES is the program hugging_face_cases. Exits with 77, which CTest reports as skipped, without
transformers.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    import safetensors.torch
    import torch
    import transformers
except ImportError as missing:
    print(f"skipped: {missing}; python -m pip install torch transformers, "
          "and -DSEXTANT_TEST_TRANSFORMERS=python")
    sys.exit(77)

# float32: logits reach 4, and the libraries sum a few hundred products in different orders.
BOUND = 1e-4


def logits(folder, tokens):
    load = transformers.AutoModelForCausalLM.from_pretrained
    model = load(folder, attn_implementation="eager").float().eval()
    with torch.no_grad():
        return type(model).__name__, model(tokens).logits.numpy()


def check_tokenizer(folder):
    text = "".join(map(chr, range(1, 128))) + " the  café\n\n\t naïve 北京 🙂 <|endoftext|> don't"
    for tokenizer in (
        transformers.PreTrainedTokenizerFast(tokenizer_file=str(folder / "tokenizer.json")),
        transformers.AutoTokenizer.from_pretrained(folder),
    ):
        ids = tokenizer(text)["input_ids"]
        assert ids == list(text.encode()), "a token is not its byte"
        assert tokenizer.decode(ids) == text, "bytes do not decode to their text"
        assert len(tokenizer) == 256, len(tokenizer)


def main():
    transformers.logging.set_verbosity_error()
    failed = loaded = 0
    with tempfile.TemporaryDirectory() as directory:
        cases = subprocess.run(
            [sys.argv[1], directory], check=True, capture_output=True, text=True
        )
        print(f"transformers {transformers.__version__}, torch {torch.__version__}: "
              "largest |difference| of logits")
        for name, obstacle in (line.split("\t") for line in cases.stdout.splitlines()):
            folder = pathlib.Path(directory) / name
            architecture = json.loads((folder / "config.json").read_text())["architectures"][0]
            if obstacle:
                assert architecture == "SextantDecoder", architecture
                continue
            arrays = safetensors.torch.load_file(folder / "logits.safetensors")
            tokens, expected = arrays["tokens"], arrays["logits"].numpy()
            try:
                kind, got = logits(folder, tokens)
                difference = float(numpy.abs(got - expected).max())
                good = kind == architecture and difference <= BOUND
                loaded += 1
                print(f"  {name:28}{kind:24}{difference:.1e} of {numpy.abs(expected).max():.1f}"
                      f"{'' if good else '  WRONG'}")
                failed += not good
            except Exception as error:  # the other cases are tested nevertheless
                print(f"  {name:28}{architecture}: {type(error).__name__}: {error}  WRONG")
                failed += 1
        check_tokenizer(folder.parent / "llama")
    assert loaded > 20, loaded
    sys.exit(1 if failed else 0)


main()
