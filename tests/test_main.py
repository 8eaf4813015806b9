"""The command line: a plan of every kind of source, and one clear message with exit code 2 for everything else."""

import json
import os
import subprocess
import sys

import pytest

from kvmodel.__main__ import FAILED, main
from kvmodel.limits import MAX_CONFIG_BYTES
from tests.gguf_files import write_gguf
from tests.sources import ROOT

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
    "vocab_size": 128256,
}
LOG = ROOT / "tests/data/live/0.3.11/swa-slide.log"


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    return str(path)


def run(capsys, *argv: str) -> tuple[int, str, str]:
    code = main(["memory", *argv])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_config_is_planned(capsys, config):
    code, out, err = run(capsys, "--config", config, "--ctx", "32768", "--type-k", "q8_0")
    assert (code, err) == (0, "")
    assert "1088.00  q8_0    2048.00  f16     3136.00" in out
    assert "Buffers: 3.06 GiB (3,288,334,336 bytes)" in out


def test_a_gguf_file_is_planned(capsys, tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf", name="Tiny")
    code, out, _ = run(capsys, "--gguf", str(path), "--ctx", "32768", "--type-v", "f32")
    assert code == 0
    assert "Tiny (llama), 2 layers" in out
    assert f"({2 * 32768 * 32 * (2 + 4):,} bytes)" in out


def test_a_well_known_model_is_planned(capsys):
    _, out, _ = run(capsys, "--model", "gemma 3 12b", "--ctx", "32768", "--slots", "4", "--budget", "8GiB")
    assert "Gemma 3 12B (gemma3), 48 layers" in out
    assert "In 8.00 GiB fits n_ctx 108,032" in out


def test_a_budget_is_answered(capsys, config):
    _, out, _ = run(capsys, "--config", config, "--budget", "1GiB", "--flash-attn")
    assert "In 1.00 GiB fits n_ctx 8,192 (1024.00 MiB); 8,448 takes 1056.00 MiB." in out


def test_log_lines_are_printed(capsys, config):
    _, out, _ = run(capsys, "--config", config, "--ctx", "2048", "--lines", "--rules", "0.3.7")
    assert "llama_init_from_model: KV self size  =  256.00 MiB, K (f16):  128.00 MiB, V (f16):  128.00 MiB" in out


def test_the_context_of_the_training_is_the_one_of_0(capsys, config):
    assert "n_ctx 8,192," in run(capsys, "--config", config, "--ctx", "0")[1]


def test_a_log_is_computed_again(capsys):
    code, out, _ = run(capsys, "--log", str(LOG))
    assert code == 0
    assert out == "line 101, base: 0.02 MiB as computed.\nline 110, swa: 0.04 MiB as computed.\n"


def test_a_log_is_held_against_a_model(capsys, config):
    _, out, _ = run(capsys, "--log", str(LOG), "--config", config)
    assert "The model in the log (gemma3, 6 layers) has another shape." in out


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["--ctx", "4096"], "'--ctx'"),
        (["--slots", "4", "--batch", "8", "--ubatch", "8"], "'--slots, --batch and --ubatch'"),
        (["--type-k", "f16", "--type-v", "f16", "--rules", "0.3.7"], "'--type-k, --type-v and --rules'"),
        (["--flash-attn", "--swa-full", "--kv-unified"], "'--flash-attn, --swa-full and --kv-unified'"),
        (["--lines", "--budget", "8GiB"], "'--lines and --budget'"),
    ],
)
def test_what_a_log_has_no_use_for_is_refused_by_name(capsys, argv, named):
    code, out, err = run(capsys, "--log", str(LOG), "--model", "Gemma 3 12B", *argv)
    assert (code, out) == (FAILED, "")
    allowed = "--gguf, --config or --model to name its model"
    assert err == f"kvmodel: error: options beside --log is {named}; allowed: {allowed}\n"


@pytest.mark.parametrize(("budget", "beyond"), [("2GiB", True), ("1GiB", False)])
def test_a_budget_for_more_than_the_training_says_so(capsys, config, budget, beyond):
    _, out, _ = run(capsys, "--config", config, "--budget", budget, "--flash-attn")
    assert ("The longest that fits is beyond the 8,192 positions that the model was trained on." in out) == beyond


@pytest.mark.parametrize(
    "argv",
    [["--help"], ["--log", str(LOG)], ["--model", "Gemma 3 12B", "--lines"], ["--model", "Llama 3.1 8B"]],
)
def test_a_reader_who_leaves_early_is_no_error(argv):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "kvmodel", "memory", *argv],
            check=False,
            cwd=ROOT,
            stdout=closed,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert (done.returncode, done.stderr) == (0, "")


def test_help_names_every_option_with_its_default_and_the_exit_codes(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["memory", "--help"])
    out = " ".join(capsys.readouterr().out.split())
    assert stopped.value.code == 0
    for told in ("--ctx N positions; 0 for", "(default: 4096)", "(default: 0.3.11)", "exit codes: 0, or 2 if"):
        assert told in out
    assert "beside it names the model that the log is held against, and no other option is allowed" in out


def test_signs_that_steer_a_terminal_do_not_reach_it(capsys, tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf", name="Tiny \x1b[2J\n" + "x" * 300)
    _, out, _ = run(capsys, "--gguf", str(path))
    assert out.startswith(f"Tiny [2J {'x' * 68}... (llama), 2 layers\n")


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([], "model is None; allowed: one of --gguf, --config or --model, or a --log"),
        (["--config", "none.json"], "none.json"),
        (["--gguf", "none.gguf"], "none.gguf"),
        (["--model", "no such model at all"], "no such model at all"),
        (["--log", str(ROOT / "pyproject.toml")], "log is 'without a line about the size of a cache'"),
        (["--gguf", str(LOG)], "byte 0"),
        (["--ctx", "-1"], "n_ctx is -1; allowed: a whole number from 0"),
        (["--slots", "0"], "n_seq_max is 0; allowed"),
    ],
)
def test_an_error_is_one_message(capsys, argv, told):
    code, out, err = run(capsys, *argv)
    assert (code, out) == (FAILED, "")
    assert err.startswith("kvmodel: error: ")
    assert told in err
    assert err.count("\n") == 1


def test_a_budget_that_is_none_is_told(capsys, config):
    code, _, err = run(capsys, "--config", config, "--budget", "lots")
    assert (code, "budget is 'lots'" in err) == (FAILED, True)


def test_a_config_that_is_too_large_is_not_read(capsys, tmp_path):
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(MAX_CONFIG_BYTES + 1)
    code, _, err = run(capsys, "--config", str(path))
    assert (code, "bytes at most" in err) == (FAILED, True)


@pytest.mark.parametrize(
    "argv", [["--type-k", "q3_K"], ["--rules", "0.4"], ["--ctx", "many"], ["--gguf", "a", "--config", "b"]]
)
def test_what_the_parser_refuses_has_the_same_code(capsys, argv):
    with pytest.raises(SystemExit) as stopped:
        main(["memory", *argv])
    assert stopped.value.code == FAILED


def test_it_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "kvmodel", "memory", "--log", str(LOG)],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "swa: 0.04 MiB as computed." in done.stdout
