"""The letter of a multiple choice."""

import re

from waterline.rewards.answers.around import denied
from waterline.rewards.answers.final import final_text
from waterline.rewards.answers.latex import boxes, plain_words, spelled_out

_TAIL = 4_000
_MAX_LENGTH = 300
_LETTER = re.compile(r"(?<![A-Za-z\\{])\(?([A-Z])\)?(?![A-Za-z'’])")
_CHOSEN = re.compile(
    r"(?i:(?:answer|choice|option)\s*(?:is|are|:|=)+|I\s+(?:would\s+)?(?:pick|choose|select)\b)"
    r"\s*:?\s*(?i:option|choice)?[\s*$]*"
    r"(?:\\(?:text|mathrm)\w*\{)?[\s*]*\(?([A-Z])\)?(?![A-Za-z'’])"
)
# The article and the pronoun, where the next word is no verb that a letter could take.
_WORD = re.compile(
    r"(?:A\s+(?!(?:is|was|as|and|or|but|because|since|it|has|must|seems)\b)|I\s+)[a-z]"
)
_LABELLED = re.compile(r"(?:\(([A-Z])\)|([A-Z])[.):]|([A-H])(?=\s+[A-Z][a-z]))\s+(\S.*)", re.DOTALL)


def letter_of(text: str) -> str | None:
    """The letter of a choice, alone or with its text: ``(D)``, ``D. none``, ``D None``.

    None for anything else, and where further choices follow.
    """
    if len(text) > _MAX_LENGTH:
        return None
    alone = re.fullmatch(r"[A-Z]", plain_words(text))
    if alone:
        return alone[0]
    match = _LABELLED.fullmatch(spelled_out(text))
    if not match or re.search(r"\([A-Z]\)|\b[A-Z][.):](?:\s|$)", match[4]):
        return None
    return match[1] or match[2] or match[3]


def find_choice(response: str) -> str | None:
    """What a multiple-choice response settles on: one letter, 'A or B', or None.

    None also when a last box is never closed.
    """
    text = final_text(response)[-_TAIL:]
    if boxes(text) is None:
        return None
    chosen = list(_CHOSEN.finditer(text))
    letters = chosen[-1:] or [
        letter
        for letter in _LETTER.finditer(text)
        if not _WORD.match(text, letter.start(1)) and not denied(text, letter.start(), letter.end())
    ]
    if not letters:
        return None
    before = re.search(r"\b([A-Z])\)?\s*(?:or|and|/)\s*$", text[: letters[-1].start()])
    after = re.match(r"\s*(?:or|and|/)\s*\(?([A-Z])\b", text[letters[-1].end() :])
    parts = [before and before[1], letters[-1][1], after and after[1]]
    return " or ".join(part for part in parts if part)
