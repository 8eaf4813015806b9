"""Start-up logs of real runs computed again; altered ones, and what explains them."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kvmodel.errors import ParamError
from kvmodel.formats.memlog import MAX_TERMS, reconcile
from kvmodel.formats.memlog_lines import MAX_CONTEXTS, MAX_LINE, MAX_PARTS, read_contexts
from kvmodel.formats.session import open_sequence
from kvmodel.geometry import MLA, WINDOW_PATTERNS, Geometry, swa_pattern
from kvmodel.hparams.windows import RULES
from kvmodel.memory import Rules, Settings, log_lines, plan, sequence_file_bytes, state_bytes
from kvmodel.models import find
from tests.memory_cases import ROWS, geometry_of, settings_of
from tests.sources import ROOT

LIVE = sorted((ROOT / "tests/data/live").glob("*/*.log"))
SLOTS = sorted(path for path in (ROOT / "tests/data/live").glob("*/*-slot?.bin"))
SWA = ROOT / "tests/data/live/0.3.11/swa-slide.log"
SIZES = re.compile(r"buffer size =|KV self size|: size =|kv_size =|mem_size =|iswa: creating|n_ctx|n_batch|n_ubatch")
PRINTED = [row for row in ROWS.values() if re.search(r"(?i)kv self size|llama_kv_cache: size", row["printed_as"])]


def live(path) -> str:
    return path.read_text(encoding="utf-8")


def only(source, *args, **kwargs):
    [found] = reconcile(source, *args, **kwargs)
    return found


def cut(text: str) -> list[str]:
    """A row's lines: some rows quote two of them on one, with a semicolon."""
    return text.replace("; ", "\n").replace("self size =", "self size  =")


def memory_lines(text: str) -> list[str]:
    """The lines of a live log about sizes; a shorter context than the model's is remarked on by others."""
    wanted = re.compile(
        r"^\S+: (n_seq_max|n_ctx|n_ctx_per_seq|n_batch|n_ubatch|flash_attn) +="
        r"|(CPU KV buffer|self|: size|kv_size|mem_size).* = |iswa: creating|\(padded\)$"
    )
    return [line for line in text.splitlines() if wanted.search(line) and "model buffer" not in line]


@pytest.mark.parametrize("path", LIVE, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_real_log_is_computed_again(path):
    found = only(live(path))
    assert found.settings.rules == path.parent.name
    assert found.agrees
    assert all(check.buffers_agree and not check.terms for check in found.checks)
    assert found.missing == ()


@pytest.mark.parametrize("path", LIVE, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_real_log_is_printed_again(path):
    found = only(live(path))
    printed = [line.rstrip() for line in memory_lines(live(path))]
    assert list(log_lines(found.plan)) == [line for line in printed if "compute" not in line and "output" not in line]


def test_there_are_real_logs_of_both_versions():
    assert {path.parent.name for path in LIVE} == {"0.3.7", "0.3.11"}


@pytest.mark.parametrize("row", PRINTED, ids=lambda row: row["id"])
def test_a_reported_line_is_computed_again(row):
    shape, settings = geometry_of(row), settings_of(row)
    found = reconcile(cut(row["printed_as"]), shape, settings)
    assert [check.agrees for each in found for check in each.checks] == [True] * sum(len(each.checks) for each in found)


def test_reported_lines_are_many():
    assert {"m01", "m05", "m07", "m16", "m18", "m24", "m25"} <= {row["id"] for row in PRINTED}


STREAMS = Settings(5000, n_seq_max=3, rules="streams", flash_attn=True)
MODELS = {
    "pair": Geometry(12, 2, 64, 64, arch="gemma3", swa_type="standard", n_swa=128, swa_layers=swa_pattern(12, 6)),
    "hybrid": Geometry(4, (0, 2, 0, 2), 64, 64, recurrent_layers=(True, False) * 2, n_embd_r=96, n_embd_s=512),
    "latent": Geometry(3, 16, 192, 128, arch="deepseek2", mla=MLA(512, 64)),
    "mamba": Geometry(3, arch="mamba", recurrent_layers=True, n_embd_r=96, n_embd_s=512),
}


KINDS = [(name, rules) for name in MODELS for rules in Rules if (name, rules) != ("hybrid", Rules.JANUARY_2025)]
"""Every kind of cache under every rules; in January 2025 there were no hybrids."""


@pytest.mark.parametrize(("name", "rules"), KINDS)
def test_printed_lines_are_read_back(name, rules):
    settings = replace(STREAMS, rules=rules)
    found = only("\n".join(log_lines(plan(MODELS[name], settings), "CUDA0")), MODELS[name])
    assert found.agrees
    assert (found.settings.rules, found.settings.n_seq_max) == (rules, 3)
    assert all(check.buffers_agree for check in found.checks)


def test_levels_times_and_colours_before_lines_do_not_matter():
    text = "\n".join(f"\x1b[32m0.01.234.567 I {line}\x1b[0m\r" for line in live(SWA).splitlines())
    assert [check.told for check in only(text).checks] == ["0.02 MiB as computed.", "0.04 MiB as computed."]


def test_a_model_and_its_draft_are_two_contexts():
    one, other = LIVE[0], SWA
    found = reconcile(live(one) + live(other))
    assert [each.geometry.arch for each in found] == ["llama", "gemma3"]
    assert all(each.agrees for each in found)


GEMMA = only(live(SWA)).geometry
ASKED = only(live(SWA)).settings


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (replace(ASKED, type_k="q8_0"), [["types"], ["types"]]),
        (replace(ASKED, n_ctx=4096), [["n_ctx"], []]),
        (replace(ASKED, n_ctx=100), [[], []]),
        (replace(ASKED, n_ctx=90), [["padding"], []]),
        (replace(ASKED, n_seq_max=1), [[], ["slots"]]),
        (replace(ASKED, n_ubatch=64), [[], ["n_ubatch"]]),
        (replace(ASKED, swa_full=True), [[], ["swa_full"]]),
        (replace(ASKED, rules="0.3.7"), [["version"], ["version"]]),
        (replace(ASKED, n_seq_max=4, type_v="f32"), [["types"], ["types", "slots"]]),
        (replace(ASKED, n_seq_max=1, n_ubatch=64, swa_full=True, type_v="f32"), [["types"], None]),
    ],
)
def test_what_was_assumed_differently_is_named(settings, names):
    found = only(live(SWA), settings=settings)
    for check, expected in zip(found.checks, names, strict=True):
        have = [term.name for term in check.terms]
        assert have == expected if expected is not None else len(have) == MAX_TERMS
        assert check.agrees == (expected == [])
        assert check.explained


