"""Retrieval: the share of planted facts that a model finds in prompts of several lengths (tasks).

The model answers greedily, a prompt at a time. It is a checkpoint of transformers, or runs in a
server (endpoint). Work is counted in tokens of prompts, which take nearly all of the time.

A reply that is no answer (NoAnswer) has the score None; after an interruption it is asked for
again.
"""

from __future__ import annotations

import contextlib
import re
import time
from typing import TYPE_CHECKING, Any, Iterator

from sextant.measure import tasks
from sextant.measure.errors import MeasureError, NoAnswer
from sextant.measure.spoken import spoken

if TYPE_CHECKING:
    from sextant.measure.arm import Arm, Progress
    from sextant.measure.endpoint import Endpoint
    from sextant.measure.model import Loaded
    from sextant.measure.tasks import Sample


FIRST_ANSWERS = 3  # if none of them is one, the rest is not asked for


def work(arm: Arm) -> tuple[int, int]:
    """The tokens of the arm, and those that are already done."""
    asked = arm.assignment["retrieval"]
    all_of_it = len(asked["tasks"]) * asked["samples"] * sum(asked["lengths"])
    return all_of_it, (all_of_it if arm.done else
                       sum(record["length"] for record in _scored(arm)))


def measure(arm: Arm, loaded: Loaded | None, progress: Progress) -> None:
    """Adds the missing records {"task", "length", "depth", "sample", "tokens", "score", "expected",
    "answer", "seconds"}, short prompts first; without a score also "unscored", a sentence. loaded:
    None if the arm has an endpoint."""
    asked = arm.assignment["retrieval"]
    if loaded is not None and loaded.end and not asked.get("chat"):
        arm.check_rule(f"questions end without {loaded.spelled(loaded.end)}")
    found = {(record["task"], record["length"], record["sample"]) for record in _scored(arm)}
    unscored: list[NoAnswer] = []
    with _answerer(arm.assignment, loaded) as answerer:
        for task in asked["tasks"]:  # before hours of work on other tasks
            tasks.check_length(task, min(asked["lengths"]), asked["samples"], seed=asked["seed"],
                               count_tokens=answerer.count_tokens, overhead=answerer.overhead)
        for length in asked["lengths"]:
            for task in asked["tasks"]:
                for number in range(asked["samples"]):
                    if (task, length, number) in found:
                        continue
                    progress.check_stop()
                    progress.add(0, f"{task}, {length} tokens, {number + 1}/{asked['samples']}")
                    sample = tasks.make(task, length, number, depths=asked["depths"],
                                        seed=asked["seed"], count_tokens=answerer.count_tokens,
                                        overhead=answerer.overhead)
                    began = time.monotonic()
                    more: dict[str, str] = {}
                    try:
                        answer = answerer.answer(sample)
                    except NoAnswer as none:
                        answer, more = none.said, {"unscored": str(none)}
                        unscored.append(none)
                        if none.repeats and len(unscored) == FIRST_ANSWERS:
                            _check_scores(arm, unscored)
                    arm.append({"task": task, "length": length, "depth": sample.depth,
                                "sample": number, "tokens": sample.tokens,
                                "score": None if more else score(answer, sample.expected),
                                "expected": sample.expected, "answer": answer, **more,
                                "seconds": round(time.monotonic() - began, 2)})
                    progress.add(length, f"{task}, {length} tokens")
        _check_scores(arm, unscored)
        arm.finish(**answerer.facts())


def _scored(arm: Arm) -> list[dict]:
    return [record for record in arm.records() if record["score"] is not None]


def _check_scores(arm: Arm, unscored: list[NoAnswer]) -> None:
    """Raises MeasureError if all replies were no answers, and no other length has been measured."""
    if unscored and not _scored(arm) and not any(arm.folder.parent.glob("*/done.json")):
        lengths = ", ".join(map(str, arm.assignment["retrieval"]["lengths"]))
        raise MeasureError(f"{lengths} tokens: expected answers, but none of the first "
                           f"{len(unscored)} replies is one; the first: {unscored[0]}")


