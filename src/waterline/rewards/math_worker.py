"""The child process that understands mathematics: ``python -m waterline.rewards.math_worker``.

It reads one JSON object a line, ``{"gold": …, "answer": …}``, and answers each with one line,
``{"verdict": …}``, after a first line ``{"ready": true}``. It may hang or die at any input: its
parent watches the clock, and the kernel the processor time and the memory.
"""

import json
import os
import resource
import sys
from functools import lru_cache
from typing import Any

CPU_SECONDS = 3
MEMORY_BYTES = 2 * 1024**3


def _limit_cpu() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + CPU_SECONDS + 1
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))


def _parse(text: str) -> list[Any]:
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse

    return list(
        parse(text, [LatexExtractionConfig(), ExprExtractionConfig()], parsing_timeout=None)
    )


_parse_gold = lru_cache(maxsize=4_096)(_parse)


def _far_apart(gold: Any, answer: Any) -> bool:
    """Two numbers that differ by more than rounding; absolute rounding would miss tiny ones."""
    if not (getattr(gold, "is_number", False) and getattr(answer, "is_number", False)):
        return False
    difference, scale = abs((gold - answer).evalf(30)), abs(gold.evalf(30))
    return bool(difference > 1e-5 * scale)


def compare(gold: str, answer: str) -> str:
    """The verdict on ``answer`` by Math-Verify; both are texts with one marked answer."""
    from math_verify import verify

    golds = _parse_gold(gold)
    if not golds:
        return "error"
    answers = _parse(answer)
    if not answers:
        return "unparseable"
    if not verify(golds, answers, timeout_seconds=None):
        return "wrong"
    return "wrong" if _far_apart(golds[0], answers[0]) else "correct"


def main() -> None:
    """Serve until the input ends."""
    # Libraries may print: only this program's own copy of the output leads to the parent.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    compare(r"\boxed{\frac{1}{2}}", r"\boxed{\sqrt{2}}")  # imports are not part of a limit
    print(json.dumps({"ready": True}), file=replies, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        _limit_cpu()
        try:
            verdict = compare(request["gold"], request["answer"])
        except MemoryError:
            verdict = "timeout"
        except Exception:
            verdict = "unparseable"
        print(json.dumps({"verdict": verdict}), file=replies, flush=True)


if __name__ == "__main__":
    main()
