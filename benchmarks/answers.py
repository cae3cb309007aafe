"""Measures the verifier of mathematics: agreement, speed, and hostile text among ordinary answers.

python benchmarks/answers.py [--data FOLDER] [--hostile 1000] [--ordinary 10000]
python benchmarks/answers.py --kinds   # each kind of answer of the tests, beside plain Math-Verify

A table, and a last line of JSON. Agreement and the speed on MATH-500 need a folder with
``answer_verification`` and ``math500``, and are left out without it.
"""

import argparse
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

from waterline.rewards import math as judge
from waterline.rewards import verify_math, verify_math_many
from waterline.rewards.workers import WorkerPool

KINDS = Path(__file__).resolve().parents[1] / "tests/rewards/kinds.jsonl"


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a JSON Lines file; none when there is no such file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def agreement(data: Path) -> dict[str, str]:
    """How many labelled answers get the verdict of their label, and the false positives."""
    found = {}
    for name in ("pairs", "model_outputs"):
        rows = rows_of(data / f"answer_verification/{name}.jsonl")
        # A label of null: the gold answer cannot be read, so that no response is right.
        verdicts = verify_math_many([r["output"] for r in rows], [r["gold"] for r in rows])
        right = [v.verdict == "correct" for v in verdicts]
        agreed = sum(r == bool(row["expected"]) for r, row in zip(right, rows, strict=True))
        wrong = sum(r and not row["expected"] for r, row in zip(right, rows, strict=True))
        if rows:
            found[name] = f"{agreed} of {len(rows)}, {wrong} false positives"
    return found


def by_kind() -> list[str]:
    """Lines of a table: for each kind of labelled answer, both verifiers' right verdicts."""
    from math_verify import parse, verify

    def plain(row: dict[str, Any]) -> bool:
        alternatives = [row["gold"]] if isinstance(row["gold"], str) else row["gold"]
        answer = parse(row["response"])
        golds = [parse(g if "$" in g or "oxed" in g else f"${g}$") for g in alternatives]
        return any(verify(gold, answer) for gold in golds)

    def told(name: str, right: list[bool], rows: list[dict[str, Any]]) -> str:
        agreed = sum(r == row["right"] for r, row in zip(right, rows, strict=True))
        false = sum(r and not row["right"] for r, row in zip(right, rows, strict=True))
        return f"{name}: {agreed} right verdicts, {false} false positives"

    cases: list[dict[str, Any]] = [json.loads(line) for line in KINDS.read_text().splitlines()]
    lines = []
    for kind in dict.fromkeys(case["kind"] for case in cases):
        rows = [case for case in cases if case["kind"] == kind]
        ours = verify_math_many([r["response"] for r in rows], [r["gold"] for r in rows])
        verdicts = told("ours", [v.verdict == "correct" for v in ours], rows)
        rival = told("Math-Verify", [plain(row) for row in rows], rows)
        lines.append(f"{kind}: {len(rows)} cases; {verdicts}; {rival}")
    return lines


def rate(responses: list[str], golds: list[str]) -> tuple[float, int]:
    """Verdicts a second, one after another, and how many were ``correct``."""
    start = time.perf_counter()
    verdicts = [verify_math(r, g).verdict for r, g in zip(responses, golds, strict=True)]
    return len(responses) / (time.perf_counter() - start), verdicts.count("correct")


def ordinary(n: int, rng: random.Random) -> list[tuple[str, str]]:
    """Solutions as a model writes them, four of five with numbers, half of them right."""
    found = []
    for _ in range(n):
        a, b = rng.randint(2, 999), rng.randint(2, 99)
        off = rng.choice((0, 1))
        kind = rng.randrange(10)
        work = f"First we add {a} and {b}. The sum is {a + b}, so we go on.\n" * rng.randint(1, 12)
        if kind < 4:
            answer, gold = rf"\boxed{{{a * b + off}}}", str(a * b)
        elif kind < 6:
            answer, gold = f"#### {a + b + off:,}", str(a + b)
        elif kind < 8:
            answer, gold = rf"The answer is $\frac{{{a + off}}}{{{b}}}$.", rf"\frac{{{a}}}{{{b}}}"
        elif kind < 9:
            answer, gold = rf"\boxed{{{a}\sqrt{{{b + off}}}}}", rf"{a}\sqrt{{{b}}}"
        else:
            answer, gold = rf"\boxed{{x^2 - {a}x + {b + off}}}", f"{b} - {a}x + x^2"
        found.append((work + answer, gold))
    return found


