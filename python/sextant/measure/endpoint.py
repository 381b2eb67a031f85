"""A client of servers with OpenAI's API, such as llama.cpp and vLLM.

Prompts go to /v1/completions; to /v1/chat/completions if a chat is asked for, or if the server has
no completions (404). llama.cpp and vLLM continue a last message of the assistant, so they get the
beginning of the answer; other servers get the question alone. Tokens are counted by the
tokenizer.json of a folder if one is given, else by the server's /tokenize.

A reply says more than its text: usage.prompt_tokens, finish_reason and the parts of a message that
hold reasoning decide whether the text is an answer to the whole prompt (NoAnswer).
"""

from __future__ import annotations

import json
import pathlib
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from sextant._files import MOST_JSON, read_bytes
from sextant.measure.errors import MeasureError, NoAnswer
from sextant.measure.server import HttpError, Server
from sextant.measure.spoken import spoken

if TYPE_CHECKING:
    from sextant.measure.tasks import Sample

SHORT_TIMEOUT = 30.0
ANSWER_TIMEOUT = 3600.0  # seconds; long prompts on a CPU
CHAT_OVERHEAD = 64  # tokens of a chat template, if the server does not count them
COUNTS_DIFFER = 8  # tokens of a prompt, between a server's count and ours
MOST_NAMES = 8  # of models, in a message
REASONING = ("reasoning_content", "reasoning")  # parts of messages, by server
LLAMA_CPP, VLLM = "llama.cpp", "vLLM"  # forms of /tokenize; SGLang has vLLM's


class _Reply(NamedTuple):
    """ran_out: it has all tokens that it may have. read: tokens of the prompt, 0 if the server does
    not say. reasons: the model reasoned beside the text."""

    text: str
    ran_out: bool
    read: int
    reasons: bool