WINDOWS = {name: getattr(GEMMA, name) for name in ("swa_type", "n_swa", "swa_layers")}


@pytest.mark.parametrize(
    ("geometry", "line", "names"),
    [
        (replace(GEMMA, swa_type="none", n_swa=0, swa_layers=None), 0, ["window"]),
        (replace(GEMMA, swa_layers=swa_pattern(6, 3)), 1, ["window"]),
        (replace(GEMMA, n_layer_kv_from_start=3), 1, ["shared layers"]),
        (Geometry(6, 4, 16, 16, arch="gemma3", **WINDOWS), 0, ["model"]),
    ],
)
def test_another_model_is_named(geometry, line, names):
    assert [term.name for term in only(live(SWA), geometry).checks[line].terms] == names


def test_layers_that_share_are_named():
    own = Geometry(35, 2, 256, 256, arch="gemma3n", swa_type="standard", n_swa=512, swa_layers=swa_pattern(35, 5))
    shared = replace(own, n_layer_kv_from_start=20)
    text = "\n".join(log_lines(plan(shared, Settings(4096))))
    base, swa = only(text, own).checks
    assert [term.name for term in base.terms + swa.terms] == ["shared layers"] * 2
    assert "Only the first 20 of 35 layers" in base.told


def test_layers_without_kv_are_named():
    row = ROWS["m25"]
    dense = Geometry(48, 2, 256, 256, arch="qwen3next")
    kv, states = only(cut(row["printed_as"]), dense, settings_of(row)).checks
    assert [term.name for term in kv.terms] == ["layers without KV"]
    assert (states.computed, states.explained) == (None, False)


def test_what_latent_attention_keeps_is_named():
    row = ROWS["m16"]
    shape = geometry_of(row)
    [check] = only(row["printed_as"], shape, replace(settings_of(row), rules="0.3.11")).checks
    assert [term.name for term in check.terms] == ["latent attention"]


def test_an_unsaid_context_is_worked_out_from_the_size():
    text = "KV self size = 4352.00 MiB, K (q8_0): 2176.00, V (q8_0): 2176.00"
    [check] = only(text, Geometry(64, 8, 128, 128), Settings(4096)).checks
    assert [term.name for term in check.terms] == ["types", "n_ctx"]
    assert "The log has the size of n_ctx 32,768; 4,096 was assumed." in check.told


def test_a_figure_that_nothing_explains_is_said_to_be_so():
    [check] = only(live(LIVE[1]).replace("size =    0.03 MiB (   128", "size =    0.77 MiB (   128")).checks
    assert (check.agrees, check.terms, check.explained) == (False, (), False)
    assert "No term known here explains the difference" in check.told


