"""The Memory page without a browser: models out of files, which of two given ones is shown, and names of any length."""

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.gguf_files import LLAMA, raw, small, write_gguf
from tests.memory_page import errors, metrics, open_page, put, told
from tests.page import charts, words

CONFIG = {
    "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8,
    "num_key_value_heads": 2, "max_position_embeddings": 4096,
}  # fmt: skip
SECRET = b"open sesame, and more of it"


def page_for(source: str) -> AppTest:
    return put(open_page(), source=source)


def upload(page: AppTest, key: str, name: str, data: bytes) -> AppTest:
    page.file_uploader(key=f"memory.{key}").set_value((name, data, "application/octet-stream"))
    return page.run()


def take_away(page: AppTest, key: str) -> AppTest:
    page.file_uploader(key=f"memory.{key}").clear()
    return page.run()


def config(**more: Any) -> str:
    return json.dumps(CONFIG | more)


def test_an_uploaded_header_is_read() -> None:
    page = page_for("GGUF file")
    assert "Give a model first" in page.info[0].value
    page = upload(page, "gguf", "tiny.gguf", small())
    assert "tiny.gguf: llama, 2 layers, 2 KV heads of 16, trained on 8,192 positions." in told(page)
    assert metrics(page)["all caches"] == f"{8192 * 2 * 2 * 2 * 16 * 2 / 2**20:,.2f} MiB"
    assert "Shown is" not in told(page)


def test_a_damaged_header_is_one_message() -> None:
    page = upload(page_for("GGUF file"), "gguf", "tiny.gguf", small()[:60])
    assert not page.exception
    assert len(errors(page)) == 1
    assert "Give a model first" in page.info[0].value


def test_a_file_is_opened_by_its_path(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "model.gguf", name="A model of mine", keys=LLAMA | {"block_count": 3}, tokens=100)
    page = put(page_for("GGUF file"), path=str(path))
    assert "A model of mine: llama, 3 layers" in told(page)
    page = put(page, path=str(tmp_path / "missing.gguf"))
    assert not page.exception
    assert len(errors(page)) == 1
    assert "missing.gguf" in errors(page)[0]


def test_of_a_file_and_a_path_the_one_given_last_is_shown(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "model.gguf", name="By path", keys=LLAMA | {"block_count": 3})
    page = upload(page_for("GGUF file"), "gguf", "first.gguf", small())
    page = put(page, path=str(path))
    assert "By path: llama, 3 layers" in told(page)
    by_path = "Shown is the file at the path, as it was given last; the uploaded file first.gguf is left aside."
    assert by_path in told(page)
    assert "By path: llama, 3 layers" in told(put(page, ctx=4096))
    page = upload(page, "gguf", "second.gguf", small())
    assert "second.gguf: llama, 2 layers" in told(page)
    assert "Shown is the uploaded file second.gguf, as it was given last; the file at the path" in told(page)
    page = take_away(page, "gguf")
    assert "By path: llama, 3 layers" in told(page)
    assert "Shown is" not in told(page)


def test_a_path_that_is_emptied_gives_way_to_the_file(tmp_path: Path) -> None:
    page = upload(page_for("GGUF file"), "gguf", "first.gguf", small())
    page = put(page, path=str(write_gguf(tmp_path / "model.gguf", name="By path")))
    assert "By path: llama" in told(page)
    assert "first.gguf: llama" in told(put(page, path=""))


def test_what_was_given_last_is_told_also_if_it_cannot_be_read(tmp_path: Path) -> None:
    page = put(upload(page_for("GGUF file"), "gguf", "first.gguf", small()), path=str(tmp_path / "none.gguf"))
    assert "the uploaded file first.gguf is left aside" in told(page)
    assert len(errors(page)) == 1
    assert not metrics(page)


