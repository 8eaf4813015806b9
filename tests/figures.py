"""A figure as a browser gets it: its JSON, with the packed arrays unpacked by hand; and caches to draw."""

import base64
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np

from kvmodel.player import play
from kvmodel.scenario import Scenario
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Timeline

DTYPES = {"u1": np.uint8, "i1": np.int8, "i2": np.int16, "i4": np.int32, "f4": np.float32, "f8": np.float64}


def spec(figure: Any) -> dict[str, Any]:
    """The figure's JSON with arrays in place of base64."""
    return unpacked(json.loads(figure.to_json()))


def unpacked(node: Any) -> Any:
    if isinstance(node, dict) and "bdata" in node:
        values = np.frombuffer(base64.b64decode(node["bdata"]), np.dtype(DTYPES[node["dtype"]]).newbyteorder("<"))
        shape = [int(size) for size in str(node.get("shape", len(values))).split(",")]
        return values.reshape(shape)
    if isinstance(node, dict):
        return {key: unpacked(value) for key, value in node.items()}
    return [unpacked(value) for value in node] if isinstance(node, list) else node


def traces(figure: Any) -> dict[str, dict[str, Any]]:
    """The traces by name."""
    return {trace["name"]: trace for trace in spec(figure)["data"] if "name" in trace}


def legend(figure: Any) -> list[str]:
    """The words of the legend, without their marks."""
    texts = [words["text"] for words in spec(figure)["layout"]["annotations"] if words.get("name") == "legend"]
    marks = re.compile(r'<span style="color:#\w{6};[^"]*">.*?</span> ')
    return [entry.strip() for text in texts for entry in re.split(marks, text.replace("<br>", " "))[1:]]


def notes(figure: Any) -> list[dict[str, Any]]:
    """The words in the plot, the legend left out."""
    return [words for words in spec(figure)["layout"]["annotations"] if words.get("name") != "legend"]


def colours_of(trace: dict[str, Any]) -> np.ndarray:
    """The colour of every pixel of a heatmap with a discrete scale, as a browser works it out."""
    stops, z = trace["colorscale"], np.asarray(trace["z"], float)
    share = (z - trace["zmin"]) / (trace["zmax"] - trace["zmin"])
    starts = np.array([stop for stop, _ in stops[::2]])
    return np.array([colour for _, colour in stops[::2]])[np.searchsorted(starts, share, side="right") - 1]


def blocks(trace: dict[str, Any], rows: int, columns: int) -> np.ndarray:
    """The colours of every cell of a map, [cells, pixels high, pixels wide]."""
    pixels = colours_of(trace)
    high, wide = pixels.shape[0] // rows, pixels.shape[1] // columns
    return pixels.reshape(rows, high, columns, wide).swapaxes(1, 2).reshape(rows * columns, high, wide)


def boxes(path: str) -> list[tuple[float, float, float, float]]:
    """Left, top, right, bottom of every rectangle of an SVG path `MxyHVHZ`."""
    found = []
    for part in path.split("M")[1:]:
        start, rest = part.split("H", 1)
        left, top = map(float, start.split(","))
        right, rest = rest.split("V", 1)
        found.append((left, top, float(right), float(rest.split("H")[0])))
    return found


def shapes(figure: Any, colour: str, **line: Any) -> list[dict[str, Any]]:
    """The shapes in one colour whose line has the given settings."""
    wanted = {"color": colour, **line}
    return [shape for shape in spec(figure)["layout"]["shapes"] if wanted.items() <= shape["line"].items()]


def played(ops: list[dict[str, Any]], kv_size: int = 64, **cache: Any) -> Timeline:
    config = {
        "kv_size": kv_size,
        "n_seq_max": 64,
        "n_layer": 2,
        "n_head_kv": 2,
        "n_embd_head_k": 64,
        "n_embd_head_v": 64,
    }
    document = {"title": "a test", "cache": config | cache, "context": {"n_batch": 65_536}, "ops": ops}
    return play(Scenario.model_validate(document))


def decode(n: int, *seq: int, pos: int | None = None, **more: Any) -> dict[str, Any]:
    return {"op": "decode", "n_ubatch": 4096, "tokens": [{"n": n, "seq": list(seq), "pos": pos, **more}]}


def after(timeline: Timeline, step: int | None = None) -> PartSnapshot:
    """The only part after a step, the last one if none is named."""
    return timeline.cursor().seek(timeline.frame_of(timeline.n_steps - 1 if step is None else step)).first


def shared_prefix() -> Timeline:
    """Cells 0-3 belong to 0 and 1, 4-6 to 0, 7-9 to 1, 10-11 to 2; then 4-5 are freed and 1 moves on by 5."""
    prompt = ("Once", " upon", " a", " time", ",", " a", " <b>fox</b>")
    return played(
        [
            decode(7, 0, text=prompt),
            {"op": "seq_cp", "src": 0, "dst": 1, "p0": 0, "p1": 4},
            decode(3, 1, pos=4),
            decode(2, 2),
            {"op": "seq_rm", "seq": 0, "p0": 4, "p1": 6},
            {"op": "seq_add", "seq": 1, "p0": 4, "p1": -1, "shift": 5},
        ]
    )


def scattered(n: int, n_seq: int, seed: int = 7) -> PartSnapshot:
    """A cache of n cells filled at random, one in five with several owners."""
    rng = np.random.default_rng(seed)
    part = after(played([], n))
    filled = rng.random(n) < 0.7
    owners = np.left_shift(np.uint64(1), rng.integers(0, n_seq, n, np.uint64))
    more = np.where(rng.random(n) < 0.2, np.left_shift(np.uint64(1), rng.integers(0, n_seq, n, np.uint64)), 0)
    pos = np.where(filled, rng.integers(0, 9 * n, n), -1).astype(np.int32)
    shift = np.where(filled, rng.integers(-9, 10, n), 0).astype(np.int32)
    seqs = np.where(filled, owners | more.astype(np.uint64), 0).astype(np.uint64)
    return replace(part, arrays={**part.arrays, "pos": pos, "shift": shift, "seqs": seqs})


def hover_words(figure: Any, name: str = "cells") -> list[str]:
    """What every square says on hover, row by row, whether points or a heatmap answer the mouse."""
    trace = traces(figure)[name]
    return trace["hovertext"] if "hovertext" in trace else [words for row in trace["text"] for words in row]


def clicked(index: Any, curve: Any = 1) -> dict[str, Any]:
    """The selection that a click leaves."""
    return {"points": [{"curve_number": curve, "point_index": index}], "point_indices": [index], "box": [], "lasso": []}
