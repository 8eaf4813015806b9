"""State files and caches: saved, restored, refused, and the recorded ones sent through a cache."""

import struct
from pathlib import Path

import pytest

from kvmodel.caches.iswa import IswaCache, IswaParams
from kvmodel.caches.legacy import LegacyCache
from kvmodel.caches.memory_recurrent import RecurrentMemory
from kvmodel.caches.recurrent import RecurrentCache
from kvmodel.caches.recurrent_params import RecurrentParams
from kvmodel.caches.unified import UnifiedCache
from kvmodel.errors import CacheAbort
from kvmodel.formats.errors import FormatError, StateError
from kvmodel.formats.session import SequenceFile, SessionFile, open_sequence, open_session
from kvmodel.types import CacheParams, SWAType
from tests.sessions import LIVE, hand_made
from tests.state_files import F16, NO_CELLS, PLAIN, Layer, Part, Session, sequence
from tests.streams import params


def attached(cache):
    cache.attach()
    return cache


def unified(**more) -> UnifiedCache:
    return attached(UnifiedCache(params(**more)))


def pair() -> IswaCache:
    model = params(kv_size=8, n_layer=2, swa_layers=(True, False), swa_type=SWAType.STANDARD, n_swa=1)
    return attached(IswaCache(IswaParams(model, n_ubatch=2)))


HALF = Part([(0, (0, 1)), (1, (0,))], [Layer(F16, 4, b"k0k0k1k1")], [Layer(F16, 4, b"v0w0v1w1")])


def test_a_cache_is_saved_and_restored_as_a_session() -> None:
    data = Session([1, 2], b"llama", [3], [0.25], [], [HALF]).packed()
    cache = unified()
    assert open_session(data).restore(cache, "llama") == len(data)
    saved = SessionFile.of(cache, "llama", [1, 2], [3], [0.25])
    assert saved.to_bytes() == data
    with pytest.raises(FormatError, match=r"architecture at byte 20 is llama; allowed: gemma3") as refused:
        open_session(data).restore(cache, "gemma3")
    assert refused.value.kind == "arch"


def test_a_pair_is_saved_and_restored_as_a_sequence() -> None:
    single = Part([(0, (1,)), (1, (1,))], HALF.k, HALF.v)
    data = sequence([4], single, single)
    cache = pair()
    assert open_sequence(data).restore(cache, 1) == len(data)
    assert SequenceFile.of(cache, 1, [4]).to_bytes() == data
    assert [part.cells.used for part in cache.parts] == [2, 2]


def test_a_refusal_counts_bytes_from_the_start_of_the_file() -> None:
    data = Session([1, 2], b"llama", [], [], [], [PLAIN]).packed()
    with pytest.raises(StateError) as refused:
        open_session(data).restore(unified())
    assert refused.value.kind == "bad_seq_id"
    assert struct.unpack_from("<i", data, refused.value.offset) == (2,)
    assert refused.value.consumed == refused.value.offset + 4


def test_a_cache_that_leaves_bytes_of_a_session_is_told() -> None:
    file = open_session(Session([], b"llama", [], [], [], [HALF, HALF]).packed())
    with pytest.raises(FormatError, match="bytes that the cache has no use for") as refused:
        file.restore(unified())
    assert (refused.value.kind, refused.value.offset) == ("trailing", file.parts[1].offset)


def test_a_pair_misses_the_second_half_of_a_single_file() -> None:
    file = open_session(Session([], b"llama", [], [], [], [HALF]).packed())
    with pytest.raises(StateError) as refused:
        file.restore(pair())
    assert (refused.value.kind, refused.value.offset) == ("eof", file.nbytes)


def test_a_sequence_without_cells_ends_the_process() -> None:
    file = open_sequence(sequence([], NO_CELLS))
    assert file.parts[0].n_cells == 0
    with pytest.raises(FormatError, match="cell_count at byte 12 is 0; allowed: 1 or more in a sequence file") as told:
        file.check()
    assert told.value.kind == "no_cells"
    with pytest.raises(CacheAbort) as raised:
        file.restore(unified(), 0)
    assert raised.value.quirk == "state-empty-seq"


MODEL = {"n_layer": 2, "n_head_kv": 2, "n_embd_head_k": 16, "n_embd_head_v": 16}

RECURRENT = RecurrentParams(4, n_seq_max=4, n_layer=2, ssm_d_inner=64, ssm_d_state=16)

WINDOWS = CacheParams(
    128, n_seq_max=2, swa_type=SWAType.STANDARD, n_swa=16, swa_layers=(True,) * 5 + (False,), **MODEL | {"n_layer": 6}
)


@pytest.mark.parametrize(
    ("name", "cache", "seq"),
    [
        ("0.3.11/chat-context-shift-slot0.bin", UnifiedCache(CacheParams(128, **MODEL)), 0),
        ("0.3.11/swa-slide-slot0.bin", IswaCache(IswaParams(WINDOWS, 16)), 0),
        ("0.3.11/recurrent-slot2.bin", RecurrentMemory(RECURRENT), 2),
        ("0.3.7/chat-context-shift-slot0.bin", LegacyCache(CacheParams(128, n_pad=1, **MODEL)), 0),
        ("0.3.7/recurrent-slot2.bin", RecurrentCache(RECURRENT), 2),
    ],
)
def test_a_recorded_slot_goes_through_its_cache(name: str, cache, seq: int) -> None:
    file = open_sequence(LIVE / name)
    cache.attach()
    assert file.restore(cache, seq) == file.nbytes
    assert SequenceFile.of(cache, seq, file.tokens.tolist()).to_bytes() == (LIVE / name).read_bytes()
    cells = slice(cache.parts[0].head, cache.parts[0].head + file.parts[0].n_cells)
    for part, told in zip(cache.parts, file.parts, strict=True):
        for layer in range(told.n_layer):
            assert (part.tensors.v_rows(layer, cells)[: told.n_cells] == told.v[layer].rows()).all()


@pytest.mark.parametrize("path", sorted(LIVE.glob("*/chat*session.bin")), ids=lambda path: path.parts[-2])
def test_a_recorded_session_goes_through_its_cache(path: Path) -> None:
    file = open_session(path)
    older = path.parts[-2] == "0.3.7"
    cache = attached((LegacyCache if older else UnifiedCache)(CacheParams(128, n_pad=1 if older else 32, **MODEL)))
    assert file.restore(cache, "llama") == file.nbytes
    again = SessionFile.of(cache, file.arch, file.tokens, file.output_ids, file.logits, file.embeddings)
    assert again.to_bytes() == path.read_bytes()


def test_a_file_shows_its_cells_and_layers() -> None:
    told = str(open_session(hand_made().packed()))
    assert told.splitlines()[:2] == [
        "Session file of a gemma3 model",
        f"{len(hand_made().packed())} bytes, 2 tokens, 2 outputs, 2 logits, 1 embedding",
    ]
    assert "full half, 3 cells\n0 M02\nwindow half, 3 cells\n0 M02\n" in told
    assert [line.split() for line in told.splitlines() if line.startswith("window half  ")][-1] == [
        "window", "half", "0", "q8_0", "34", "234", "f16,", "transposed", "4", "348",
    ]  # fmt: skip
    shown = str(open_sequence(sequence([], Part([(4, ()), (6, ())], PLAIN.k[:0], PLAIN.v[:0]))))
    assert "0 ??" in shown
    assert "not named  4-6" in shown
