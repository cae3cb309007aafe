"""Answers in words: yes, odd, no solution, an ellipse."""

import re

from waterline.rewards.answers.final import final_text
from waterline.rewards.answers.latex import boxes, spelled_out

_TAIL = 4_000
_WORDS = re.compile(r"[^\W\d_]{2,}(?:['’ -]+[^\W\d_]+)*")
_ARTICLE = re.compile(r"(?:an?|the)\s+", re.IGNORECASE)
_MATHS = frozenset(["exp", "sqrt", "log", "ln", "sin", "cos", "tan", "cot", "sec", "csc", "mod"])
_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n+")
_LEAD = (
    r"(?:(?:so|thus|hence|therefore|then|and|finally|in conclusion|conclusion|in short)\b[\s,:]*)*"
)
_ANSWER = r"(?:(?:the\s+|final\s+|correct\s+)*answer\s*(?:is|:|=)+\s*:?\s*)"
_YES_NO = re.compile(
    rf"^{_LEAD}{_ANSWER}?(yes|no)(?![a-z-])(?!\s*(?:or|and|/))(?=\s*(?:[,.;:!—–-]|$))"
    rf"|{_ANSWER}(yes|no|true|false)(?![a-z-])(?!\s*(?:or|and|/))",
    re.IGNORECASE,
)
_IS = r"(?:\b(?:is|are|be|was|were|becomes|has|have|there\s+(?:is|are)|called)\s+|[:=]\s*|^)"
_VERB = re.compile(r"(?:does|do|is|are|has|have|can|cannot|must|will)\b")
_END = (
    r"(?=\s*(?:[.!)]*$|[,;]\s*(?!or\b|and\b|but\b|nor\b)"
    r"|(?:solutions?|because|since|for|as)\b))"
)


def words_of(text: str) -> str:
    """An answer in words in one spelling, '' for anything else.

    Without capitals, article, hyphens and full stop. Single letters, names of functions and other
    mathematics are no words; three letters and fewer are too, unless they are 'yes' or 'no',
    when they might be variables.
    """
    text = spelled_out(text).strip("*_.!:; ")
    if not _WORDS.fullmatch(text):
        return ""
    key = re.sub(r"[\s-]+", " ", _ARTICLE.sub("", text, count=1)).casefold()
    parts = key.split()
    if not parts or _MATHS.intersection(parts):
        return ""
    return key if len(key) > 2 or key in ("no",) else ""


def says(text: str, words: str) -> bool | None:
    """Whether a sentence, or the last of several that answers, gives ``words`` as its answer.

    'yes' and 'no' count at the beginning of a sentence, and every answer behind 'is', 'are', 'has'
    or a colon where the sentence, or its clause, ends with it. What is denied or goes on with 'or'
    does not. None when the text answers nothing.
    """
    sentences = [s.strip() for s in _SENTENCES.split(text.strip()) if s.strip(" .*_")]
    sentences = [s for s in sentences if not s.endswith("?")]
    if not sentences:
        return None
    if words in ("yes", "no"):
        found = [m for s in sentences if (m := _YES_NO.search(s))]
        return (found[-1][1] or found[-1][2]).casefold() == words if found else None
    announced = [s for s in sentences if re.search(_ANSWER, s, re.IGNORECASE)]
    sentence = re.sub(r"[\s-]+", " ", (announced or sentences)[-1])
    begin = r"\s" if _VERB.match(words) else _IS
    spelled = rf"{begin}(?:an?\s+|the\s+|indeed\s+)?{re.escape(words)}{_END}"
    return True if re.search(spelled, sentence, re.IGNORECASE) else None


def find_words(response: str, words: str) -> bool | None:
    """``says`` of the final text of a response; None also when a last box is never closed."""
    text = final_text(response)[-_TAIL:]
    if boxes(text) is None:
        return None
    return says(re.sub(r"[*_$]|\\(?:text\w*|mathrm)\s*\{([^{}]*)\}", r"\1", text), words)
