"""Word problems as a task."""

import random
from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated, ClassVar

from annotated_types import Ge, Le, MinLen

from waterline.runs.settings import Seed, checked
from waterline.tasks.task import LazyPrompts, Prompt
from waterline.tasks.words.problems import Problem, distinct_problems
from waterline.tasks.words.tokenizer import END, INSTRUCTION, word_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

Count = Annotated[int, Ge(0), Le(500_000_000)]
Steps = Annotated[Sequence[Annotated[int, Ge(2), Le(5)]], MinLen(1)]
_FIRST_ID = {"train": 0, "dev": 500_000_000, "test": 1_000_000_000, "sft": 1_500_000_000}


class WordProblems:
    r"""Grade-school word problems, each answered by its steps and ``\boxed{…}``.

    The prompt is the question and the instruction of the papers through the tokenizer's chat
    template. ``sft``, ``train``, ``dev`` and ``test`` are numbers of problems; no question occurs
    twice. ``steps`` are the numbers of steps of a solution, each as often as it stands there. A
    solution has at most ``max_response`` tokens.

    Raises ValueError for a count, a number of steps or a length out of range.
    """

    has_likelihood: ClassVar[bool] = False
    answers: ClassVar[str] = "math"

    @checked
    def __init__(
        self, *, sft: Count, train: Count, dev: Count, test: Count, steps: Steps = (2, 3, 4, 5),
        seed: Seed = 0, max_response: Annotated[int, Ge(24), Le(4096)] = 40,
    ) -> None:  # fmt: skip
        self.tokenizer: PreTrainedTokenizerFast = word_tokenizer()
        self.stop_tokens = (self.tokenizer.convert_tokens_to_ids(END),)
        self.max_response = max_response
        self._seed, self._steps = seed, tuple(steps)
        self._counts = {"test": test, "dev": dev, "train": train, "sft": sft}
        self._made: dict[str, list[Prompt]] = {}
        self._solutions: dict[int, tuple[int, ...]] = {}
        self._given: set[str] = set()
        self.splits: dict[str, Sequence[Prompt]] = {
            split: LazyPrompts(self._counts[split], partial(self._prompts, split))
            for split in _FIRST_ID
        }

    def target(self, prompt: Prompt) -> tuple[int, ...]:
        """The demonstration that supervised training imitates."""
        self._prompts("sft")
        return self._solutions[prompt.id]

    def _prompts(self, split: str) -> list[Prompt]:
        # As for mazes: test first, sft last, so that a longer split changes none before it.
        for name, wanted in self._counts.items():
            if split in self._made:
                break
            if name not in self._made:
                rng = random.Random(f"{self._seed} {name}")
                found = distinct_problems(rng, self._steps, self._given, self._fits)
                problems = list(islice(found, wanted))
                self._given.update(problem.question for problem in problems)
                self._made[name] = [
                    self._prompt(i, problem) for i, problem in enumerate(problems, _FIRST_ID[name])
                ]
                if name == "sft":
                    ids = range(_FIRST_ID[name], _FIRST_ID[name] + len(problems))
                    self._solutions = dict(zip(ids, map(self._solution, problems), strict=True))
        return self._made[split]

    def _prompt(self, index: int, problem: Problem) -> Prompt:
        message = {"role": "user", "content": f"{problem.question} {INSTRUCTION}"}
        text = self.tokenizer.apply_chat_template(
            [message], add_generation_prompt=True, tokenize=False
        )
        tokens = self.tokenizer.encode(str(text), add_special_tokens=False)
        return Prompt(index, str(text), tuple(tokens), str(problem.answer))

    def _solution(self, problem: Problem) -> tuple[int, ...]:
        text = "".join(f"{step};" for step in problem.steps) + f"\\boxed{{{problem.answer}}}{END}"
        return tuple(self.tokenizer.encode(text, add_special_tokens=False))

    def _fits(self, problem: Problem) -> bool:
        return len(self._solution(problem)) <= self.max_response
