"""How far an operation is while it is played."""

import pytest

from kvmodel.ops import Decode, SeqRm, TokenRun
from kvmodel.player import Player
from kvmodel.scenario import Scenario


def shares(cache: dict[str, object], n_tokens: int) -> list[float]:
    """The share at every event of a decode, one token a ubatch."""
    decode = Decode(tokens=(TokenRun(n=n_tokens),))
    scenario = Scenario.model_validate({"title": "one decode", "cache": cache, "context": {"n_ubatch": 1}})
    player = Player(scenario)
    found: list[float] = []
    player.watch = lambda: found.append(player.work.share)
    player.play(decode)
    return found


@pytest.mark.parametrize("kind", ["unified", "iswa", "legacy", "recurrent"])
def test_the_share_of_a_decode_grows_from_nothing_to_all(kind: str) -> None:
    window = {"n_swa": 8} if kind == "iswa" else {}
    found = shares({"kind": kind, "kv_size": 32} | window, 8)
    assert found == sorted(found)
    assert (found[0], found[-1]) == (0, 1)
    assert set(found) >= {0, 0.25, 0.5, 0.75, 1}


def test_slots_are_half_of_it_where_they_are_sought_first() -> None:
    found = shares({"kv_size": 32}, 64)
    assert max(found) == pytest.approx((32 + 1) / 128)


def test_other_operations_have_no_share() -> None:
    player = Player(Scenario.model_validate({"title": "one removal", "cache": {"kv_size": 32}}))
    player.play(Decode(tokens=(TokenRun(n=8),)))
    assert player.work.share == 1
    player.play(SeqRm(seq=0, p0=0, p1=4))
    assert player.work.share == 0
