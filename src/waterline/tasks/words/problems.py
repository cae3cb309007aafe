"""Grade-school word problems of two to five steps, made at random."""

import random
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from itertools import count

NAMES = ("Mia", "Tom", "Ana", "Ben", "Lena", "Omar", "Nina", "Paul", "Zoe", "Max", "Ida", "Raj",
         "Eva", "Leo", "Sara", "Kai")  # fmt: skip
ITEMS = ("apples", "books", "coins", "marbles", "cards", "pens", "stamps", "shells", "eggs",
         "stickers", "beads", "cookies")  # fmt: skip
BOXES = ("boxes", "bags", "packs", "baskets")
FRIENDS = ("friends", "children", "neighbors")
# Told as anything else in the problem, and of no use for the answer.
DISTRACTORS = (
    "{other} is {x} years old.", "The shop is {x} miles away.", "{name} has {x} chairs at home.",
    "It is {x} degrees outside.", "{other} read {x} pages today.", "The bus leaves in {x} minutes.",
)  # fmt: skip
STARTS = (
    "{name} has {a} {item}.", "{name} starts with {a} {item}.", "At first {name} owns {a} {item}.",
    "There are {a} {item} in the room of {name}.",
)  # fmt: skip
ASKS = (
    "How many {item} does {name} have now?", "How many {item} are left for {name}?",
    "What is the number of {item} that {name} has in the end?",
    "In the end, how many {item} does {name} have?",
)  # fmt: skip
GETS = (
    "{name} buys {b} more {item}.", "{other} gives {name} {b} {item}.",
    "Then {name} finds {b} {item}.", "After that {name} gets {b} {item} from {other}.",
)  # fmt: skip
LOSES = (
    "{name} gives {b} {item} to {other}.", "Then {name} loses {b} {item}.",
    "{name} sells {b} {item}.", "After that {other} takes {b} {item} from {name}.",
)  # fmt: skip
TIMES = (
    "Then the number of {item} grows to {b} times as many.",
    "{name} trades and now has {b} times as many {item}.",
    "By magic there are {b} times as many {item}.",
)  # fmt: skip
SHARES = (
    "{name} splits the {item} equally among {b} {friends} and keeps one part.",
    "The {item} are shared equally by {b} {friends}, and {name} takes one share.",
)  # fmt: skip
PACKS = (
    "{name} buys {b} {boxes} with {c} {item} in each.",
    "{other} brings {b} {boxes} of {c} {item} each for {name}.",
    "Then {name} finds {b} {boxes}, each with {c} {item}.",
)  # fmt: skip
GIVES_PACKS = (
    "{name} gives {b} {friends} {c} {item} each.",
    "Each of {b} {friends} takes {c} {item} from {name}.",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Problem:
    """A question, its whole-number answer, and the steps that lead there, as '3*4=12'."""

    question: str
    steps: tuple[str, ...]
    answer: int


class _Story:
    """The sentences and steps so far; ``have`` is what the person has now."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        name, other = rng.sample(NAMES, 2)
        self.words = {
            "name": name, "other": other, "item": rng.choice(ITEMS), "boxes": rng.choice(BOXES),
            "friends": rng.choice(FRIENDS),
        }  # fmt: skip
        self.have = rng.randint(3, 40)
        self.sentences = [self.say(STARTS, a=self.have)]
        self.steps: list[str] = []

    def say(self, forms: tuple[str, ...], **numbers: int) -> str:
        return self.rng.choice(forms).format(**self.words, **numbers)

    def step(self, a: int, sign: str, b: int, result: int) -> int:
        self.steps.append(f"{a}{sign}{b}={result}")
        return result


def _gets(story: _Story) -> None:
    b = story.rng.randint(2, 30)
    story.sentences.append(story.say(GETS, b=b))
    story.have = story.step(story.have, "+", b, story.have + b)


def _loses(story: _Story) -> None:
    if story.have < 4:
        return
    b = story.rng.randint(2, story.have - 1)
    story.sentences.append(story.say(LOSES, b=b))
    story.have = story.step(story.have, "-", b, story.have - b)


def _times(story: _Story) -> None:
    b = story.rng.randint(2, 5)
    if story.have * b > 200:
        return
    story.sentences.append(story.say(TIMES, b=b))
    story.have = story.step(story.have, "*", b, story.have * b)


def _shares(story: _Story) -> None:
    parts = [b for b in range(2, 10) if story.have % b == 0 and story.have > b]
    if not parts:
        return
    b = story.rng.choice(parts)
    story.sentences.append(story.say(SHARES, b=b))
    story.have = story.step(story.have, "/", b, story.have // b)


def _packs(story: _Story) -> None:
    b, c = story.rng.randint(2, 6), story.rng.randint(2, 9)
    story.sentences.append(story.say(PACKS, b=b, c=c))
    more = story.step(b, "*", c, b * c)
    story.have = story.step(story.have, "+", more, story.have + more)


def _gives_packs(story: _Story) -> None:
    b, c = story.rng.randint(2, 5), story.rng.randint(2, 6)
    if b * c >= story.have:
        return
    story.sentences.append(story.say(GIVES_PACKS, b=b, c=c))
    less = story.step(b, "*", c, b * c)
    story.have = story.step(story.have, "-", less, story.have - less)


# An event of a story and how many steps it takes; none where it does not suit what the person has.
EVENTS: tuple[tuple[Callable[[_Story], None], int], ...] = (
    (_gets, 1), (_loses, 1), (_times, 1), (_shares, 1), (_packs, 2), (_gives_packs, 2),
)  # fmt: skip


def make_problem(rng: random.Random, steps: int) -> Problem:
    """A problem whose story takes ``steps`` steps to work out.

    Half of the problems hold a sentence with a number that has nothing to do with the answer.
    """
    story = _Story(rng)
    while len(story.steps) < steps:
        left = steps - len(story.steps)
        event, _ = rng.choice([e for e in EVENTS if e[1] <= left])
        event(story)
    if rng.random() < 0.5:
        place = rng.randint(1, len(story.sentences))
        story.sentences.insert(place, story.say(DISTRACTORS, x=rng.randint(2, 60)))
    story.sentences.append(story.say(ASKS))
    return Problem(" ".join(story.sentences), tuple(story.steps), story.have)


def distinct_problems(
    rng: random.Random, steps: tuple[int, ...], given: Set[str], fits: Callable[[Problem], bool]
) -> Iterator[Problem]:
    """Problems that fit, each question once and none of those ``given`` out, without end.

    ``steps`` are the numbers of steps, drawn uniformly; a number that stands twice comes twice as
    often.
    """
    seen = set(given)
    for _ in count():
        problem = make_problem(rng, rng.choice(steps))
        if problem.question not in seen and fits(problem):
            seen.add(problem.question)
            yield problem