def score(answer: str, expected: list[str]) -> float:
    """The share of the expected strings that the answer contains, in any case. A number inside a
    longer one does not count."""
    return sum(_contains(answer, one) for one in expected) / len(expected)


def _contains(answer: str, one: str) -> bool:
    first = r"(?<!\d)" if one[0].isdigit() else ""
    last = r"(?!\d)" if one[-1].isdigit() else ""
    return re.search(first + re.escape(one) + last, answer, re.IGNORECASE) is not None


@contextlib.contextmanager
def _answerer(assignment: dict, loaded: Loaded | None) -> Iterator[Checkpoint | Endpoint]:
    """A Checkpoint with the candidate's positions, or an Endpoint."""
    chat = assignment["retrieval"].get("chat", False)
    if assignment.get("endpoint"):
        from sextant.measure.endpoint import Endpoint
        yield Endpoint(assignment["endpoint"], assignment.get("model"), chat)
        return
    from sextant.measure import model
    assert loaded is not None  # without an endpoint
    with model.positions(loaded, assignment["candidate"]):
        yield Checkpoint(loaded, chat)


class Checkpoint:
    """Answers of a model of transformers.

    overhead: the tokens that the chat template adds to a prompt."""

    def __init__(self, loaded: Loaded, chat: bool = False) -> None:
        self._loaded = loaded
        self._chat = chat
        self.overhead = 0
        if chat:
            self.overhead = len(self._chat_ids("A question?", "The answer is")) - \
                self.count_tokens("A question?\nThe answer is")

    def count_tokens(self, text: str) -> int:
        return len(self._loaded.ids_of(text))

    def answer(self, sample: Sample) -> str:
        """The tokens that the model adds greedily, decoded. Raises NoAnswer."""
        import torch

        ids = self._chat_ids(sample.question, sample.prefix) if self._chat else \
            self._loaded.ids_of(sample.prompt)
        model = self._loaded.model
        row = torch.tensor([ids], device=model.device)
        try:
            with torch.no_grad():
                made = model.generate(input_ids=row, attention_mask=torch.ones_like(row),
                                      max_new_tokens=sample.answer_tokens, **self._greedy())
        except (IndexError, RuntimeError, ValueError) as error:
            raise MeasureError(f"{self._loaded.name}: {sample.task}, {sample.length} tokens: "
                               f"expected an answer, but got {type(error).__name__}: {error}"
                               ) from error
        added = made[0, len(ids):]
        said = self._loaded.tokenizer.decode(added, skip_special_tokens=True)
        return spoken(said, ran_out=len(added) == sample.answer_tokens)

    def facts(self) -> dict[str, Any]:
        from sextant.measure import model

        return model.facts(self._loaded)

    def _greedy(self) -> dict[str, Any]:
        """Settings that override the checkpoint's own for sampling; a penalty on repetition would
        punish right answers, which repeat the prompt."""
        ends = self._loaded.model.generation_config.eos_token_id
        first = ends[0] if isinstance(ends, (list, tuple)) else ends
        pad = self._loaded.tokenizer.pad_token_id
        return {"do_sample": False, "num_beams": 1, "repetition_penalty": 1.0,
                "no_repeat_ngram_size": 0, "temperature": None, "top_p": None, "top_k": None,
                "pad_token_id": pad if pad is not None else first if first is not None else 0}

    def _chat_ids(self, question: str, prefix: str) -> list[int]:
        """The question as the user's message, and the prefix as the beginning of the answer."""
        tokenizer = self._loaded.tokenizer
        if not getattr(tokenizer, "chat_template", None):
            raise MeasureError(f"{self._loaded.name}: chat: expected a tokenizer with a chat "
                               "template, but it has none")
        messages = [{"role": "user", "content": question},
                    {"role": "assistant", "content": prefix}]
        try:
            # Templates that do not know enable_thinking ignore it.
            text = tokenizer.apply_chat_template(messages, tokenize=False, enable_thinking=False,
                                                 continue_final_message=True)
        except Exception as error:  # a template raises errors of its own
            raise MeasureError(f"{self._loaded.name}: chat: the chat template fails: {error}"
                               ) from error
        return tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