def test_of_an_uploaded_and_a_pasted_config_the_one_given_last_is_shown() -> None:
    page = upload(page_for("config.json"), "config", "config.json", config(num_hidden_layers=5).encode())
    assert "llama: llama, 5 layers" in told(page)
    page = put(page, config__text=config())
    assert "llama: llama, 4 layers" in told(page)
    assert "Shown is the pasted text, as it was given last; the uploaded file config.json is left aside." in told(page)
    page = upload(page, "config", "config.json", config(num_hidden_layers=6).encode())
    assert "llama: llama, 6 layers" in told(page)
    assert "Shown is the uploaded file config.json, as it was given last; the pasted text is left aside." in told(page)


@pytest.mark.parametrize("data", [SECRET, SECRET[:3], b"", b"\x00" * 40])
def test_of_a_file_that_is_no_gguf_a_path_shows_nothing(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "secret"
    path.write_bytes(data)
    page = put(page_for("GGUF file"), path=str(path))
    assert errors(page) == ["The file at this path does not begin with GGUF."]


@pytest.mark.parametrize(
    ("data", "at"),
    [
        (b"GGUF" + SECRET, 4),
        (raw([b"\x04" + bytes(7) + b"\xff\xfeab" + bytes(8)]), 24),
        (small()[:-10], None),
    ],
)
def test_of_a_damaged_header_a_path_shows_where(tmp_path: Path, data: bytes, at: int | None) -> None:
    path = tmp_path / "secret.gguf"
    path.write_bytes(data)
    [message] = errors(put(page_for("GGUF file"), path=str(path)))
    assert message.startswith("The file at this path has a damaged header at byte ")
    assert at is None or message.endswith(f" {at}.")


def test_a_pasted_config_is_read_and_a_wrong_one_is_told() -> None:
    page = put(page_for("config.json"), config__text=config())
    assert "llama, 4 layers, 2 KV heads of 64, trained on 4,096 positions." in told(page)
    page = put(page, config__text="{not json")
    assert not page.exception
    assert len(errors(page)) == 1


def test_a_long_wrong_value_is_cut_before_what_is_allowed() -> None:
    page = put(page_for("config.json"), config__text=config(model_type="y" * 60_000))
    [message] = errors(page)
    assert "allowed: " in message
    assert len(message) < 3_000


@pytest.mark.parametrize("tables", [False, True])
@pytest.mark.parametrize("name", ["x" * 60_000, "W" * 300, "a model " * 50])
def test_a_long_name_is_cut_wherever_it_stands(name: str, tables: bool) -> None:
    page = put(page_for("config.json"), config__text=config(_name_or_path=name), tables=tables)
    shown = f"{name[:77].rstrip()}..."
    assert f"{shown}: llama, 4 layers" in told(page)
    page = put(page, page="Compare")
    page = put(page, B__type_k="q8_0")
    assert tables or f"B: {shown}, n_ctx 8,192" in told(page)
    assert [model for table in page.dataframe for model in table.value["model"]] == [shown, shown] * tables
    everything = [told(page), *(chart.proto.alt for chart in page.get("plotly_chart")), json.dumps(charts(page))]
    assert all(name[:81] not in words for words in everything)


def test_small_caches_are_told_in_small_units() -> None:
    page = put(page_for("config.json"), config__text=config(num_hidden_layers=1, hidden_size=64), ctx=32)
    assert metrics(page) == {
        "all caches": "2.00 KiB",
        "K": "1.00 KiB",
        "V": "1.00 KiB",
        "left of the budget": "8,192.00 MiB",
        "longest n_ctx that fits": "any",
    }
    assert "Yes, the caches fit: they take 2.00 KiB of 8.00 GiB" in told(page)
    assert "The longest that fits is beyond the 4,096 positions that the model was trained on." in told(page)
    assert "0.00 MiB" not in told(page)
    assert "size =    0.00 MiB" in page.code[0].value
    drawn = json.dumps(charts(put(page, by="cache")))
    assert "0.00 MiB" not in drawn
    assert "K 1.00 KiB" in drawn


def test_signs_of_markdown_in_a_file_stay_signs() -> None:
    page = put(page_for("config.json"), config__text=config(_name_or_path="![x](https://example.org/x.png)"))
    assert "![x](https://example.org/x.png)" in told(page)
    assert "![" not in words(page)
