"""Checkpoints: a folder in Hugging Face's format, or a GGUF file that transformers reads."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib.util
import json
import pathlib
from typing import Any, Iterator

from sextant.measure.errors import MeasureError

DTYPES = ("auto", "float32", "bfloat16", "float16")


@dataclasses.dataclass
class Loaded:
    """A causal language model on the CPU, with its tokenizer.

    attention: the implementation that computes the model's own positions, "sextant" or the
    model's own. says_begin: whether its settings say that a text begins with a special token, None
    if they do not say."""

    model: Any
    tokenizer: Any
    name: str
    attention: str = ""
    says_begin: bool | None = None

    @property
    def begin(self) -> list[int]:
        """The tokens that the tokenizer puts before each text, such as <s>."""
        return self._around[0]

    @property
    def end(self) -> list[int]:
        """Those that it puts after each text, such as </s>."""
        return self._around[1]

    def ids_of(self, text: str) -> list[int]:
        """Of a text that goes on: with the tokens before it, and without those after it."""
        return self.begin + self._ids(text, add_special_tokens=False)

    def spelled(self, ids: list[int]) -> str:
        return "".join(self.tokenizer.convert_ids_to_tokens(ids))

    def notes(self) -> list[str]:
        """Sentences on settings that contradict the tokenizer."""
        if self.says_begin is None or self.says_begin == bool(self.begin):
            return []
        adds = f"begins texts with {self.spelled(self.begin)}" if self.begin else \
            "puts no token before texts"
        return [f"{self.name}: its settings have add_bos_token {str(self.says_begin).lower()}, but "
                f"its tokenizer {adds}; that is how it was measured, and programs that follow the "
                "setting may see other losses and answers"]

    def _ids(self, text: str, **more: Any) -> list[int]:
        return self.tokenizer(text, verbose=False, **more)["input_ids"]

    @functools.cached_property
    def _around(self) -> tuple[list[int], list[int]]:
        whole, text = self._ids("text"), self._ids("text", add_special_tokens=False)
        for first in range(len(whole) - len(text) + 1):
            if whole[first:first + len(text)] == text:
                return whole[:first], whole[first + len(text):]
        raise MeasureError(f"{self.name}: tokenizer: expected tokens {text} of a text within those "
                           f"with special tokens, but got {whole}")


def load(path: str, dtype: str = "auto", threads: int = 0) -> Loaded:
    """Loads a model of a folder with config.json, or of a .gguf file.

    dtype: one of DTYPES; "auto" is that of the weights. threads: of torch, 0 for its default.
    Nothing is downloaded. Raises MeasureError for a model that cannot be loaded."""
    place = pathlib.Path(path)
    if dtype not in DTYPES:
        raise MeasureError(f"dtype: expected one of {', '.join(DTYPES)}, but got {dtype!r}")
    where, more = _source(place)
    import torch
    import transformers
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if threads:
        torch.set_num_threads(threads)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(where, local_files_only=True, **more)
        model: Any = AutoModelForCausalLM.from_pretrained(where, local_files_only=True,
                                                          dtype=dtype, **more)
    except (ImportError, OSError, ValueError, KeyError) as error:
        raise MeasureError(f"{path}: transformers {transformers.__version__} cannot load it: "
                           f"{_first_line(error)}") from error
    if not getattr(tokenizer, "is_fast", False):
        raise MeasureError(f"{path}: tokenizer: expected one with tokenizer.json, whose tokens "
                           f"have offsets, but got {type(tokenizer).__name__}")
    if more and dtype == "auto":  # a quantised GGUF has no dtype of its own
        model = model.to(torch.bfloat16)
    return Loaded(model.eval(), tokenizer, place.name, says_begin=_says_begin(where, **more))


def _source(place: pathlib.Path) -> tuple[str, dict[str, str]]:
    if place.is_dir() and not (place / "config.json").exists():
        files = sorted(place.glob("*.gguf"))
        if len(files) != 1:
            raise MeasureError(f"{place}: expected config.json or one .gguf file, but got "
                               f"{len(files)} .gguf files")
        place = files[0]
    if place.is_dir():
        return str(place), {}
    if not place.is_file():
        raise MeasureError(f"{place}: expected a folder with config.json or a .gguf file, but "
                           "there is none")
    for package in ("gguf", "accelerate"):
        if importlib.util.find_spec(package) is None:
            raise MeasureError(f"{place}: transformers reads GGUF with the packages gguf and "
                               f"accelerate, but {package} is not installed")
    return str(place.parent), {"gguf_file": place.name}


def _says_begin(folder: str, gguf_file: str = "") -> bool | None:
    """add_bos_token of the settings that other programs read; transformers 5 reads neither."""
    if gguf_file:
        from gguf import GGUFReader

        field = GGUFReader(pathlib.Path(folder, gguf_file)).get_field(
            "tokenizer.ggml.add_bos_token")
        return None if field is None else bool(field.contents())
    try:
        settings = json.loads(pathlib.Path(folder, "tokenizer_config.json").read_text("utf-8"))
        said = settings.get("add_bos_token")
    except (OSError, ValueError, AttributeError):
        return None
    return said if isinstance(said, bool) else None


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


@contextlib.contextmanager
def positions(loaded: Loaded, candidate: dict) -> Iterator[None]:
    """Computes the model with a candidate's positions inside the block.

    candidate: {"name", "method", "options"}; without a method the model's own positions, computed
    by Sextant where it serves the model, else by the model's own attention."""
    import sextant.transformers as ours

    try:
        if candidate["method"] is None:
            try:
                ours.accelerate(loaded.model)
                loaded.attention = "sextant"
            except ours.ModelError:
                loaded.attention = loaded.model.config._attn_implementation
        else:
            ours.stretch(loaded.model, candidate["method"], **candidate["options"])
            loaded.attention = "sextant"
    except (ours.ModelError, ValueError, RuntimeError) as error:
        raise MeasureError(f"{loaded.name}: {candidate['name']}: {_first_line(error)}") from error
    try:
        yield
    finally:
        ours.restore(loaded.model)


def facts(loaded: Loaded) -> dict:
    """Versions and sizes, for the reader of results, and sentences for its user."""
    import torch
    import transformers

    return {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__,
            "dtype": str(loaded.model.dtype).removeprefix("torch."),
            "attention": loaded.attention,
            "machine": f"{_processor()}, torch {torch.__version__}",
            "weights": sum(p.numel() for p in loaded.model.parameters()),
            **({"notes": loaded.notes()} if loaded.notes() else {})}


def _processor() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.split(": ", 1)[1] for line in lines
                 if line.startswith("model name") and ": " in line), "unknown processor")


def key_of(assignment: dict) -> str:
    """Arms with the same key share a loaded model."""
    return json.dumps([assignment.get(name) for name in ("model", "dtype", "threads")])
