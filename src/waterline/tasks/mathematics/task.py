"""Questions of mathematics as a task for a pretrained language model."""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from annotated_types import Ge, Le

from waterline.runs.checks import BadInput
from waterline.runs.hub import folder_or_name
from waterline.runs.seeds import permutation
from waterline.runs.settings import Seed, Text, Whole, checked
from waterline.tasks.mathematics.sources import (
    DATA_SETS,
    FIRST_ID,
    PER_SET,
    Item,
    data_set,
    from_file,
    from_hub,
    items_of,
    reader,
)
from waterline.tasks.task import Prompt

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

log = logging.getLogger("waterline")
Names = Sequence[Text]


class MathProblems:
    r"""Questions with known answers, as prompts through the chat template of a tokenizer.

    The message of the user is question, ``joint`` and ``instruction``. A prompt's id is that of its
    row in its data set, whatever is left out. Prompts of more than ``max_prompt`` tokens are left
    out and counted; so are training questions that occur twice.

    Args:
        tokenizer: a name of the Hugging Face hub or a folder; ``tokenizer_revision``: of the hub.
        train, dev, test: names of data sets (see ``DATA_SETS``), whose rows follow each other.
        train_file, dev_file, test_file: files to take in their place, in the form of the hub:
            Parquet, JSON or JSON Lines with question (or problem) and answer.
        train_rows, dev_rows, test_rows: how many prompts to take of those that remain, the first
            of a permutation with seed ``rows_seed``, in the order of the data set; None takes all.
        instruction, joint: what follows the question, and what stands between.
        system: a message before it; None leaves it to the chat template.
        stop: tokens that end a response; None takes the tokenizer's end token.
        max_prompt, max_response: tokens.

    Raises BadInput, a ValueError, for a missing tokenizer, chat template, file or connection, a row
    that cannot be read, and more ``train_rows`` than there are.
    """

    has_likelihood: ClassVar[bool] = False
    answers: ClassVar[str] = "math"

    @checked
    def __init__(
        self, *, tokenizer: Text, instruction: Text, joint: str = " ",
        train: Names = (), dev: Names = (), test: Names = (),
        train_file: Text | None = None, dev_file: Text | None = None,
        test_file: Text | None = None,
        train_rows: Whole | None = None, dev_rows: Whole | None = None,
        test_rows: Whole | None = None, rows_seed: Seed = 0,
        tokenizer_revision: Text | None = None, system: Text | None = None,
        stop: Names | None = None,
        max_prompt: Annotated[int, Ge(1), Le(1_000_000)] = 512,
        max_response: Annotated[int, Ge(1), Le(1_000_000)] = 2048,
    ) -> None:  # fmt: skip
        for name in (*train, *dev, *test):
            data_set(name)
        self.tokenizer = load_tokenizer(tokenizer, tokenizer_revision)
        self.stop_tokens = self._stop(stop)
        self.max_prompt, self.max_response = max_prompt, max_response
        self._instruction, self._joint, self._system = instruction, joint, system
        self._rows = {"train": train_rows, "dev": dev_rows, "test": test_rows}
        self._rows_seed = rows_seed
        self._from = {
            "train": (train, train_file), "dev": (dev, dev_file), "test": (test, test_file)
        }  # fmt: skip
        self._notices: list[str] = []

    @cached_property
    def splits(self) -> Mapping[str, Sequence[Prompt]]:
        """The prompts; read when first asked for."""
        items = {split: self._items(split) for split in self._from}
        prompts = {split: self._prompts(split, found) for split, found in items.items()}
        prompts = {split: self._chosen(split, found) for split, found in prompts.items()}
        if prompts["train"]:
            self._report_overlap(prompts)
        return {**prompts, "sft": []}

    @cached_property
    def fingerprint(self) -> str:
        """A short digest of all prompts and answers."""
        digest = hashlib.sha256()
        for split in self._from:
            for prompt in self.splits[split]:
                digest.update(f"{prompt.id}\0{prompt.text}\0{prompt.answer}\0".encode())
        return digest.hexdigest()[:12]

    def source_of(self, prompt: int) -> str:
        """The data set or file of a prompt's id, and the number of its row from 0."""
        split = max((s for s in FIRST_ID if FIRST_ID[s] <= prompt), key=FIRST_ID.__getitem__)
        _, file = self._from[split]
        number = prompt - FIRST_ID[split]
        if file is not None:
            return f"{file}, row {number}"
        return f"{list(DATA_SETS)[number // PER_SET]}, row {number % PER_SET}"

    def notices(self) -> list[str]:
        """What was left out and what overlaps, for the log of a run."""
        _ = self.splits
        return self._notices

    def _stop(self, names: Names | None) -> tuple[int, ...]:
        if names is None:
            end = self.tokenizer.eos_token_id
            if not isinstance(end, int):
                raise BadInput(
                    f"The tokenizer of {self.tokenizer.name_or_path} has no end token: name some "
                    "with task.stop=[…]."
                )
            return (end,)
        known = self.tokenizer.get_vocab()
        for name in names:
            if name not in known:
                raise BadInput(f"task.stop: the tokenizer has no token {name!r}: check its name.")
        return tuple(known[name] for name in names)

    def _items(self, split: str) -> dict[int, Item]:
        names, file = self._from[split]
        if file is not None:
            rows = from_file(Path(file).expanduser())
            found = items_of(rows, reader(rows), file)
            return {FIRST_ID[split] + number: item for number, item in found.items()}
        items = {}
        for name in names:
            first = FIRST_ID[split] + PER_SET * list(DATA_SETS).index(name)
            found = items_of(from_hub(name), data_set(name).read, name)
            items.update({first + number: item for number, item in found.items()})
        return items

    def _prompts(self, split: str, items: Mapping[int, Item]) -> list[Prompt]:
        made = [self._prompt(i, item) for i, item in items.items()]
        kept = [prompt for prompt in made if len(prompt.tokens) <= self.max_prompt]
        if made and not kept:
            raise BadInput(
                f"All {len(made)} prompts of {split} have more than task.max_prompt="
                f"{self.max_prompt} tokens: raise it."
            )
        if long := len(made) - len(kept):
            self._notices.append(
                f"{split}: {long} of {len(made)} prompts have more than {self.max_prompt} tokens "
                "and are left out"
            )
        if split != "train":
            return kept
        once = {prompt.text: prompt for prompt in reversed(kept)}
        if double := len(kept) - len(once):
            self._notices.append(f"train: {double} questions occur twice; the first is kept")
        return [prompt for prompt in kept if once[prompt.text] is prompt]

    def _prompt(self, index: int, item: Item) -> Prompt:
        content = f"{item.question}{self._joint}{self._instruction}"
        messages = [{"role": "system", "content": self._system}] if self._system else []
        text = str(
            self.tokenizer.apply_chat_template(
                [*messages, {"role": "user", "content": content}],
                add_generation_prompt=True, tokenize=False,
            )
        )  # fmt: skip
        tokens = self.tokenizer.encode(text, add_special_tokens=False)
        return Prompt(index, text, tuple(tokens), item.answer)

    def _chosen(self, split: str, prompts: list[Prompt]) -> list[Prompt]:
        rows = self._rows[split]
        if rows is None:
            return prompts
        if rows > len(prompts):
            raise BadInput(f"task.{split}_rows={rows}: there are {len(prompts)} prompts; lower it.")
        chosen = sorted(permutation(self._rows_seed, 0, len(prompts))[:rows].tolist())
        return [prompts[i] for i in chosen]

    def _report_overlap(self, prompts: Mapping[str, Sequence[Prompt]]) -> None:
        learned = {_key(prompt.text) for prompt in prompts["train"]}
        for split in ("dev", "test"):
            met = sum(_key(prompt.text) in learned for prompt in prompts[split])
            if prompts[split]:
                self._notices.append(
                    f"{met} of the {len(prompts[split])} questions of {split} are in train"
                )


def load_tokenizer(name: str, revision: str | None = None) -> "PreTrainedTokenizerBase":
    """A tokenizer with a chat template, by its name on the hub or its folder.

    Raises:
        BadInput: There is none, or it has no chat template.
    """
    from transformers import AutoTokenizer

    where = folder_or_name("task.tokenizer", name)
    try:
        tokenizer = AutoTokenizer.from_pretrained(where, revision=revision or "main")
    except Exception as error:  # of many types, some of them the libraries' own
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise BadInput(
            f"task.tokenizer={name}: it cannot be loaded ({reason}): check the name, the "
            "connection to the hub and HF_HUB_OFFLINE, or name a folder."
        ) from error
    if not tokenizer.chat_template:
        raise BadInput(
            f"task.tokenizer={name}: it has no chat template, by which questions become prompts; "
            "choose the tokenizer of an instruction-tuned model, or add one to its folder."
        )
    found: PreTrainedTokenizerBase = tokenizer
    return found


def _key(text: str) -> str:
    return " ".join(text.split()).casefold()
