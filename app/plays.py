"""Timelines that were played, shared by all visitors who look at the same document, and playing with progress."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from time import monotonic

import streamlit as st

from kvmodel.player import Player
from kvmodel.scenario import Scenario
from kvmodel.timeline import Timeline

MAX_KEPT_BYTES = 256 << 20
"""Bytes of changes kept for all visitors; a timeline that was let go is played again."""

MAX_KEPT = 64
"""Timelines kept at most."""

SHOW_AFTER = 0.4
"""Seconds of playing after which progress is shown; most scenarios take less."""

EVERY = 0.2
"""Seconds between two reports of progress."""

Told = Callable[[int, int, float], None]
"""Is told which operation of how many is played, and how much of it is done; may raise to stop."""


class Plays:
    """The timelines last asked for, by their documents, up to a number of bytes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[Timeline, int]] = OrderedDict()
        self._lock = Lock()

    def find(self, key: str) -> Timeline | None:
        """A timeline that was kept."""
        with self._lock:
            if key not in self._kept:
                return None
            self._kept.move_to_end(key)
            return self._kept[key][0]

    def keep(self, key: str, timeline: Timeline, n_bytes: int) -> None:
        """Keep a timeline and let the oldest go, the newest never. Mutates."""
        with self._lock:
            self._kept[key] = (timeline, n_bytes)
            while len(self._kept) > 1 and (len(self._kept) > MAX_KEPT or self.n_bytes > MAX_KEPT_BYTES):
                self._kept.popitem(last=False)

    @property
    def n_bytes(self) -> int:
        """Bytes of all that is kept."""
        return sum(n_bytes for _, n_bytes in self._kept.values())


@st.cache_resource(show_spinner=False)
def _plays() -> Plays:
    return Plays()


def played(scenario: Scenario, told: Told | None = None) -> Timeline:
    """The timeline of a scenario; what `told` raises ends the playing, and nothing is kept."""
    key = scenario.to_json()
    timeline = _plays().find(key)
    if timeline is None:
        player = Player(scenario)
        _play(player, told)
        timeline = player.timeline
        _plays().keep(key, timeline, player.n_bytes)
    return timeline


def _play(player: Player, told: Told | None) -> None:
    ops = player.timeline.scenario.ops
    due = monotonic() + SHOW_AFTER

    def tell() -> None:
        nonlocal due
        if told and monotonic() >= due:
            due = monotonic() + EVERY
            told(player.op + 1, len(ops), player.work.share)

    player.watch = tell
    for op in ops:
        if not player.play(op):
            return


class Progress:
    """A bar and a button that appear if playing takes long.

    Streamlit ends a run that is under way as soon as a visitor presses anything, at the next thing it is to show: so
    the button needs no more than to be there, and whatever was played is dropped.
    """

    def __init__(self) -> None:
        self._place = st.empty()
        self._bar: st.delta_generator.DeltaGenerator | None = None

    def __call__(self, op: int, total: int, share: float) -> None:
        """Show how far it is."""
        words = f"Playing operation {op:,} of {total:,}" + (f", {share:.0%} of it done" if share else "")
        done = (op - 1 + share) / total
        if self._bar is None:
            with self._place.container(border=True):
                self._bar = st.progress(done, words)
                st.button("Stop playing", key="stop_playing")
        else:
            self._bar.progress(done, words)
