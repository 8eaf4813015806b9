"""How much of a batch finds its slots when the whole of it does not."""

from collections.abc import Callable, Iterable, Iterator

from kvmodel.advice.remedy import Failure
from kvmodel.configs import RecurrentConfig
from kvmodel.events import BatchSplit, Event, SlotSearched
from kvmodel.ops import Decode
from kvmodel.player import play
from kvmodel.scenario import Scenario
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
    op = timeline.scenario.ops[step - 1] if step else None
    if not isinstance(op, Decode) or isinstance(timeline.scenario.cache, RecurrentConfig):
        return None
    if timeline.results[step - 1].ret != 1:
        return None
    bound = max((placed + room for placed, room in tries(events)), default=0)
    if len(timeline.start) == 1 and not any_too_many(events):
        return bound
    failure = Failure(timeline, step, op)
    return proven(bound, lambda n: failure.instead(shortened(op, n)))


def proven(bound: int, scenario_of: Callable[[int], Scenario]) -> int:
    """The largest number up to a bound with which the last decode of a scenario succeeds; 0 if none does."""
    while bound > 0:
        trial = play(scenario_of(bound))
        if trial.results[-1].ret == 0:
            return bound
        failed = tries(trial.events_of(trial.n_steps - 1))
        bound = min(bound - 1, max((placed + room for placed, room in failed), default=0))
    return 0


def shortened(op: Decode, n: int) -> Decode:
    """The same decode with its first `n` tokens only; its computation does not fail."""
    runs, left = [], n
    for run in op.tokens:
        if left > 0:
            taken = min(run.n, left)
            runs.append(run.model_copy(update={"n": taken, "text": run.text[:taken] if run.text else None}))
            left -= taken
    return op.model_copy(update={"tokens": tuple(runs), "fail_at": None})


def tries(events: Iterable[Event]) -> Iterator[tuple[int, int]]:
    """For every try of a step the tokens that had slots, and the longest run left for the ubatch that had none."""
    sizes: tuple[int, ...] = ()
    for event in events:
        if isinstance(event, BatchSplit):
            sizes = event.sizes
        elif isinstance(event, SlotSearched) and not event.search.found:
            search = event.search
            yield sum(sizes[: event.ubatch]), search.n_cells if search.too_many else search.longest


def any_too_many(events: Iterable[Event]) -> bool:
    """Whether a ubatch was longer than a cache, where nothing was tried and so nothing is known about its runs."""
    return any(isinstance(event, SlotSearched) and event.search.too_many for event in events)
