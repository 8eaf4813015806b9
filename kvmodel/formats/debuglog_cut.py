"""Cutting a run of digits into numbers without a mark between them.

llama.cpp prints the owners of the cells without separators, and positions of 5 digits and more too. Where several cuts
are possible, the one with the fewest breaks counts: a break is a cell that does not go on where its neighbour stopped.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from kvmodel.limits import MAX_READINGS

Option = tuple[int, int]
"""Characters that a number takes, and the number."""

State = tuple[int, int, int]
"""Cells that have their number, characters they took, and the last number."""

START: State = (0, 0, -1)


class TooManyReadings(Exception):
    """MAX_READINGS are spent."""


@dataclass
class Budget:
    """Symbols that may still be tried in one log."""

    left: int = MAX_READINGS

    def spend(self) -> None:
        """Count one symbol.

        Raises:
            TooManyReadings: none was left.
        """
        self.left -= 1
        if self.left < 0:
            raise TooManyReadings


@dataclass(frozen=True)
class Cut:
    """Numbers of all cells.

    Attributes:
        values: of a cut with the fewest breaks; empty if there is no cut at all.
        unclear: cells for which another such cut says something else.
    """

    values: tuple[int, ...]
    unclear: tuple[int, ...] = ()


def cut(
    n: int,
    length: int,
    options: Callable[[int, int], Iterable[Option]],
    is_break: Callable[[int, int, int], bool],
    budget: Budget,
) -> Cut:
    """Cut `length` characters into `n` numbers.

    States with fewer breaks are looked at first (a breadth-first search over steps of 0 and 1), so little is tried
    where the text says one thing.

    Args:
        n: cells.
        length: characters.
        options: (cell, character) -> what may stand there for the cell.
        is_break: (cell, number of the cell before it, its own number) -> whether there is a break between them.
        budget: of the log.

    Raises:
        TooManyReadings: the budget is spent.
    """
    costs, sources, ends = {START: 0}, {START: [START]}, []
    queue, done, best = deque([START]), set[State](), n
    while queue and costs[queue[0]] <= best:
        state = queue.popleft()
        if state in done:
            continue
        done.add(state)
        if state[:2] == (n, length):
            ends.append(state)
            best = costs[state]
        if state[0] == n:
            continue
        for width, value in options(*state[:2]):
            budget.spend()
            step = int(state[0] > 0 and is_break(state[0], state[2], value))
            after, cost = (state[0] + 1, state[1] + width, value), costs[state] + step
            if cost < costs.get(after, n + 1):
                costs[after], sources[after] = cost, [state]
                (queue.append if step else queue.appendleft)(after)
            elif cost == costs[after]:
                sources[after].append(state)
    return _traced(n, ends, sources)


def _traced(n: int, ends: list[State], sources: dict[State, list[State]]) -> Cut:
    """Walk back along every cheapest cut at once."""
    if not ends:
        return Cut(())
    values, unclear, states = [], [], ends
    for cell in range(n - 1, -1, -1):
        values.append(states[0][2])
        if len({state[2] for state in states}) > 1:
            unclear.append(cell)
        states = list(dict.fromkeys(source for state in states for source in sources[state]))
    return Cut(tuple(reversed(values)), tuple(reversed(unclear)))
