"""Prompts that ask for facts planted in them: five tasks of RULER in short form.

RULER is Hsieh et al. 2024 (arXiv 2404.06654); a single needle in a haystack is Kamradt 2023.

    needle         one sentence with a key and its value, in unrelated sentences
    multi-key      four such sentences with different keys, one of which is asked for
    multi-value    four values of one key, all asked for
    variables      VAR A = 12345, VAR B = VAR A, ...: all names that have the value
    common-words   a list in which some words are several times as frequent as the others

A prompt ends with the beginning of its answer, so that models without instruction tuning continue
it. Prompts are made here from a few words; the same seed, task, length and number give the same
prompt. Its length in tokens is the one asked for, less the room for the answer, and hardly less:
filler is added word by word. RULER's examples of solved tasks are not here.
"""

from __future__ import annotations

import dataclasses
import random
from typing import Callable

from sextant.measure.errors import MeasureError

Count = Callable[[str], int]

WITH_DEPTH = ("needle", "multi-key", "multi-value")
NEEDLES = 4  # keys of multi-key, values of multi-value
VARIABLES = 5

# Filler.
TIMES = ("In the morning", "After lunch", "Before dusk", "On most days", "Late in summer",
         "Some time later", "At the weekend", "When it rains", "As a rule", "By the evening")
ADJECTIVES = ("old", "small", "round", "plain", "heavy", "empty", "dusty", "wide", "narrow",
              "painted", "wooden", "broken", "clean", "cheap", "simple", "solid")
VERBS = ("stands", "lies", "rests", "stays", "remains", "waits", "is kept", "is left")
PLACES = ("beside", "near", "behind", "under", "above", "next to", "in front of", "opposite")
PEOPLE = ("The neighbours", "Two visitors", "The children", "A few workers", "Our friends",
          "Some travellers")
DEEDS = ("looked at", "talked about", "walked past", "asked about", "cleaned", "moved", "painted",
         "forgot", "liked", "repaired")

# Keys are a quality and an animal, neither of which is in the filler.
QUALITIES = ("amber", "brave", "clever", "crimson", "eager", "gentle", "golden", "happy", "humble",
             "jolly", "lively", "lucky", "mellow", "noble", "proud", "purple", "quick", "silent",
             "silver", "swift", "tender", "violet", "wise", "young")
ANIMALS = ("badger", "beaver", "camel", "dolphin", "eagle", "falcon", "gecko", "heron", "jaguar",
           "koala", "lizard", "magpie", "otter", "panda", "parrot", "pelican", "puffin", "rabbit",
           "raven", "salmon", "spider", "tiger", "turtle", "walrus", "weasel", "zebra")

# Things of the filler; two of them are a word of common-words ("basketladder"), of which there are
# thousands. No such word contains another.
THINGS = tuple("""
anchor apron arrow bakery balcony banner barrel basket bench blanket boat bottle bowl box bridge
broom brush bucket button cabin cable candle canvas carpet castle cellar chain chair chapel chimney
church clock coat coin column corner cottage cradle crane cup curtain cushion desk dish door drawer
drum engine farm fence ferry flag flute forest fountain frame garden garage gate glass glove guitar
hammer handle harbor helmet hill house island jacket jar jewel kettle kitchen kite ladder
lake lamp lantern lawn letter library locker magnet map market meadow mirror mountain museum
notebook office orchard oven paddle painting palace paper park path pencil piano picture pillow
pipe planet plate pocket pond poster quilt radio railing ribbon river road roof rope saddle sail
scarf school shelf shed shirt shovel sign sink sofa spoon staircase station statue stove
street suitcase table teapot temple tent ticket tower towel tractor train tray trumpet tunnel
umbrella valley vase velvet village violin wagon wall wheel window wool yard
""".split())

# (common words, their frequency, the frequency of others) of common-words, by the room there is:
# the first for which at least half of the list can be of other words.
LISTS = ((10, 30, 3), (10, 10, 1), (5, 10, 1), (3, 6, 1))


@dataclasses.dataclass(frozen=True)
class Sample:
    """A prompt and its answer.

    question: the prompt without the beginning of its answer, the prefix. depth: the place of the
    needle, or of the first of several values, from 0 (start) to 1 (end); None if the task has
    none. tokens: of the prompt; with answer_tokens, the most that an answer may have, at most
    length."""

    task: str
    length: int
    depth: float | None
    sample: int
    question: str
    prefix: str
    expected: list[str]
    tokens: int
    answer_tokens: int

    @property
    def prompt(self) -> str:
        return f"{self.question}\n{self.prefix}"