def test_a_log_without_its_model_says_what_is_missing():
    found = only("KV self size = 4352.00 MiB, K (q8_0): 2176.00, V (q8_0): 2176.00")
    assert (found.plan, found.geometry, found.agrees) == (None, None, False)
    assert len(found.missing) == 2
    assert "name the model" in found.checks[0].told


def test_a_printed_list_of_heads_is_read():
    text = live(LIVE[1]).replace("n_head_kv        = 2", "n_head_kv        = [2, 0]")
    text = re.sub(r"(n_embd_[kv]_gqa     = )32", r"\1[32, 0]", text)
    assert only(text).geometry.heads == (2, 0)
    text = text.replace("[2, 0]", "[2, 0, 1]")
    assert "a list of 3" in only(text).missing[0]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "log is 'without a line about the size of a cache'"),
        ("llama_context: n_ctx = 128", "allowed: a log that llama.cpp wrote at its start"),
        ("KV self size = 1.00 MiB\n" * (MAX_PARTS + 1), "log is 'more than 256 caches'"),
        (
            "llama_context: n_ctx = 1\nKV self size = 1.00 MiB\n" * (MAX_CONTEXTS + 1),
            "log is 'more than 64 contexts'",
        ),
    ],
)
def test_what_is_no_log_is_told(text, told):
    with pytest.raises(ParamError, match=re.escape(told)):
        reconcile(text)


def test_a_log_of_riddles_ends():
    size = (
        "llama_kv_cache_unified: size = 9.00 MiB (77 cells, 3 layers, 9 seqs), K (q8_0): 1.00 MiB, V (q4_0): 2.00 MiB\n"
    )
    found = only(size * MAX_PARTS, Geometry(1024, 8, 128, 128), Settings(100))
    assert len(found.checks) == MAX_PARTS
    assert not any(check.explained for check in found.checks)


def test_an_endless_line_is_passed_over():
    assert read_contexts("KV self size = 1.00 MiB" + " =" * MAX_LINE) == ()


@given(st.data())
def test_a_damaged_log_is_refused_or_read(data):
    lines = [line for line in live(SWA).splitlines() if SIZES.search(line) or "print_info" in line]
    text = "\n".join(lines)
    at = data.draw(st.integers(0, len(text)))
    broken = text[:at] + data.draw(st.text(max_size=6)) + text[at + data.draw(st.integers(0, 40)) :]
    try:
        found = reconcile(broken)
    except ParamError:
        return
    assert all(check.told for each in found for check in each.checks)


def test_window_patterns_are_those_of_the_model_files():
    assert {
        arch: (rule.kind, rule.pattern) for arch, rule in RULES.items() if arch in WINDOW_PATTERNS
    } == WINDOW_PATTERNS


@pytest.mark.parametrize("path", SLOTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_sequence_file_has_the_computed_size(path):
    data = path.read_bytes()
    n_tokens = int.from_bytes(data[8:12], "little")
    n_cells = int.from_bytes(data[12 + 4 * n_tokens :][:4], "little")
    n_window = open_sequence(path).parts[-1].n_cells
    planned = only(live(path.with_name(path.stem.rpartition("-")[0] + ".log"))).plan
    assert sequence_file_bytes(planned, n_cells, n_tokens, n_window) == len(data)


def test_the_state_of_streams_is_not_known():
    with pytest.raises(ParamError, match=r"rules is 'streams'; allowed: 0\.3\.7 or 0\.3\.11"):
        state_bytes(plan(MODELS["pair"], STREAMS), 1)


def test_a_half_without_the_line_that_names_it_is_known_by_its_shape() -> None:
    line = (
        "llama_kv_cache_unified: size = 2048.00 MiB ( 32768 cells,   8 layers,  4 seqs),"
        " K (f16): 1024.00 MiB, V (f16): 1024.00 MiB\n"
    )
    [found] = reconcile(line, find("Gemma 3 12B"), Settings(n_ctx=32768, n_seq_max=4))
    [check] = found.checks
    assert check.agrees


def test_buffers_of_another_size_are_told() -> None:
    lines = (
        "llama_kv_cache_unified:      CUDA0 KV buffer size =  1000.00 MiB\n"
        "llama_kv_cache_unified: size = 2048.00 MiB ( 32768 cells,   8 layers,  4 seqs),"
        " K (f16): 1024.00 MiB, V (f16): 1024.00 MiB\n"
    )
    [found] = reconcile(lines, find("Gemma 3 12B"), Settings(n_ctx=32768, n_seq_max=4))
    [check] = found.checks
    assert (check.agrees, check.buffers_agree) == (True, False)
    assert check.told == "2048.00 MiB as computed. Its buffers add up to 1000.00 MiB, which is another size."