class Endpoint:
    """Answers of a model in a server.

    overhead: the tokens that the server's chat template adds to a prompt."""

    def __init__(self, endpoint: dict[str, Any], folder: str | None = None, chat: bool = False
                 ) -> None:
        """endpoint: {"url", "model"}; a model of None is the only one that the server has. folder:
        with tokenizer.json, or None. Raises MeasureError."""
        self._server = Server(endpoint["url"])
        self._chat = chat
        listed = self._listed_models()
        self._model = endpoint.get("model") or self._only_model(listed)
        self._tokenize = self._form_of_tokenize()
        self._count, self._counted_by = self._counter(folder)
        self._says_what_it_read = True
        self.overhead = 0
        if not chat:
            self._chat = not self._has_completions()
        if self._chat:
            self.overhead = self._chat_overhead()

    def count_tokens(self, text: str) -> int:
        return self._count(text)

    def answer(self, sample: Sample) -> str:
        """The server's answer at temperature 0. Raises NoAnswer."""
        if self._chat:
            reply = self._ask_chat(sample.question, sample.prefix, sample.answer_tokens)
        else:
            reply = self._ask(sample.prompt, sample.answer_tokens)
        self._says_what_it_read &= reply.read > 0
        sent = sample.tokens
        if self._chat and not self._tokenize:  # without the prefix
            sent = self.count_tokens(sample.question) + self.overhead
        if 0 < reply.read < sent - COUNTS_DIFFER:
            raise NoAnswer(f"the server read {reply.read} of the prompt's {sent} tokens: its "
                           "context is shorter and it cuts prompts, or its tokens are others than "
                           f"those of {self._counted_by}", reply.text)
        said = spoken(reply.text, ran_out=reply.ran_out, reasons=reply.reasons)
        if not said.strip():
            why = " and ran out of tokens (finish_reason length)" if reply.ran_out else ""
            raise NoAnswer(f"the answer is empty{why}", reply.text, repeats=reply.ran_out)
        return said

    def facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "server": self._server.url, "server_model": self._model or "",
            "tokens_counted_by": self._counted_by,
            "path": "/v1/chat/completions" if self._chat else "/v1/completions"}
        if not self._says_what_it_read:
            facts["notes"] = [f"{self._server.url} does not say how many tokens of a prompt it "
                              "read (usage.prompt_tokens), so that a cut prompt is not noticed"]
        return facts

    def _listed_models(self) -> list[str]:
        """Their names; none if the server does not list them."""
        try:
            entries = self._server.get("/v1/models", SHORT_TIMEOUT).get("data")
        except HttpError as error:
            if error.status == 404:
                return []
            raise
        entries = entries if isinstance(entries, list) else []
        return [entry["id"] for entry in entries
                if isinstance(entry, dict) and isinstance(entry.get("id"), str)]

    def _only_model(self, names: list[str]) -> str | None:
        if len(names) > 1:
            listed = ", ".join(self._server.words(name) for name in names[:MOST_NAMES])
            more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            raise MeasureError(f"endpoint: model: expected the name of one of the models of "
                               f"{self._server.url}, {listed}{more}, but got none")
        return names[0] if names else None

    def _named(self, **fields: Any) -> dict[str, Any]:
        return {**({"model": self._model} if self._model else {}), **fields}

    # Tokens.

    def _form_of_tokenize(self) -> str | None:
        """LLAMA_CPP, VLLM, or None if the server counts no tokens."""
        for form in (LLAMA_CPP, VLLM):
            try:
                if self._count_by_server("one two", form) > 0:
                    return form
            except MeasureError:  # another form; the server itself has just been reached
                continue
        return None

    def _count_by_server(self, text: str, form: str | None = None) -> int:
        """0 if the answer has another form."""
        if (form or self._tokenize) == LLAMA_CPP:
            tokens = self._server.post("/tokenize", {"content": text, "add_special": True},
                                       SHORT_TIMEOUT).get("tokens")
            return len(tokens) if isinstance(tokens, list) else 0
        count = self._server.post("/tokenize", self._named(prompt=text), SHORT_TIMEOUT
                                  ).get("count")
        return count if isinstance(count, int) else 0

    def _counter(self, folder: str | None) -> tuple[Callable[[str], int], str]:
        if folder is not None:
            path = pathlib.Path(folder, "tokenizer.json")
            return _counter_of_file(path), str(path)
        if self._tokenize:
            return self._count_by_server, f"{self._server.url}/tokenize"
        raise MeasureError(f"endpoint: {self._server.url} has no /tokenize as llama.cpp and vLLM "
                           "have it; expected as MODEL a folder with the tokenizer.json of its "
                           "model, but got none")

    def _chat_overhead(self) -> int:
        question, prefix = "A question?", "The answer is"
        read = self._ask_chat(question, prefix, 1).read
        if not read:
            return CHAT_OVERHEAD
        return max(0, read - self.count_tokens(f"{question}\n{prefix}" if self._tokenize
                                               else question))

    # Answers.

    def _has_completions(self) -> bool:
        try:
            self._ask("One, two,", 1)
        except HttpError as error:
            if error.status == 404:
                return False
            raise
        return True

    def _ask(self, prompt: str, tokens: int) -> _Reply:
        return self._reply("/v1/completions", prompt=prompt, max_tokens=tokens)

    def _ask_chat(self, question: str, prefix: str, tokens: int) -> _Reply:
        messages = [{"role": "user", "content": question}]
        more: dict[str, Any] = {}
        if self._tokenize:
            messages.append({"role": "assistant", "content": prefix})
            more = {"chat_template_kwargs": {"enable_thinking": False}}
        if self._tokenize == VLLM:
            more |= {"add_generation_prompt": False, "continue_final_message": True}
        return self._reply("/v1/chat/completions", messages=messages, max_tokens=tokens, **more)

    def _reply(self, path: str, **fields: Any) -> _Reply:
        reply = self._server.post(path, self._named(temperature=0, **fields), ANSWER_TIMEOUT)
        choices = reply.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            raise MeasureError(f"endpoint: {self._server.url}{path}: expected an answer with "
                               f"choices, but got {self._server.words(_dumped(reply))}")
        choice, usage = choices[0], _object(reply, "usage")
        message = _object(choice, "message")
        text = message.get("content") if "message" in choice else choice.get("text")
        details = _object(usage, "completion_tokens_details")
        return _Reply(text=text if isinstance(text, str) else "",
                      ran_out=choice.get("finish_reason") == "length",
                      read=_count(usage, "prompt_tokens"),
                      reasons=any(message.get(name) for name in REASONING) or
                      _count(details, "reasoning_tokens") > 0)


def _object(fields: dict[str, Any], name: str) -> dict[str, Any]:
    found = fields.get(name)
    return found if isinstance(found, dict) else {}


def _count(fields: dict[str, Any], name: str) -> int:
    found = fields.get(name)
    return found if isinstance(found, int) else 0


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        return "lists in lists, too deep to print"


def _counter_of_file(path: pathlib.Path) -> Callable[[str], int]:
    try:
        from tokenizers import Tokenizer
    except ModuleNotFoundError as error:
        raise MeasureError(f"endpoint: tokens are counted by {path} with the package tokenizers, "
                           "which is not installed") from error
    try:
        data = read_bytes(path, MOST_JSON)
    except FileNotFoundError as error:
        raise MeasureError(f"endpoint: model: expected a folder with tokenizer.json, but there is "
                           f"no {path}") from error
    except OSError as error:
        raise MeasureError(f"endpoint: model: {path}: {error.strerror}") from error
    try:
        tokenizer = Tokenizer.from_buffer(data)
    except Exception as error:  # tokenizers raises Exception itself
        raise MeasureError(f"{path}: expected a tokenizer, but got: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return lambda text: len(tokenizer.encode(text).ids)
