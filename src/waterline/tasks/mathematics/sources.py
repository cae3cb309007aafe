"""The data sets of mathematics: where they are, and how a row is read."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from waterline.runs.checks import BadInput, unknown_name

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Item:
    """A question with its right answer, or several of which one has to be given."""

    question: str
    answer: str


@dataclass(frozen=True)
class DataSet:
    """A data set of the Hugging Face hub.

    Args:
        path, config, split, file: what ``datasets.load_dataset`` takes; ``file`` is for data sets
            that are a collection of files.
        revision: the commit of the hub that is read, where the papers or their code name one; the
            main branch elsewhere.
        read: a row's question and answer; None leaves the row out.
        rows: how many there are, which is checked when the whole is read from the hub.
    """

    path: str
    split: str
    read: Callable[[Row], Item | None]
    rows: int | None = None
    config: str | None = None
    file: str | None = None
    revision: str = "main"


_GSM8K = re.compile(r"#### (-?[0-9.,]+)")


def _gsm8k(row: Row) -> Item:
    """The answer stands behind four hashes, at the end of the solution."""
    found = _GSM8K.search(row["answer"])
    if found is None:
        raise ValueError("its solution has no number behind ####")
    return Item(row["question"], found[1].replace(",", "").rstrip("."))


def _plain(row: Row) -> Item:
    question = row["problem"] if "problem" in row else row["question"]
    return Item(question, str(row["gt_answer"] if "gt_answer" in row else row["answer"]))


def _olympiad(row: Row) -> Item | None:
    """Questions of English text alone, with one answer."""
    answers = row["final_answer"]
    if row.get("is_multiple_answer") or not answers or len(answers) > 1:
        return None
    return Item(row["question"], str(answers[0]).strip("$"))


# Their order is part of every prompt's id: new ones come last.
DATA_SETS = {
    "gsm8k": DataSet("openai/gsm8k", "train", _gsm8k, rows=7_473, config="main"),
    "gsm8k_platinum": DataSet("madrylab/gsm8k-platinum", "test", _gsm8k, rows=1_209, config="main"),
    "math_levels_3_to_5": DataSet(
        "hkust-nlp/SimpleRL-Zoo-Data", "train", _plain,
        file="simplelr_qwen_level3to5/train.parquet",
    ),
    "polaris_53k": DataSet("POLARIS-Project/Polaris-Dataset-53K", "train", _plain, rows=53_291),
    "math500": DataSet("HuggingFaceH4/MATH-500", "test", _plain, rows=500),
    "aime24": DataSet("HuggingFaceH4/aime_2024", "train", _plain, rows=30),
    "aime25": DataSet("math-ai/aime25", "test", _plain, rows=30),
    "beyond_aime": DataSet("ByteDance-Seed/BeyondAIME", "test", _plain, rows=100),
    "minerva": DataSet("math-ai/minervamath", "test", _plain, rows=272),
    "olympiadbench": DataSet(
        "Hothan/OlympiadBench", "train", _olympiad, rows=674, config="OE_TO_maths_en_COMP"
    ),
}  # fmt: skip


# The id of a prompt: that of its split's first, and for each data set so many more.
FIRST_ID = {"train": 0, "dev": 500_000_000, "test": 1_000_000_000}
PER_SET = 10_000_000


def is_of(name: str, ids: Any) -> Any:
    """Whether each prompt of ``ids`` (any shape) is of the data set ``name``, in whatever split."""
    return ids % FIRST_ID["dev"] // PER_SET == list(DATA_SETS).index(name)


def data_set(name: str) -> DataSet:
    """The data set of a name.

    Raises:
        BadInput: There is none; the message has the nearest name.
    """
    if name not in DATA_SETS:
        raise unknown_name("data set", name, DATA_SETS)
    return DATA_SETS[name]


def from_hub(name: str) -> list[Row]:
    """The rows of a data set, from the hub or the hub's folder on this machine.

    Raises:
        BadInput: ``datasets`` is not installed, there is no connection, or rows are missing.
    """
    source = data_set(name)
    try:
        import datasets
    except ImportError:
        raise BadInput(
            f"The data set {name} is read by the package datasets, which is not installed: run "
            "`pip install datasets`, or name a file with task.train_file= and task.test_file=."
        ) from None
    try:
        rows = datasets.load_dataset(
            source.path, source.config, data_files=source.file, split=source.split,
            revision=source.revision,
        )  # fmt: skip
    except Exception as error:  # of many types: connections, names, formats
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise BadInput(
            f"The data set {name} ({source.path}) cannot be read ({reason}): check the connection "
            "to the hub and HF_HUB_OFFLINE, or name a file with task.train_file= and "
            "task.test_file=."
        ) from error
    if source.rows is not None and len(rows) != source.rows:
        raise BadInput(
            f"The data set {name} has {len(rows)} rows where {source.rows} are expected: pass a "
            "file of the right ones."
        )
    return [dict(row) for row in rows]


def from_file(path: Path) -> list[Row]:
    """The rows of a Parquet, JSON or JSON Lines file.

    Raises:
        BadInput: There is no such file, or it is none of these.
    """
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            return list(pq.read_table(path).to_pylist())
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json":
            return list(json.loads(text))
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    except FileNotFoundError:
        raise BadInput(f"There is no file {path}: check the path.") from None
    except IsADirectoryError:
        raise BadInput(f"{path} is a folder: name a .parquet, .json or .jsonl file.") from None
    except Exception as error:  # of any type: the readers run on whatever bytes there are
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise BadInput(
            f"{path} cannot be read as {path.suffix or 'JSON Lines'} ({reason}): give a .parquet, "
            ".json or .jsonl file."
        ) from error


def items_of(
    rows: Iterable[Row], read: Callable[[Row], Item | None], where: str
) -> dict[int, Item]:
    """Questions and answers by the number of their row.

    ``where`` is the data set or file, for messages.

    Raises:
        BadInput: A row lacks a question or an answer; the message names it.
    """
    found = {}
    for number, row in enumerate(rows):
        try:
            if not isinstance(row, Mapping):
                raise ValueError("it is no mapping")
            if (item := read(row)) is None:
                continue
            if not isinstance(item.question, str) or not item.question.strip():
                raise ValueError("it has no question")
        except (KeyError, TypeError, ValueError) as error:
            reason = f"it has no field {error}" if isinstance(error, KeyError) else str(error)
            fields = ", ".join(islice(map(str, row), 8)) if isinstance(row, Mapping) else "none"
            raise BadInput(
                f"{where}, row {number}: {reason} (its fields: {fields}); correct the row or "
                "remove it."
            ) from error
        found[number] = item
    if not found:
        raise BadInput(f"{where} holds no question: check the file.")
    return found


def reader(rows: list[Row]) -> Callable[[Row], Item | None]:
    """How the rows of a file are read, by the form of the first."""
    first = rows[0] if rows and isinstance(rows[0], Mapping) else {}
    if "final_answer" in first:
        return _olympiad
    if "####" in str(first.get("answer", "")):
        return _gsm8k
    return _plain
