"""Saved files of a recorded run against what the model would save at that moment: cells, types, sizes, tokens."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kvmodel.caches.base import Sequences
from kvmodel.errors import KVModelError
from kvmodel.formats.part import PartFile
from kvmodel.formats.session import SequenceFile, SessionFile, StateFile, open_sequence, open_session
from tests.replay.compare import ABSENT
from tests.replay.driver import Json
from tests.replay.live_run import LiveRun

Found = Iterator[tuple[str, Any, Any]]


def saved(run: LiveRun, cache: Sequences, call: Json) -> tuple[StateFile | None, Found]:
    """The file that a call wrote, and every field in which it is not what the model would write.

    Args:
        run: the recorded run.
        cache: as it is at that call.
        call: save_seq or save_session, with the file's name and the tokens.
    """
    path = run.file(call["file"])
    if not path.exists():
        return None, iter([("file", path.name, ABSENT)])
    is_session = call["op"] == "save_session"
    try:
        file = open_session(path) if is_session else open_sequence(path)
        anew = _anew(run, cache, call)
    except KVModelError as error:
        return None, iter([("file", path.name, f"{type(error).__name__}: {error}")])
    return file, _differences(path, file, anew, int(run.log.settings.get("n_vocab", 0)))


def _anew(run: LiveRun, cache: Sequences, call: Json) -> StateFile:
    if call["op"] == "save_session":
        return SessionFile.of(cache, run.log.settings.get("arch", ""), call["tokens"])
    return SequenceFile.of(cache, call["seq"], call["tokens"])


def _differences(path: Path, file: StateFile, anew: StateFile, n_vocab: int) -> Found:
    yield "token ids", file.tokens.tolist(), anew.tokens.tolist()
    yield "halves", len(file.parts), len(anew.parts)
    for i, (recorded, model) in enumerate(zip(file.parts, anew.parts, strict=False)):
        for name, expected, got in zip(FIELDS, _fields(recorded), _fields(model), strict=True):
            yield f"halves[{i}].{name}", expected, got
    yield "bytes of the cache", len(file.state), len(anew.state)
    if isinstance(file, SessionFile) and isinstance(anew, SessionFile):
        yield "arch", file.arch, anew.arch
        yield "logits", len(file.logits), len(file.output_ids) * n_vocab
    yield "written again", path.read_bytes() == file.to_bytes(), True


FIELDS = ("pos", "owners", "v_trans", "K types and row sizes", "V types and row sizes")


def _fields(part: PartFile) -> tuple[Any, ...]:
    k, v = ([[layer.kind.name, layer.row_bytes] for layer in layers] for layers in (part.k, part.v))
    return part.pos.tolist(), [f"{owners:x}" for owners in part.seqs.tolist()], part.v_trans, k, v
