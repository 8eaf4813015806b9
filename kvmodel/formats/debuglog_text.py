"""The text of a log as llama.cpp wrote it: without colours, line ends of other systems, and what others put before."""

import re
from collections.abc import Iterator
from functools import lru_cache

from kvmodel.errors import ParamError
from kvmodel.limits import MAX_LOG_BYTES

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Terminal control sequences (ECMA-48): colours, cursor moves, titles."""

MARKS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8"))
"""Byte order marks; a shell that redirects output may write UTF-16."""

CUT_ROW = re.compile(r"[ .\d]*\d")
"""A row of positions that ends in a figure. Each is printed with blanks behind it, so at the end of a text without a
line end the last number may be cut short."""

MOST_WORDS = 16
"""Words of a prefix that are told apart; a longer one is none."""


def lines_of(source: str | bytes) -> list[str]:
    """The lines of a log, without a last row of positions that may be cut in a number.

    Raises:
        ParamError: it exceeds MAX_LOG_BYTES.
    """
    size = len(source)
    if size > MAX_LOG_BYTES:
        raise ParamError("log", f"{size:,} bytes", f"{MAX_LOG_BYTES:,} bytes at most")
    text = source if isinstance(source, str) else _decoded(source)
    if "\x1b" in text:
        text = ESCAPES.sub("", text)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines = text.split("\n")
    return lines[:-1] if CUT_ROW.fullmatch(lines[-1]) else lines


def _decoded(data: bytes) -> str:
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, errors="replace")
    return data.decode("utf-8", errors="replace")


class Prefix:
    """What stands before the lines of one message: a time, a host, a level.

    A log collector puts its words before every line, llama.cpp's own logger only before the first one. So a line may
    begin with all words of the prefix, with the leading ones, or with none.

    Args:
        words: what stood before the first line.
    """

    def __init__(self, words: str) -> None:
        self._shapes = _shapes(words)

    def contents(self, line: str) -> Iterator[str]:
        """What may be the line itself: without the longest prefix first, whole last; nothing but a prefix is blank."""
        for i, shape in enumerate(self._shapes):
            match = shape.match(line)
            if match:
                yield line[match.end() :]
                if i == 0 and match.end() == len(line):
                    return
        yield line


def _shapes(prefix: str) -> tuple[re.Pattern[str], ...]:
    """Patterns for the whole prefix and its leading words, longest first: digits and letters may differ."""
    parts = re.findall(r"\S+\s*|\s+", prefix)
    if len(parts) > MOST_WORDS:
        return ()
    forms = [re.sub(r"\w+|\s+|.", _form, part) for part in parts]
    return tuple(_compiled("".join(forms[:n])) for n in range(len(forms), 0, -1))


def _form(match: re.Match[str]) -> str:
    piece = match[0]
    return r"\s+" if piece.isspace() else r"\w+" if re.match(r"\w", piece) else re.escape(piece)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
