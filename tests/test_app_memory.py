"""The Memory page without a browser: the answer, refusals, a comparison and a pasted log."""

from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from kvmodel.models import find
from tests.memory_page import errors, gemma, metrics, open_page, put, told
from tests.page import charts, unescaped, words
from tests.sources import ROOT

JANUARY = "0.3.7 (January 2025)"
SLIDE = (ROOT / "tests/data/live/0.3.11/swa-slide.log").read_text(encoding="utf-8")


def test_does_gemma_3_12b_fit_at_32k_with_four_slots() -> None:
    page = gemma()
    assert not page.exception
    assert "Yes, the caches fit: they take 3.41 GiB of 8.00 GiB, 4.59 GiB are left" in told(page)
    assert metrics(page) == {
        "all caches": "3,488.00 MiB",
        "K": "1,744.00 MiB",
        "V": "1,744.00 MiB",
        "left of the budget": "4,704.00 MiB",
        "longest n_ctx that fits": "108,032",
    }
    assert "4 slots share 32,768 positions: 8,192 each. For 32,768 each, ask for 131,072." in told(page)


def test_what_if_k_is_quantised() -> None:
    choices = charts(gemma())[0]
    texts = {note["y"]: note["text"] for note in choices["layout"]["annotations"] if note.get("yref") == "y"}
    assert texts["K in q8_0"] == "saves 817.50 MiB"
    assert metrics(gemma(type_k="q8_0"))["all caches"] == "2,670.50 MiB"


def test_what_is_too_much_is_said() -> None:
    page = gemma(budget=3.0)
    assert "No, the caches do not fit: they take 3.41 GiB of 3.00 GiB, 416.00 MiB too much" in told(page)
    assert metrics(page)["left of the budget"] == "-416.00 MiB"


def test_weights_take_their_share() -> None:
    page = gemma(taken=6.5)
    assert "No, the caches do not fit: they take 3.41 GiB of 1.50 GiB beside the weights, 1.91 GiB too much" in told(
        page
    )
    assert "Weights and compute buffers are not in it" not in told(page)
    assert metrics(put(page, taken=9.0))["longest n_ctx that fits"] == "none"


def test_a_refused_choice_says_what_to_change() -> None:
    page = gemma(type_v="q8_0")
    [message] = errors(page)
    assert message.startswith("llama.cpp refuses this. A quantised V (q8_0) needs flash attention, which is off.")
    assert message.endswith("Turn flash attention on, or keep V in f16.")
    assert "It does not run." in told(page)
    assert not errors(put(page, flash=True))


@pytest.mark.parametrize(
    ("values", "advice"),
    [
        ({"model": "StableLM 3B", "type_k": "q8_0", "rules": JANUARY}, "Choose f16 for K."),
        ({"slots": 65}, "Ask for at most 64 slots."),
        ({"model": "gpt-oss 20B"}, "Choose a later version."),
    ],
)
def test_every_refusal_comes_with_advice(values: dict[str, Any], advice: str) -> None:
    [message] = errors(put(open_page(), **values))
    assert message.endswith(advice)


@pytest.mark.parametrize(
    ("values", "words", "window"),
    [
        ({"ubatch": 2048}, "", 4 * 1024 + 2048),
        ({"ubatch": 4096}, "n_ubatch is cut to 2,048: it is at most n_batch.", 4 * 1024 + 2048),
        ({"ubatch": 4096, "batch": 4096}, "", 4 * 1024 + 4096),
        ({"batch": 256}, "n_ubatch is cut to 256: it is at most n_batch.", 4 * 1024 + 256),
        ({"ctx": 256}, "n_ubatch is cut to 256: it is at most n_batch, which is at most n_ctx.", 256),
    ],
)
def test_n_ubatch_is_no_larger_than_n_batch(values: dict[str, int], words: str, window: int) -> None:
    page = gemma(**values)
    assert words in told(page)
    assert bool(words) == ("n_ubatch is cut" in told(page))
    heads, full = 8 * 256 * 2 * 2, values.get("ctx", 32768)
    assert metrics(page)["all caches"] == f"{(8 * full + 40 * window) * heads / 2**20:,.2f} MiB"


def test_the_log_lines_of_the_version_are_shown() -> None:
    page = gemma()
    assert "size = 2048.00 MiB ( 32768 cells,   8 layers,  4 seqs), K (f16): 1024.00 MiB" in page.code[0].value
    page = put(page, model="Llama 3.1 8B", rules=JANUARY)
    assert "KV self size  = 4096.00 MiB, K (f16): 2048.00 MiB" in page.code[0].value


def test_tables_stand_in_for_the_pictures() -> None:
    page = put(gemma(), tables=True)
    assert not charts(page)
    choices, layers, growth = (table.value for table in page.dataframe)
    assert choices.set_index("other choice").loc["K in q8_0", "saves MiB"] == 817.5
    assert layers["MiB"].sum() == 3488
    assert growth.set_index("n_ctx").loc[32768, "MiB"] == 3488


