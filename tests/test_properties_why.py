"""Stories of any scenario agree with the arrays, the mask and the model itself."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kvmodel.advice.fit import shortened
from kvmodel.configs import Kind
from kvmodel.mask import kq_mask
from kvmodel.ops import Decode, TokenRun
from kvmodel.player import Player, play
from kvmodel.scenario import Scenario
from kvmodel.slots import block_reasons
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Timeline
from kvmodel.types import SWAType
from kvmodel.why import CellStory, Content, cell_story, largest_fit, mask_story
from kvmodel.why.changes import came_from
from tests.random_scenarios import any_scenario, scenarios


def content(part: PartSnapshot, cell: int) -> Content:
    return Content(int(part.pos[cell]), part.owners(cell), int(part.shift[cell]), int(part.token[cell]))


@given(any_scenario, st.data())
def test_a_story_agrees_with_the_arrays(scenario: Scenario, data: st.DataObject) -> None:
    timeline = play(scenario)
    cursor = timeline.cursor()
    frame = data.draw(st.integers(0, len(timeline.frames) - 1))
    for name, part in cursor.seek(frame).parts.items():
        stories = [cell_story(timeline, frame, name, cell) for cell in range(part.n_cells)]
        assert [story.now for story in stories] == [content(part, cell) for cell in range(part.n_cells)]
        for story in stories:
            assert all(sentence.endswith(".") for sentence in story.sentences)
            assert_history(timeline, story)
            assert (story.freed is None) == (not story.now.empty or all(c.before.empty for c in story.history))
            assert_written(timeline, story)


def assert_history(timeline: Timeline, story: CellStory) -> None:
    cursor = timeline.cursor()
    for change in story.history:
        before = content(cursor.seek(change.frame - 1).parts[story.name], story.cell)
        after = content(cursor.seek(change.frame).parts[story.name], story.cell)
        assert (change.before, change.after) == (before, after)
        assert change.frame in timeline.frames_of(change.step)
        assert change.sentence.startswith(f"Step {change.step}, {timeline.scenario.ops[change.step - 1].op}: ")


def assert_written(timeline: Timeline, story: CellStory) -> None:
    """The token was in the cell that the moves lead back to, right after it was stored."""
    token = story.now.token
    assert (story.written is None) == (token < 0)
    if story.written is None:
        return
    cell = (story.cell, *story.came_from)[-1]
    part = timeline.cursor().seek(story.written.frame).parts[story.name]
    ubatch = timeline.frames[story.written.frame].ubatch
    assert ubatch is not None
    assert token in ubatch.token.tolist()
    if not part.is_recurrent:
        assert part.token[cell] == token


@given(any_scenario)
def test_every_move_is_followed_back(scenario: Scenario) -> None:
    """Unlike a state, which may be copied, a token is in one cell at a time."""
    timeline = play(scenario)
    cursor = timeline.cursor()
    last = len(timeline.frames) - 1
    for name, part in cursor.seek(last).parts.items():
        if part.is_recurrent:
            continue
        for cell in np.flatnonzero(part.token >= 0).tolist():
            token, trail = int(part.token[cell]), [cell]
            story = cell_story(timeline, last, name, cell)
            assert story.written is not None
            for frame in range(last, story.written.frame - 1, -1):
                (where,) = np.flatnonzero(cursor.seek(frame).parts[name].token == token).tolist()
                trail += [where] if where != trail[-1] else []
            assert [cell, *story.came_from] == trail
            assert came_from(timeline, last, last, name, cell) == ()


@given(st.sampled_from(["unified", "iswa"]).flatmap(lambda kind: scenarios(kind=kind)))
def test_expired_is_what_a_search_may_overwrite(scenario: Scenario) -> None:
    timeline = play(scenario)
    last = len(timeline.frames) - 1
    player_parts = timeline.cursor().seek(last).parts
    for name, part in player_parts.items():
        reasons = reusable(timeline, name)
        for cell in range(part.n_cells):
            story = cell_story(timeline, last, name, cell)
            if len(story.now.seqs) == 1:
                assert story.expired == bool(reasons[cell] == 0)


def reusable(timeline: Timeline, name: str) -> NDArray[np.uint8]:
    """Codes of the live cache after the same operations."""
    player = Player(timeline.scenario)
    for op in timeline.scenario.ops[: timeline.n_steps - 1]:
        player.play(op)
    live = next(part for part in player.cache.parts if part.name == name)
    params = live.params
    return block_reasons(live.cells, params.swa_type, params.n_swa)


@given(st.sampled_from(["unified", "iswa", "legacy"]).flatmap(lambda kind: scenarios(kind=kind)), st.booleans())
def test_a_square_is_told_as_the_mask_has_it(scenario: Scenario, causal: bool) -> None:
    timeline = play(scenario)
    cursor = timeline.cursor()
    for number, frame in enumerate(timeline.frames):
        if frame.ubatch is None:
            continue
        for part in cursor.seek(number).parts.values():
            window = part.params.swa_type, part.params.n_swa
            n = part.n_kv
            mask = kq_mask(
                part.pos[:n],
                part.seqs[:n],
                frame.ubatch.pos,
                frame.ubatch.first_seq,
                causal=causal,
                swa_type=window[0],
                n_swa=window[1],
            )
            rows = sorted({0, len(frame.ubatch) - 1, len(mask) - 1})
            for row in rows:
                told = [mask_story(part, frame.ubatch, row, cell, causal=causal) for cell in range(part.n_cells)]
                sees = [" sees cell " in sentence for sentence in told]
                assert sees == [*(mask[row] == 0).tolist(), *[False] * (part.n_cells - n)]
                if window[0] is SWAType.NONE:
                    assert not any("shows" in sentence for sentence in told)


KINDS: tuple[Kind, ...] = ("unified", "iswa", "legacy")


@given(st.sampled_from(KINDS).flatmap(lambda kind: scenarios(kind=kind, max_ops=10)), st.data())
def test_the_largest_fit_fits_and_one_token_more_does_not(before: Scenario, data: st.DataObject) -> None:
    batch = Decode(
        tokens=(TokenRun(n=data.draw(st.integers(12, 60)), seq=(data.draw(st.integers(0, 3)),)),),
        n_ubatch=data.draw(st.integers(1, 40)),
    )
    failing = before.with_op(batch)
    timeline = play(failing)
    step = len(failing.ops)
    if timeline.n_steps <= step or timeline.results[-1].ret != 1:
        return
    fits, n = largest_fit(timeline, step), batch.tokens[0].n
    assert fits is not None
    assert 0 <= fits < n
    codes = [play(before.with_op(shortened(batch, k))).results[-1].ret for k in range(1, n + 1)]
    assert codes[:fits] == [0] * fits
    assert codes[fits:] == [1] * (n - fits)
