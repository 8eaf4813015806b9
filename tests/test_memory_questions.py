"""What fits, what a choice saves, how caches grow, what is refused: each checked against the planner or a rule."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.errors import ParamError
from kvmodel.geometry import MLA, Geometry, swa_pattern
from kvmodel.memory import (
    Rules,
    Settings,
    bytes_words,
    fit_report,
    growth,
    largest_n_ctx,
    mib_words,
    parse_bytes,
    plan,
    refusals,
    report,
    savings,
    shift_refusal,
)

MIB = 1 << 20
LLAMA = Geometry(32, 8, 128, 128, name="Llama 3 8B", n_ctx_train=8192)
GEMMA3 = Geometry(
    48, 8, 256, 256, name="Gemma 3 12B", arch="gemma3", swa_type="standard", n_swa=1024, swa_layers=swa_pattern(48, 6)
)
DEEPSEEK = Geometry(4, 128, 192, 128, arch="deepseek2", mla=MLA(512, 64))
MAMBA = Geometry(64, arch="mamba", recurrent_layers=True, n_embd_r=15360, n_embd_s=81920)
STABLELM = Geometry(2, 32, 80, 80, arch="stablelm")
BERT = Geometry(12, 12, 64, 64, arch="bert", has_cache=False)

SETTINGS = st.builds(
    Settings,
    n_ctx=st.just(0),
    n_seq_max=st.integers(1, 64),
    n_batch=st.integers(1, 4096),
    n_ubatch=st.integers(0, 2048),
    type_k=st.sampled_from(["f32", "f16", "q8_0", "q4_0"]),
    type_v=st.sampled_from(["f16", "q8_0"]),
    flash_attn=st.booleans(),
    swa_full=st.booleans(),
    rules=st.sampled_from(list(Rules)),
    kv_unified=st.booleans(),
)
GEOMETRIES = st.sampled_from([LLAMA, GEMMA3, DEEPSEEK])


def taken(geometry: Geometry, settings: Settings, n_ctx: int) -> int:
    return plan(geometry, replace(settings, n_ctx=n_ctx)).buffer_bytes


@given(GEOMETRIES, SETTINGS, st.integers(0, 1 << 40))
def test_the_longest_context_fits_and_the_next_does_not(geometry, settings, budget):
    fit = largest_n_ctx(geometry, settings, budget)
    if fit.n_ctx:
        assert taken(geometry, settings, fit.n_ctx) == fit.plan.buffer_bytes <= budget
        assert fit.plan.context.n_ctx == fit.n_ctx
    if fit.next_n_ctx:
        assert taken(geometry, settings, fit.next_n_ctx) == fit.next_bytes > budget
        assert plan(geometry, replace(settings, n_ctx=fit.n_ctx + 1)).context.n_ctx == fit.next_n_ctx


@given(GEOMETRIES, SETTINGS, st.integers(1, 1 << 20), st.integers(1, 1 << 20))
def test_a_longer_context_never_takes_less(geometry, settings, one, other):
    sizes = [taken(geometry, settings, n_ctx) for n_ctx in sorted((one, other))]
    assert sizes == sorted(sizes)


def test_a_budget_in_round_numbers():
    fit = largest_n_ctx(LLAMA, Settings(), 1 << 30)
    assert (fit.n_ctx, fit.next_n_ctx, fit.plan.buffer_bytes) == (8192, 8224, 1 << 30)
    assert fit_report(fit) == "In 1.00 GiB fits n_ctx 8,192 (1024.00 MiB); 8,224 takes 1028.00 MiB."


def test_nothing_may_fit():
    fit = largest_n_ctx(LLAMA, Settings(flash_attn=True), 1000)
    assert (fit.n_ctx, fit.plan, fit.next_n_ctx) == (0, None, 256)
    assert fit_report(fit) == "Nothing fits in 1,000 bytes: 256 takes 32.00 MiB."


def test_a_recurrent_model_has_no_longest_context():
    fit = largest_n_ctx(MAMBA, Settings(), 24 * MIB)
    assert (fit.next_n_ctx, fit.plan.buffer_bytes) == (0, 23.75 * MIB)
    assert "the longest that is planned for" in fit_report(fit)
    assert largest_n_ctx(MAMBA, Settings(), 23 * MIB).n_ctx == 0


def test_what_choices_save():
    found = {each.label: each for each in savings(LLAMA, Settings(8192, n_seq_max=2))}
    assert found["K in q8_0"].saved == 512 * MIB - 512 * MIB * 34 // 64
    assert [each.kind for each in found["V in q8_0"].refusals] == ["v_needs_flash"]
    both = found["K and V in q4_0, with flash attention"]
    assert (both.total, both.settings.flash_attn, both.refusals) == (1024 * MIB * 18 // 64, True, ())
    assert {"1 slot", "4 slots"} <= set(found)
    assert not any("window" in label for label in found)


def test_what_a_window_saves():
    found = {each.label: each.saved for each in savings(GEMMA3, Settings(32768))}
    assert found["window layers in full size"] == -40 * (32768 - 1536) * 2 * 2048 * 2
    assert found["2 slots"] == -40 * 1024 * 2 * 2048 * 2


def test_streams_are_a_choice_where_there_are_any():
    found = {each.label: each.saved for each in savings(LLAMA, Settings(4000, n_seq_max=3, rules="streams"))}
    assert found["one stream for all sequences"] == (3 * 1536 - 4096) * 32 * 2048 * 2
    assert not any("stream" in each.label for each in savings(LLAMA, Settings(4000, n_seq_max=3)))


def test_a_recurrent_model_has_slots_to_save_only():
    assert {each.label for each in savings(MAMBA, Settings(n_seq_max=4))} == {"1 slot", "2 slots", "8 slots"}


def test_choices_without_a_whole_number_of_blocks_are_left_out():
    odd = Geometry(2, 1, 80, 80)
    assert not any("q8_0" in each.label for each in savings(odd, Settings()))


def test_growth_with_the_context():
    grown = growth(GEMMA3, Settings(), "n_ctx", [512, 1536, 4096])
    assert grown.k["base"].tolist() == [8 * n * 4096 for n in (512, 1536, 4096)]
    assert grown.v["swa"].tolist() == [40 * n * 4096 for n in (512, 1536, 1536)]
    assert grown.buffer.tolist() == [plan(GEMMA3, Settings(n)).buffer_bytes for n in (512, 1536, 4096)]
    assert grown.values.dtype == np.int64


@pytest.mark.parametrize(("field", "values"), [("n_seq_max", [1, 2, 8]), ("n_ubatch", [64, 512, 2048])])
def test_growth_with_slots_and_with_n_ubatch(field, values):
    grown = growth(GEMMA3, Settings(65536), field, values)
    window = [{"n_seq_max": 1024 * n + 512, "n_ubatch": 1024 + n}[field] for n in values]
    assert grown.k["swa"].tolist() == [40 * n * 4096 for n in window]


@pytest.mark.parametrize(
    ("field", "values", "told"),
    [
        ("type_k", [1], "field is 'type_k'; allowed: n_ctx, n_seq_max, n_ubatch"),
        ("n_ctx", [], "number of values is 0; allowed: a whole number from 1"),
        ("n_ctx", [-5], "n_ctx is -5; allowed"),
    ],
)
def test_growth_of_what_does_not_grow(field, values, told):
    with pytest.raises(ParamError, match=re.escape(told)):
        growth(LLAMA, Settings(), field, values)


@pytest.mark.parametrize(
    ("geometry", "settings", "found"),
    [
        (LLAMA, Settings(), []),
        (LLAMA, Settings(type_v="q8_0", flash_attn=True), []),
        (LLAMA, Settings(type_v="q8_0"), [("v_needs_flash", "refused")]),
        (LLAMA, Settings(type_k="q8_0"), []),
        (LLAMA, Settings(n_seq_max=65), [("too_many_sequences", "refused")]),
        (LLAMA, Settings(n_seq_max=65, rules="0.3.7"), []),
        (LLAMA, Settings(n_seq_max=65, rules="streams"), []),
        (LLAMA, Settings(n_seq_max=257, rules="streams"), [("too_many_sequences", "refused")]),
        (STABLELM, Settings(type_k="q8_0", rules="0.3.7"), [("block", "aborts")]),
        (STABLELM, Settings(type_k="q8_0"), [("block", "wrong")]),
        (STABLELM, Settings(type_k="q8_0", flash_attn=True, rules="streams"), [("block", "refused")]),
        (STABLELM, Settings(type_v="q4_0", flash_attn=True), [("block", "wrong")]),
        (DEEPSEEK, Settings(type_v="q8_0", flash_attn=True), []),
        (DEEPSEEK, Settings(type_v="q8_0", flash_attn=True, rules="0.3.7"), [("v_needs_flash", "refused")]),
        (replace(LLAMA, arch="grok"), Settings(type_v="q8_0", flash_attn=True), [("v_needs_flash", "refused")]),
        (GEMMA3, Settings(rules="0.3.7"), [("unknown_arch", "refused")]),
        (LLAMA, Settings(1 << 22, rules="0.3.7"), [("overflow", "wrong")]),
        (LLAMA, Settings((1 << 22) - 32, rules="0.3.7"), []),
        (LLAMA, Settings(1 << 22), []),
        (MAMBA, Settings(type_k="q8_0", rules="0.3.7"), []),
        (BERT, Settings(type_v="q8_0"), []),
    ],
)
def test_what_is_refused(geometry, settings, found):
    assert [(each.kind, each.outcome) for each in refusals(geometry, settings)] == found


@pytest.mark.parametrize(
    ("geometry", "settings", "told"),
    [
        (LLAMA, Settings(), None),
        (LLAMA, Settings(rules="0.3.7"), None),
        (DEEPSEEK, Settings(rules="0.3.7"), "latent attention"),
        (DEEPSEEK, Settings(), None),
        (MAMBA, Settings(rules="0.3.7"), "recurrent"),
        (MAMBA, Settings(), None),
        (GEMMA3, Settings(4096), "1,536 cells and the other 4,096"),
        (GEMMA3, Settings(4096, swa_full=True), None),
        (GEMMA3, Settings(1024), None),
        (replace(LLAMA, arch="qwen2vl", mrope=True), Settings(rules="streams"), "several dimensions"),
        (replace(LLAMA, arch="qwen2vl", mrope=True), Settings(), None),
        (replace(LLAMA, arch="step35"), Settings(rules="streams"), "step35"),
        (BERT, Settings(), "encoder"),
    ],
)
def test_what_cannot_be_shifted(geometry, settings, told):
    found = shift_refusal(geometry, settings)
    assert (found is None) == (told is None)
    assert told is None or told in found.reason


def test_a_report_tells_caches_refusals_and_choices():
    told = report(plan(GEMMA3, Settings(32768, n_seq_max=4, type_v="q8_0")))
    assert "Gemma 3 12B (gemma3), 48 layers" in told
    assert "n_ctx 32,768, 4 sequences of 8,192, n_ubatch 512, flash attention off" in told
    assert re.search(r"^base +32768 +1 +8 +1024.00 +f16 +544.00 +q8_0 +1568.00$", told, re.MULTILINE)
    assert re.search(r"^swa +4608 +1 +40 +720.00 +f16 +382.50 +q8_0 +1102.50$", told, re.MULTILINE)
    assert "llama.cpp: A quantised V (q8_0) needs flash attention, which is off." in told
    assert "No shift: The window half has 4,608 cells" in told
    assert re.search(r"^K in q8_0 +1853.00 +817.50 +refused$", told, re.MULTILINE)


def test_a_report_of_an_encoder():
    assert "no cache, as for every encoder" in report(plan(BERT))


def test_a_plan_shows_itself_without_letting_a_name_be_markup():
    shown = plan(replace(LLAMA, name="<b>bold</b>"))
    assert "&lt;b&gt;bold&lt;/b&gt; (llama)" in shown._repr_html_()
    assert "<b>bold</b> (llama), 32 layers" in str(shown)


@pytest.mark.parametrize(
    ("text", "size"),
    [("8GiB", 8 << 30), ("7.5 gib", 15 << 29), ("500000000", 500_000_000), ("2GB", 2 * 10**9), ("512M", 512 << 20)],
)
def test_sizes_as_people_write_them(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize("text", ["", "GiB", "8 XB", "-1GiB", "1e9", "8GiB8", "9" * 30])
def test_what_is_no_size(text):
    with pytest.raises(ParamError, match="budget is "):
        parse_bytes(text)


def test_sizes_in_words():
    sizes = (0, 1, 1000, 1 << 10, 40 << 10, 1 << 20, 3 << 29)
    told = ["0 bytes", "1 byte", "1,000 bytes", "1.00 KiB", "40.00 KiB", "1.00 MiB", "1.50 GiB"]
    assert [bytes_words(size) for size in sizes] == told


def test_sizes_that_are_held_against_each_other_stay_in_mib():
    assert [mib_words(size) for size in (-(40 << 10), 104_857, 104_858, 3 << 29)] == [
        "-40.00 KiB",
        "102.40 KiB",
        "0.10 MiB",
        "1,536.00 MiB",
    ]
