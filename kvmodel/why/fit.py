"""The largest part of a batch that would have found its slots, sent in place of the batch that found none."""

from collections.abc import Iterable, Iterator

from kvmodel.configs import RecurrentConfig
from kvmodel.events import BatchSplit, Event, SlotSearched
from kvmodel.ops import Decode
from kvmodel.player import play
from kvmodel.timeline import Timeline


def largest_fit(timeline: Timeline, step: int) -> int | None:
    """Tokens from the start of the batch that would have fit, None if the step did not fail for want of a slot.

    The searches of the step bound the number from above: a shorter batch is cut at the same places, so it fails at the
    same ubatch, until the last one is as long as the longest run that was left. In a single cache the bound fits; in a
    pair the other half may have no slot, so there the model is asked, and the scenario replayed up to the step. A pair
    cuts a batch of several sequences anew when it fails; a longer part could then fit in another order.

    Args:
        timeline: a played scenario.
        step: number of a step.

    Raises:
        ParamError: there is no such step.
    """
    events = timeline.events_of(step)
    scenario, op = timeline.scenario, timeline.scenario.ops[step - 1] if step else None
    if not isinstance(op, Decode) or isinstance(scenario.cache, RecurrentConfig):
        return None
    if timeline.results[step - 1].ret != 1:
        return None
    bound, certain = _bound(events), len(timeline.start) == 1 and not _too_many(events)
    while bound and not certain:
        before = scenario.ops[: step - 1]
        trial = play(scenario.model_copy(update={"ops": (*before, shortened(op, bound))}))
        if trial.results[-1].ret == 0:
            break
        bound = min(bound - 1, _bound(trial.events_of(step)))
    return bound


def shortened(op: Decode, n: int) -> Decode:
    """The same decode with its first `n` tokens only; its computation does not fail."""
    runs, left = [], n
    for run in op.tokens:
        if left > 0:
            taken = min(run.n, left)
            runs.append(run.model_copy(update={"n": taken, "text": run.text[:taken] if run.text else None}))
            left -= taken
    return op.model_copy(update={"tokens": tuple(runs), "fail_at": None})


def _bound(events: Iterable[Event]) -> int:
    """The most that any try of the step had room for: what had slots before a search failed, and what it had left."""
    return max((placed + room for placed, room in _tries(events)), default=0)


def _tries(events: Iterable[Event]) -> Iterator[tuple[int, int]]:
    """For every try the tokens that had slots, and the longest run left for the ubatch that had none."""
    sizes: tuple[int, ...] = ()
    for event in events:
        if isinstance(event, BatchSplit):
            sizes = event.sizes
        elif isinstance(event, SlotSearched) and not event.search.found:
            search = event.search
            yield sum(sizes[: event.ubatch]), search.n_cells if search.too_many else search.longest


def _too_many(events: Iterable[Event]) -> bool:
    """Whether a ubatch was longer than a cache, where nothing was tried and so nothing is known about its runs."""
    return any(isinstance(event, SlotSearched) and event.search.too_many for event in events)