@dataclasses.dataclass(frozen=True)
class _Form:
    """A prompt whose body has any size from 0 to most; larger sizes have more tokens. item: the
    form in which a talkative model lists an expected string."""

    intro: str
    body: Callable[[int], str]
    most: int
    asked: str
    prefix: str
    expected: list[str]
    item: str = "{}"

    @property
    def longest_answer(self) -> str:
        """It repeats the prefix and makes a list."""
        items = [f"{n}. {self.item.format(one)}" for n, one in enumerate(self.expected, 1)]
        return "\n".join([self.prefix, *items])

    def prompt(self, size: int) -> tuple[str, str]:
        return f"{self.intro}\n\n{self.body(size)}\n\n{self.asked}", self.prefix


def make(task: str, length: int, sample: int, *, depths: int, seed: int, count_tokens: Count,
         overhead: int = 0) -> Sample:
    """The prompt with number `sample`, which has depth number sample % depths.

    count_tokens: of a string, by the model's tokenizer. overhead: tokens that a chat template adds.
    Raises MeasureError for an unknown task, and for a length that is too short or too long for the
    task."""
    depth = depth_of(sample, depths) if task in WITH_DEPTH else None
    form, room = _form(task, length, sample, depth, seed, count_tokens, overhead)

    def tokens(size: int) -> int:
        return count_tokens("\n".join(form.prompt(size))) + overhead

    size = _largest(lambda size: tokens(size) + room <= length, form.most)
    if size == form.most:
        raise MeasureError(f"retrieval: lengths: expected at most {tokens(size) + room} tokens for "
                           f"{task}, whose words are then all used, but got {length}")
    question, prefix = form.prompt(size)
    return Sample(task, length, depth, sample, question, prefix, form.expected, tokens(size), room)


def check_length(task: str, length: int, samples: int, *, seed: int, count_tokens: Count,
                 overhead: int = 0) -> None:
    """Raises MeasureError if a prompt is too short for one of the samples. Makes no filler."""
    for sample in range(samples):
        _form(task, length, sample, 0.0, seed, count_tokens, overhead)


def _form(task: str, length: int, sample: int, depth: float | None, seed: int,
          count_tokens: Count, overhead: int) -> tuple[_Form, int]:
    """The first form that fits without filler, and the tokens of its longest answer."""
    if task not in TASKS:
        raise MeasureError(f"retrieval: tasks: expected some of {', '.join(TASKS)}, but got "
                           f"{task!r}")
    shortest = 0
    for form in TASKS[task](f"{seed} {task} {length} {sample}", depth):
        room = count_tokens(form.longest_answer)
        shortest = count_tokens("\n".join(form.prompt(0))) + overhead + room
        if shortest <= length:
            return form, room
    # The shortest prompts of samples differ by up to a fifth.
    raise MeasureError(f"retrieval: lengths: expected at least {shortest + shortest // 4} tokens "
                       f"for {task} with this tokenizer, but got {length}")


def depth_of(sample: int, depths: int) -> float:
    """Evenly from 0 to 1; the middle if there is one depth."""
    return sample % depths / (depths - 1) if depths > 1 else 0.5


def _largest(fits: Callable[[int], bool], most: int) -> int:
    """The largest size that fits, if 0 does and no size that is too large is followed by one that
    fits. The size returned fits in any case."""
    low, high = 0, min(64, most)
    while low < high and fits(high):
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


class _Filler:
    """Sentences from a seed, with needles among them."""

    def __init__(self, seed: str, needles: list[tuple[float, str]]) -> None:
        self._random = random.Random(f"{seed} filler")
        self._sentences: list[list[str]] = []
        self._needles = sorted(needles, key=lambda needle: needle[0])

    def __call__(self, words: int) -> str:
        """The first `words` words, of which the last sentence may be cut short. A needle at place p
        of 0 to 1 comes after the share p of the sentences."""
        sentences: list[str] = []
        left = words
        while left > 0:
            if len(sentences) == len(self._sentences):
                self._sentences.append(self._sentence())
            next_one = self._sentences[len(sentences)]
            sentences.append(" ".join(next_one[:left]).rstrip(",") + ".")
            left -= len(next_one)
        before: list[list[str]] = [[] for _ in range(len(sentences) + 1)]
        for place, needle in self._needles:
            before[round(place * len(sentences))].append(needle)
        parts = [part for needles, sentence in zip(before, [*sentences, ""])
                 for part in (*needles, sentence) if part]
        return " ".join(parts)

    def _sentence(self) -> list[str]:
        def one(words: tuple[str, ...]) -> str:
            return self._random.choice(words)

        thing = f"{one(ADJECTIVES)} {one(THINGS)}"
        place = f"{one(VERBS)} {one(PLACES)} the {one(THINGS)}"
        return self._random.choice((f"{one(PEOPLE)} {one(DEEDS)} the {thing}",
                                    f"{one(TIMES)}, the {thing} {place}",
                                    f"The {thing} {place}")).split()


