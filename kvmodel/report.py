"""One step of a timeline as Markdown for an issue: what was asked for, what happened, why, and how to see it again.

Every part has a bound of its own, so that a report always fits into an issue; the document goes along if it fits.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from kvmodel.beats import beats, parts_at
from kvmodel.calls import call_lines
from kvmodel.cellruns import cell_lines
from kvmodel.configs import OLDER
from kvmodel.errors import check_int
from kvmodel.explain import explain
from kvmodel.limits import MAX_REPORT_CHARS, MAX_SEQ
from kvmodel.markdown import address, cut, escaped, fenced, one_line, table, within
from kvmodel.scenario import Scenario
from kvmodel.snapshot import PartSnapshot
from kvmodel.spans import owns
from kvmodel.timeline import OpResult, Timeline
from kvmodel.why import FailureStory, failure_story
from kvmodel.words import count, run

MOST_WORDS = 600
"""Characters of a text of the scenario; escaped they can be ten times as many."""

MOST_VALUE = 80
"""Characters of a value of the configuration."""

MOST_CALL, MOST_HAPPENED, MOST_SEARCHES, MOST_TABLE, MOST_CELLS = 2_000, 7_000, 10_000, 4_000, 4_000
"""Characters of the longer parts: two searches in full, some dozen sentences, runs of cells on a screen or two."""

Parts = Mapping[str, PartSnapshot]


def to_markdown(timeline: Timeline, step: int, beat: int | None = None) -> str:
    """A report on one step.

    Args:
        timeline: a played scenario.
        step: number of a step; step 0 is the empty cache.
        beat: the cells at this beat of the step, counted from 1; left out or 0, those after the step.

    Raises:
        ParamError: there is no such step, or no such beat.
    """
    inside = beats(timeline, step)
    number = check_int("beat", beat or 0, 0, len(inside))
    at = inside[number - 1] if number else None
    cursor = timeline.cursor()
    parts = parts_at(cursor, at) if at else cursor.seek(timeline.frame_of(step)).parts
    sections = [
        *_head(timeline, step),
        *_configuration(timeline.scenario),
        *_step(timeline, step),
        *_failure(failure_story(timeline, step)),
        *([f"## Cells at beat {number} of {len(inside)}", escaped(at.sentence)] if at else ["## Cells after the step"]),
        *_cells(parts),
    ]
    report = "\n\n".join(sections)
    return f"{report}\n\n## Scenario\n\n{_document(timeline.scenario, MAX_REPORT_CHARS - len(report) - 20)}\n"


def _head(timeline: Timeline, step: int) -> Iterator[str]:
    scenario, last = timeline.scenario, timeline.n_steps - 1
    yield f"# {escaped(scenario.title)}: step {step} of {last}"
    if scenario.description:
        yield f"Description: {_words(scenario.description)}"
    if scenario.source:
        yield f"Source: {address(cut(one_line(scenario.source), MOST_WORDS))}"


def _words(text: str) -> str:
    return escaped(cut(one_line(text), MOST_WORDS))


def _configuration(scenario: Scenario) -> Iterator[str]:
    cache, context = scenario.cache, scenario.context
    fields: dict[str, Any] = {"llama.cpp of": "January 2025" if cache.kind in OLDER else "mid-2025"}
    fields |= {"kind": cache.kind} | cache.model_dump(exclude_none=True) | context.model_dump(exclude_none=True)
    yield "## Configuration"
    yield table(("setting", "value"), ((name, cut(one_line(str(value)), MOST_VALUE)) for name, value in fields.items()))


def _step(timeline: Timeline, step: int) -> Iterator[str]:
    if not step:
        yield "The cache is empty: no call was made yet."
        return
    op = timeline.scenario.ops[step - 1]
    yield "## Call"
    yield fenced("\n".join(within(call_lines(op), MOST_CALL)), "python")
    if op.note:
        yield f"Note: {_words(op.note)}"
    yield _returned(timeline.results[step - 1])
    yield "## What happened"
    told = (f"- {escaped(explain(event))}" for event in timeline.events_of(step))
    yield "\n".join(within(told, MOST_HAPPENED, "- ")) or "Nothing was recorded."


def _returned(result: OpResult) -> str:
    if result.error:
        ended = "llama.cpp would end its process here" if result.aborted else "The call cannot be carried out"
        return f"{ended}: {_words(result.error)}"
    told = "It returned nothing" if result.ret is None else f"It returned {result.ret}"
    return f"{told}: {_words(result.message)}" if result.message else f"{told}."


def _failure(story: FailureStory | None) -> Iterator[str]:
    if not story:
        return
    yield "## Why it failed"
    yield escaped(story.what)
    lines = []
    for search in story.searches:
        lines.append(f"- In {search.part}, try {search.attempt}, ubatch {search.ubatch}:")
        lines += [f"  - {escaped(line)}" for line in search.lines]
    if lines:
        yield "\n".join(within(lines, MOST_SEARCHES, "- "))
    if story.fits is not None:
        yield f"Of {count(story.n_tokens, 'token')} in the batch, the first {story.fits:,} would have fit."
    if story.remedies:
        yield "## What to do"
        yield "\n".join(f"- {escaped(remedy)}" for remedy in story.remedies)


def _cells(parts: Parts) -> Iterator[str]:
    yield table(
        ("cells of", "number", "used", "head", "n_kv", "shift pending", "fragmentation"),
        ((name, part.n_cells, *_counters(part)) for name, part in parts.items()),
    )
    rows = [row for name, part in parts.items() for row in _sequences(name, part)]
    if rows:
        yield "\n".join(within(table(("cells of", "sequence", "positions", "number"), rows).split("\n"), MOST_TABLE))
    for name, part in parts.items():
        yield fenced("\n".join([f"{name}:", *within(cell_lines(part), MOST_CELLS)]), "text")


def _counters(part: PartSnapshot) -> tuple[object, ...]:
    pending = "yes" if part.counters["has_shift"] else "no"
    return part.used, part.head, part.n_kv, pending, f"{part.counters['fragmentation']:.3f}"


def _sequences(name: str, part: PartSnapshot) -> Iterator[tuple[object, ...]]:
    for seq in range(MAX_SEQ):
        first, last = part.spans[seq].tolist()
        if last >= 0:
            yield name, seq, run(first, last), int(owns(part.seqs, seq).sum())


def _document(scenario: Scenario, most: int) -> str:
    document = scenario.to_json().rstrip("\n")
    block = fenced(document, "json")
    if len(block) > most:
        return f"The document has {len(document):,} characters, too many for a report: attach it as a file."
    return block