def hostile(n: int, rng: random.Random) -> list[tuple[str, str]]:
    """Responses made to cost time or memory, each of a kind that its number decides."""
    found = []
    for i in range(n):
        k, big = rng.randint(3, 9), rng.randint(10**8, 10**10)
        kinds = (
            rf"\boxed{{{k}^{{{k}^{{{k}^{{{k}}}}}}}}}",
            rf"The answer is {k}**{k}**{k}**{k}",
            rf"\boxed{{({big})!}}",
            rf"\boxed{{\frac{{{big}!}}{{{k}!}}}}",
            rf"\boxed{{\sum_{{n=1}}^{{{big}}} \frac{{1}}{{n}}}}",
            rf"\boxed{{\sum_{{n=1}}^{{10^{{{k}}}}} n^{k}}}",
            rf"\boxed{{\prod_{{n=1}}^{{{k}00}} (x + n)}}",
            rf"\boxed{{(a+b+c+d+e+f)^{{{k}00}}}}",
            rf"\boxed{{\binom{{{big}}}{{{big // 2}}}}}",
            "x" * 10_000_000 + rf"\boxed{{{k}}}",
            rf"\boxed{{{'{' * 50_000}{k}{'}' * 50_000}}}",
            r"\boxed{" * 20_000 + str(k),
            rf"\boxed{{{'(' * 40}{k}{')' * 40}}}",
            "\udcff\ud800" * 1_000 + "\\boxed{\udcff" + f"{k}^x}}",
            rf"\boxed{{{'9' * 5_000}}}",
            rf"\boxed{{{k}^{{{big}}}}}",
        )
        found.append((kinds[i % len(kinds)], rng.choice((str(k), rf"\sqrt{{{k}}}"))))
    return found


def verdicts_of(cases: list[tuple[str, str]]) -> list[str]:
    """The verdicts on (response, gold), several at once as in a run."""
    found = verify_math_many([r for r, _ in cases], [g for _, g in cases])
    return [v.verdict.value for v in found]


class Asked(WorkerPool):
    """The pool of the verifier, which counts how often Math-Verify is asked."""

    def __init__(self) -> None:
        super().__init__(judge._pool.size)
        self.count = 0
        judge._pool = self

    def ask(self, gold: str, answer: str) -> str:
        self.count += 1
        return super().ask(gold, answer)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path())
    parser.add_argument("--hostile", type=int, default=1_000)
    parser.add_argument("--ordinary", type=int, default=10_000)
    parser.add_argument("--kinds", action="store_true")
    arguments = parser.parse_args()
    if arguments.kinds:
        print("\n".join(by_kind()))
        return
    rng = random.Random(0)
    found: dict[str, object] = dict(agreement(arguments.data))

    numbers = [str(rng.randint(0, 10**6)) for _ in range(5_000)]
    found["plain numbers a second"] = round(rate([rf"\boxed{{{n}}}" for n in numbers], numbers)[0])
    solutions = rows_of(arguments.data / "math500/test.jsonl")
    if solutions:
        verify_math(r"\boxed{\sqrt{8}}", r"2\sqrt{2}")  # starting a worker is not timed
        texts = [str(row["solution"]) for row in solutions]
        speed, right = rate(texts, [str(row["answer"]) for row in solutions])
        found["MATH-500 solutions a second"] = round(speed)
        found["MATH-500 solutions right"] = f"{right} of {len(solutions)}"

    plain, bad = ordinary(arguments.ordinary, rng), hostile(arguments.hostile, rng)
    asked = Asked()
    alone = verdicts_of(plain)
    expected, asked.count = asked.count, 0
    mixed = [*enumerate(plain), *((-1, case) for case in bad)]
    rng.shuffle(mixed)
    start = time.perf_counter()
    told = list(zip((i for i, _ in mixed), verdicts_of([case for _, case in mixed]), strict=True))
    found["mix, seconds"] = round(time.perf_counter() - start, 1)
    found["mix, hostile refused before sympy"] = len(bad) - (asked.count - expected)
    found["mix, hostile verdicts"] = dict(Counter(v for i, v in told if i < 0))
    found["mix, ordinary verdicts that differ"] = sum(v != alone[i] for i, v in told if i >= 0)
    for name, value in found.items():
        print(f"{name:40} {value}")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
