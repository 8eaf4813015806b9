"""What happened in a step, in sentences: its beats, a failure and what to do about it, the sequences."""

from itertools import islice

import streamlit as st

from app import editing, session
from app.moment import Moment
from app.plays import Progress
from app.wording import plain
from kvmodel.advice import remedies
from kvmodel.beats import beats
from kvmodel.explain import explain
from kvmodel.figures import sequences_table
from kvmodel.words import count

MAX_SENTENCES = 60
"""Sentences listed for one step; a batch of thousands of ubatches has more."""

MAX_SEARCHES = 4
"""Searches in vain that are told in full, the last ones."""

AROUND = 4
"""Beats listed before and after the one that is looked at."""


def happened(moment: Moment) -> None:
    """The events of the step in sentences; a failure first, with what to do about it."""
    if not moment.step:
        first_look(moment)
        return
    if not moment.beat:
        failure(moment)
    if note := moment.timeline.scenario.ops[moment.step - 1].note:
        st.text(note)
    if moment.beat:
        beat_by_beat(moment)
        return
    events = moment.timeline.events_of(moment.step)
    told = [f"1. {explain(event)}" for event in events[:MAX_SENTENCES]]
    st.markdown("\n".join(told))
    if len(events) > MAX_SENTENCES:
        st.caption(f"and {len(events) - MAX_SENTENCES:,} more; step inside to read them one by one")


def beat_by_beat(moment: Moment) -> None:
    """The beats around the one that is looked at, which stands out."""
    every, at = beats(moment.timeline, moment.step), session.visit().view.beat
    first = max(1, min(at - AROUND, len(every) - 2 * AROUND))
    told = [
        f"{number}. **:green[{beat.sentence}]**" if number == at else f"{number}. {beat.sentence}"
        for number, beat in enumerate(islice(every, first - 1, first + 2 * AROUND), first)
    ]
    st.caption(f"Inside the operation: {at:,} of {len(every):,}")
    st.markdown("\n".join(told))


def failure(moment: Moment) -> None:
    """What went wrong, what would have fitted, and what would mend it."""
    story = moment.story
    if story is None:
        return
    fits = [] if story.fits is None else [f"Of its {count(story.n_tokens, 'token')} the first {story.fits:,} fit."]
    lines = [f"**{plain(story.what)}**", *fits, "", *(f"1. {plain(remedy)}" for remedy in story.remedies)]
    st.error("\n".join(lines))
    trials(moment)


def searches(moment: Moment) -> bool:
    """Every search in vain of a failed step in full; whether there was one."""
    story = moment.story
    if story is None or not story.searches:
        return False
    for search in story.searches[-MAX_SEARCHES:]:
        of = f" in {search.part}" if len(moment.parts) > 1 else ""
        st.markdown(f"**The search in vain for ubatch {search.ubatch}{of}**")
        st.markdown("\n".join(f"1. {plain(line)}" for line in search.lines))
    return True


def trials(moment: Moment) -> None:
    """Buttons that play the remedies which the model has tried, each as an edit that can be undone."""
    with st.container(horizontal=True, gap="xsmall"):
        for number, remedy in enumerate(remedies(moment.timeline, moment.step), 1):
            if remedy.scenario and st.button(f"Try remedy {number}", help=remedy.sentence):
                editing.adopt(remedy.scenario, Progress())
                st.rerun()


def first_look(moment: Moment) -> None:
    """What a visitor sees before the first operation."""
    scenario = moment.timeline.scenario
    st.markdown(
        "Each square is a cell: room for the K and V of one token. Press **Next**, or the right arrow key, and see"
        " tokens fill them. Click a square to ask why it is as it is."
    )
    for text in filter(None, (scenario.description, scenario.source)):
        st.text(text)


def sequences(moment: Moment) -> None:
    """Which sequences are in the cache."""
    table = sequences_table(session.half(moment.parts))
    if len(table):
        st.table(table, border="horizontal", hide_index=True)
