"""What llama.cpp prints of a cache before a slot search, written cell by cell after the C++."""

from dataclasses import dataclass, field


@dataclass
class Printed:
    """A cache as the debug log knows it: position and owners of every cell, and the ranges of the sequences.

    A range may be wider than the cells (quirk cp-double-count); left out, it is that of the cells.
    """

    cells: list[tuple[int, set[int]]]
    head: int = 0
    n_swa: int = 0
    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return max((i + 1 for i, (pos, _) in enumerate(self.cells) if pos >= 0), default=0)

    @property
    def used(self) -> int:
        return sum(pos >= 0 for pos, _ in self.cells)

    @property
    def spans(self) -> dict[int, tuple[int, int]]:
        found = {}
        for seq in range(64):
            pos = [pos for pos, owners in self.cells if pos >= 0 and seq in owners]
            if pos or seq in self.ranges:
                found[seq] = self.ranges.get(seq) or (min(pos), max(pos))
        return found

    def text(self, level: int = 3) -> str:
        """The lines of one search at a level of LLAMA_KV_CACHE_DEBUG."""
        if not level:
            return ""
        size = len(self.cells)
        told = f"find_slot: n = {self.n:5d}, used = {self.used:5d}, head = {self.head:5d}, size = {size:5d}"
        text = f"{told}, n_swa = {self.n_swa:5d}\n"
        if level > 2 or (level == 2 and self.n_swa > 0):
            text += f"\n{self.owners()}\n\n{self.positions()}\n"
        for seq, (low, high) in self.spans.items():
            text += f"find_slot: min[{seq}] = {low:5d}, max[{seq}] = {high:5d}\n"
        return text

    def owners(self) -> str:
        text = ""
        for i, (pos, owners) in enumerate(self.cells):
            text += "." if pos < 0 else str(min(owners)) if len(owners) == 1 else "M"
            if i % 256 == 255:
                text += " *\n"
        return text

    def positions(self) -> str:
        text = ""
        for i, (pos, _) in enumerate(self.cells):
            text += ("." if pos < 0 else str(pos)).ljust(5)
            if i % 256 == 255:
                text += " *"
            if i % 64 == 63:
                text += "\n"
        return text