def _with_filler(filler: _Filler, **more) -> list[_Form]:
    return [_Form(body=filler, most=1 << 40, **more)]


def _needles(seed: str, depth: float | None, keys: int, values: int) -> list[_Form]:
    """keys x values sentences; the first key is asked for, whose first value is at `depth`."""
    source = random.Random(seed)
    names = [f"{a}-{b}" for a, b in zip(source.sample(QUALITIES, keys),
                                        source.sample(ANIMALS, keys))]
    numbers = [str(n) for n in source.sample(range(10**6, 10**7), keys * values)]
    one, what, verb = "The special number", f"special number for {names[0]}", "is"
    if values > 1:
        one, verb = "One of the special numbers", "are"
        what = f"{values} special numbers for {names[0]}"
    placed = [(source.random() if n else float(depth or 0),
               f"{one} for {names[n // values]} is {number}.") for n, number in enumerate(numbers)]
    return _with_filler(
        _Filler(seed, placed), expected=numbers[:values],
        intro="Remember every special number in the text below. You will be asked about it.",
        asked=f"What {verb} the {what} mentioned in the text above?",
        prefix=f"The {what} mentioned in the text above {verb}")


def _needle(seed: str, depth: float | None) -> list[_Form]:
    return _needles(seed, depth, 1, 1)


def _multi_key(seed: str, depth: float | None) -> list[_Form]:
    return _needles(seed, depth, NEEDLES, 1)


def _multi_value(seed: str, depth: float | None) -> list[_Form]:
    return _needles(seed, depth, 1, NEEDLES)


def _variables(seed: str, _: float | None) -> list[_Form]:
    source = random.Random(seed)
    names: list[str] = []
    while len(names) < VARIABLES:
        name = "".join(source.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=5))
        names += [name] if name not in names else []
    value = str(source.randrange(10000, 100000))
    places = sorted(source.random() for _ in names)
    chain = [f"VAR {name} = {before}." for name, before in
             zip(names, [value, *(f"VAR {name}" for name in names)])]
    return _with_filler(
        _Filler(seed, list(zip(places, chain))), expected=names, item=f"VAR {{}} = {value}",
        intro="The text below assigns values to variables. A variable can get the value of an "
              "earlier one. Remember them.",
        asked=f"Which variables have the value {value} in the text above?",
        prefix=f"In the text above, {VARIABLES} variables have the value {value}. They are:")


def _common_words(seed: str, _: float | None) -> list[_Form]:
    pairs = [divmod(number, len(THINGS)) for number in range(len(THINGS) ** 2)]
    words = [THINGS[a] + THINGS[b] for a, b in pairs if a != b]
    random.Random(seed).shuffle(words)
    return [_word_list(seed, words, *sizes) for sizes in LISTS]


def _word_list(seed: str, words: list[str], common: int, often: int, seldom: int) -> _Form:
    frequent, others = words[:common], words[common:]
    least = common * often // seldom

    def body(size: int) -> str:
        listed = frequent * often + others[:least + size] * seldom
        random.Random(f"{seed} order").shuffle(listed)
        return " ".join(listed)

    return _Form(
        body=body, most=len(others) - least, expected=frequent,
        intro="Below is a list of words. Some are far more frequent than the others. Remember the "
              "most frequent ones.",
        asked=f"Which {common} words are the most frequent in the list above?",
        prefix=f"The {common} most frequent words in the list above are:")


TASKS: dict[str, Callable[[str, float | None], list[_Form]]] = {
    "needle": _needle, "multi-key": _multi_key, "multi-value": _multi_value,
    "variables": _variables, "common-words": _common_words}
