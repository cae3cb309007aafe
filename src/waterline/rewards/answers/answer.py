"""Where the answer of a response stands."""

import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from waterline.rewards.answers.around import denied, whole
from waterline.rewards.answers.exact import exact_number
from waterline.rewards.answers.final import final_text
from waterline.rewards.answers.latex import boxes
from waterline.rewards.answers.prose import BETWEEN, NUMBER, UNIT, behind, is_bare, last

_TAIL = 4_000
_MARKED_TAIL = 40_000
# Headings begin with these marks as well: only a number alone on the line is an answer.
_HASHES = re.compile(rf"####[ \t]*({NUMBER}{UNIT})[ \t.]*$", re.ASCII | re.MULTILINE)
# Between two boxes: the second takes back the first.
_REVISION = re.compile(
    r"\b(?:wait|no|not|nope|actually|but|however|instead|mistakes?|errors?|wrong|incorrect|rather"
    r"|sorry|oops|correct(?:ion|ed|ing)|re-?check\w*|re-?calculat\w*|re-?consider\w*|alternatively"
    r"|hmm+|hold on|let me|try again|revis\w*|second thoughts?|or)\b|n't\b|不|等等|但",
    re.IGNORECASE,
)
_ANCHOR = re.compile(r"(final\s+)?answers?\s*((?:is|are|:|=)+)\s*:?\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer: its text, and whether it was marked as the answer (boxed, ``####``, bare)."""

    text: str
    marked: bool


def find_answer(response: str, complete: bool = True, count: int = 1) -> Candidate | None:
    r"""The one answer of a response, or None when there is none.

    Only what ``final_text`` leaves counts. The latest of these is taken: a ``\boxed{…}``, with
    those directly before it that are joined to it by commas, 'and' or 'or', or, when the right
    answer has ``count`` > 1 parts, as many as it takes, if no word between them takes one back; a
    number alone behind
    ``####``; mathematics or a number behind 'final answer is', or behind 'answer is' in a sentence
    after those that says nothing else. Without any, it is the whole response when that is a bare
    expression, else what stands behind the last 'answer is', else the last mathematics or number.
    A number that is denied, a bound, or part of an expression that cannot be read is no answer.

    A last box that is never closed gives no answer. A response that is not ``complete`` gives a
    marked one alone, which does not touch its end unless it is boxed: what was written may be the
    beginning of another number.
    """
    text = final_text(response)[-_MARKED_TAIL:]
    found = boxes(text)
    if found is None:
        return None
    boxed_until = found[-1][1] if found else 0
    standing = [
        (start, end, answer)
        for start, end, content in found
        if (answer := whole(text, start, end, content)) is not None
    ]
    if found and not standing:
        return None
    found = standing
    if not complete:
        text = text[: max(boxed_until, text.rfind(" ") + 1, text.rfind("\n") + 1)]
    hashes = list(_HASHES.finditer(text, boxed_until))
    marked_until = hashes[-1].end() if hashes else boxed_until
    stated = None
    for anchor in deque(_ANCHOR.finditer(text, marked_until), maxlen=8):
        final = anchor[1] is not None and ("is" in anchor[2] or "are" in anchor[2])
        if final or marked_until:
            stated = behind(text, anchor.end(), alone=not final) or stated
    if stated:
        return Candidate(stated, True)
    if hashes:
        return Candidate(hashes[-1][1].strip(), True)
    if found:
        # Boxes joined by 'and' are the parts of one answer; an earlier box alone is a step.
        cluster = [found[-1]]
        for box in reversed(found[:-1]):
            if not BETWEEN.fullmatch(text[box[1] : cluster[0][0]]):
                break
            cluster.insert(0, box)
        contents = _different(box[2].strip() for box in cluster)
        if len(contents) < count:
            contents = _parts(text, found, count) or contents
        return Candidate(", ".join(contents), True) if any(contents) else None
    if not complete:
        return None
    text = text[-_TAIL:].strip()
    if is_bare(text):
        return Candidate(text.strip("*`"), True)
    anchors = list(_ANCHOR.finditer(text))
    answer = behind(text, anchors[-1].end()) if anchors else None
    if answer is None:
        answer = last(text)
    return Candidate(answer, False) if answer else None


def _different(contents: Iterable[str]) -> list[str]:
    """Those of the contents that are not another spelling of an earlier number or text."""
    found: dict[object, str] = {}
    for content in contents:
        number = exact_number(content)
        found.setdefault((number.value, number.unit) if number else content, content)
    return list(found.values())


def _parts(text: str, found: list[tuple[int, int, str]], count: int) -> list[str] | None:
    """The contents of the last boxes, none of them taken back, when they are ``count``."""
    chain = [found[-1]]
    for box in reversed(found[:-1]):
        if _REVISION.search(text, box[1], chain[0][0]) or denied(text, box[0]):
            break
        chain.insert(0, box)
    contents = [box[2].strip() for box in chain]
    if len(contents) != count:
        contents = list(dict.fromkeys(contents))
    return contents if len(contents) == count and all(contents) else None
