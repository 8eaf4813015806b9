"""Markdown from words that may be anything: text that shows as it is, tables and fences that nothing in them can end.

The dialect is GitHub's: tables, and links that it makes of `@name` and `#1`.
"""

import re
from collections.abc import Iterable

SPECIAL = re.compile(r"[\\`*\[\]<>|~&$]|(?<!\w)_|_(?!\w)|#(?!\d)")
LINKED = re.compile(r"@(?=\w)|#(?=\d)")
ADDRESS = re.compile(r"https?://[\w./~%#?=&+:,@-]+", re.ASCII)


def one_line(words: str) -> str:
    """Words on one line: what is no printable character, a line break of any kind too, becomes a space."""
    return " ".join("".join(c if c.isprintable() else " " for c in words).split())


def cut(words: str, most: int) -> str:
    """At most so many characters; three dots stand for the rest."""
    return words if len(words) <= most else f"{words[: most - 3].rstrip()}..."


def escaped(words: object) -> str:
    """Words that show as they are, on one line; nobody is called by name and no issue is linked."""
    return LINKED.sub(r"\g<0><!-- -->", SPECIAL.sub(r"\\\g<0>", one_line(str(words))))


def address(words: str) -> str:
    """A link if the words are an address and nothing else, else the words."""
    return f"<{words}>" if ADDRESS.fullmatch(words) else escaped(words)


def fenced(text: str, language: str = "") -> str:
    """A block of text as it is, between fences longer than any in it."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table; without rows only its head."""
    head = [escaped(column) for column in columns]
    lines = [head, ["---"] * len(head), *([escaped(word) for word in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def within(lines: Iterable[str], most: int, mark: str = "") -> list[str]:
    """The first lines, as many as fit into so many characters; one more line, after `mark`, counts the others."""
    given = list(lines)
    kept: list[str] = []
    for line in given:
        most -= len(line) + 1
        if most < 0:
            return [*kept, f"{mark}and {len(given) - len(kept):,} more"]
        kept.append(line)
    return kept