def test_bars_and_curves_follow_their_choice() -> None:
    page = put(gemma(), by="type", over="n_seq_max")
    _, bars, curve = charts(page)
    assert [note["y"] for note in bars["layout"]["annotations"] if note.get("yref") == "y"] == ["K in f16", "V in f16"]
    assert curve["layout"]["xaxis"]["title"]["text"] == "slots (n_seq_max)"


def test_every_picture_has_words_for_those_who_do_not_see_it() -> None:
    alts = [chart.proto.alt for chart in gemma().get("plotly_chart")]
    assert len(alts) == 3
    assert all(alt.endswith(".") for alt in alts)


def test_the_inputs_stay_when_another_page_is_looked_at() -> None:
    page = gemma().switch_page("views/kshift.py").run().switch_page("views/memory.py").run()
    assert metrics(page)["all caches"] == "3,488.00 MiB"


def test_each_known_model_names_its_source() -> None:
    assert f"[Source]({find('Gemma 3 12B').source})" in words(gemma())


def test_a_recurrent_model_has_states_and_any_context_fits() -> None:
    page = put(open_page(), model="Mamba 2.8B")
    assert metrics(page)["longest n_ctx that fits"] == "any"
    assert "R states" in metrics(page)


def test_n_ctx_0_is_the_length_of_the_training() -> None:
    page = put(open_page(), ctx=0)
    assert "One slot with all 131,072 positions." in told(page)


def test_up_to_four_plans_are_compared() -> None:
    page = put(gemma(), page="Compare")
    page = put(page, B__type_k="q8_0", C__model="Llama 3.1 8B", C__slots=1, D__swa_full=True)
    assert "A, B and C fit in 8.00 GiB" in told(page)
    assert "B: Gemma 3 12B, n_ctx 32,768, 4 slots, K in q8_0, V in f16" in told(page)
    assert "817.50 MiB less than A" in told(page)
    assert "8,800.00 MiB more than A" in told(page)
    [chart] = charts(page)
    sums = {note["y"]: note["text"] for note in chart["layout"]["annotations"] if note.get("yref") == "y"}
    assert sums == {"A": "3,488.00 MiB", "B": "2,670.50 MiB", "C": "4,096.00 MiB", "D": "12,288.00 MiB"}


def test_a_plan_of_the_same_size_is_told_as_such() -> None:
    page = put(put(open_page(), page="Compare"), B__slots=8)
    assert "B: Llama 3.1 8B, n_ctx 8,192, 8 slots, K in f16, V in f16, 0.3.11 (mid-2025), as much as A" in told(page)


def test_a_refused_plan_of_a_comparison_does_not_count_as_fitting() -> None:
    page = put(put(gemma(), page="Compare"), B__type_v="q4_0", C__flash=True, C__type_v="q4_0")
    assert "A and C fit in 8.00 GiB" in told(page)
    [message] = errors(page)
    assert message.startswith("B: llama.cpp refuses this.")


def test_a_comparison_as_a_table() -> None:
    page = put(put(gemma(), page="Compare"), B__ctx=65536, tables=True)
    table: pd.DataFrame = page.dataframe[0].value
    assert table["name"].tolist() == ["A", "B"]
    assert table["MiB"].tolist() == [3488.0, 5536.0]
    assert not charts(page)


def log_page(text: str, source: str = "log") -> AppTest:
    page = put(gemma(), page="Reconcile a log")
    return put(page, log=text, log__from=source)


def test_a_log_that_describes_its_model_is_as_computed() -> None:
    page = log_page(SLIDE)
    assert not page.exception
    assert " as computed" in told(page)
    table: pd.DataFrame = page.table[0].value
    assert set(table["difference MiB"]) == {"0.00"}
    assert "size" in unescaped(table["as printed"].iloc[0])


PRINTED = """\
llama_kv_cache_unified_iswa: creating non-SWA KV cache, size = 32768 cells
llama_kv_cache_unified: size = 2048.00 MiB (32768 cells, 8 layers, 1 seqs), K (f16): 1024.00 MiB, V (f16): 1024.00 MiB
llama_kv_cache_unified_iswa: creating     SWA KV cache, size = 1536 cells
llama_kv_cache_unified: size = 480.00 MiB (1536 cells, 40 layers, 1 seqs), K (f16): 240.00 MiB, V (f16): 240.00 MiB
"""


def test_a_difference_is_explained_by_its_term() -> None:
    page = log_page(PRINTED, "both")
    assert "1 of 2 printed sizes as computed, 1 more explained" in told(page)
    table = page.table[0].value
    assert table["difference MiB"].tolist() == ["0.00", "-960.00"]
    assert "The log has 1 sequence; 4 was assumed." in unescaped(table["explanation"].iloc[1])
    rows = put(page, tables=True).dataframe[0].value
    assert rows["printed MiB"].tolist() == [2048.0, 480.0]


def test_a_log_without_its_model_asks_for_one() -> None:
    page = log_page(PRINTED)
    assert "compute the sizes from the chosen model" in page.info[0].value


def test_a_text_without_memory_lines_is_one_message() -> None:
    page = log_page("main: hello\n")
    assert not page.exception
    assert "without a line about the size of a cache" in errors(page)[0]
