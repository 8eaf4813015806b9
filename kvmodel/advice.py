"""What to do about an operation that failed, from what its step recorded."""

from typing import TypeVar

from kvmodel.events import BatchRefused, BatchSplit, ComputeFailed, Event, PrepareFailed, SlotSearched
from kvmodel.limits import MAX_SEQ
from kvmodel.slots import SlotSearch
from kvmodel.timeline import Timeline
from kvmodel.types import CacheParams, SWAType, pad
from kvmodel.words import cell_run, count, joined, positions

E = TypeVar("E", bound=Event)


def advice(timeline: Timeline, step: int) -> list[str]:
    """Remedies for the failure of one step, the nearest one first; empty if nothing failed.

    Args:
        timeline: a played scenario.
        step: number of a step; step 0 is the empty cache.
    """
    if not step or not timeline.results[step - 1].failed:
        return []
    result = timeline.results[step - 1]
    if result.error:
        return [_stopped(result.aborted, step)]
    if result.ret == 1:
        return _no_slot(timeline, step)
    if result.ret == -1:
        return [_refused(_last(timeline, step, BatchRefused))]
    return [_lost(_last(timeline, step, ComputeFailed))]


def _last(timeline: Timeline, step: int, kind: type[E]) -> E:
    return next(event for event in reversed(timeline.events_of(step)) if isinstance(event, kind))


def _stopped(aborted: bool, step: int) -> str:
    why = "llama.cpp would end its process here" if aborted else "The call was refused"
    return f"{why}, so the timeline ends: change or remove step {step}."


def _no_slot(timeline: Timeline, step: int) -> list[str]:
    search = _last(timeline, step, SlotSearched).search
    failed = _last(timeline, step, PrepareFailed)
    split = _last(timeline, step, BatchSplit)
    params = timeline.start[failed.cache].params
    if search.too_many:
        return [f"Set n_ubatch to {search.n_cells:,} at most: a part of a batch cannot be longer than the cache."]
    before = sum(split.sizes[: failed.n_placed])
    smaller = _smaller(search, before)
    if params.swa_type is not SWAType.NONE:
        return [smaller, *_window(search, params, split.n_ubatch)]
    missing = sum(split.sizes) - before - search.free
    return [smaller, *(_more_cells(missing, params) if missing > 0 else _in_a_row(search))]


def _smaller(search: SlotSearch, before: int) -> str:
    """The longest batch that would have fit, if any would; `before` tokens of this one had a slot."""
    if not before + search.longest:
        return "No smaller batch helps: no cell can be used."
    where = f" ({cell_run(search.longest_start, search.longest_start + search.longest)} are the longest run left)"
    return f"Send at most {count(before + search.longest, 'token')} in one decode{where if search.longest else ''}."


def _window(search: SlotSearch, params: CacheParams, n_ubatch: int) -> list[str]:
    """A window lets go of cells as its sequence goes on, so shorter parts can do what a long one cannot."""
    advised = []
    if search.longest:
        shorter = f"Set n_ubatch to {search.longest:,} at most"
        advised.append(f"{shorter}: each part that is stored pushes older positions out of the window.")
    enough = pad(params.n_swa * params.n_seq_max + n_ubatch, params.n_pad)
    if enough > params.kv_size:
        advised.append(f"Make the cache larger: {enough:,} cells hold every window and one ubatch.")
    return advised


def _more_cells(missing: int, params: CacheParams) -> list[str]:
    free = (
        f"Free {count(missing, 'more cell')}: remove a sequence that is done (seq_rm), or drop old positions of one"
        " and shift the rest (seq_rm, then seq_add)."
    )
    enough = pad(params.kv_size + missing, params.n_pad)
    return [free, f"Make the cache larger: with kv_size {enough:,} the whole batch fits."]


def _in_a_row(search: SlotSearch) -> list[str]:
    """Enough cells are free; the decode has tried a defrag already, so that one was cut short by its budget."""
    again = "Run an update with optimize once more, or with a larger n_max_nodes"
    return [f"{again}: {search.free:,} cells are free but not in a row, since this defrag used up its moves."]


def _refused(event: BatchRefused) -> str:
    match event:
        case BatchRefused(kind="not_consecutive", stored=int(stored), start=int(start)):
            expected = f"Start sequence {event.seq} at position {stored + 1}"
            if start > stored:
                return f"{expected}: {positions(stored + 1, start)} would be left out."
            return f"{expected}, or remove what it has from position {start} on first (seq_rm)."
        case BatchRefused(kind="gap"):
            return f"Send the positions of sequence {event.seq} without leaving any out."
        case BatchRefused(kind="coupled_diverged"):
            return (
                f"Bring the sequences to one span first: remove sequence {event.seq} (seq_rm) and copy the other onto"
                " it (seq_cp). Or send a token of its own to each."
            )
        case BatchRefused(kind="bad_seq_id"):
            return f"Give every token at least one sequence id, each from 0 to {MAX_SEQ - 1}."
    return "Send at least 1 token."


def _lost(event: ComputeFailed) -> str:
    starts = joined(f"sequence {seq} from position {start} on" for seq, start in event.removed)
    return f"The ubatches before number {event.ubatch} are stored; send the rest again: {starts}."
