"""What a start-up log says, as it is printed: the figures of every cache, and the fields of its model and context."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Printed:
    """Figures of one cache as a log prints them, with two decimals; None for what a version does not print.

    Logs of 2023 write MB for the same unit of 1,048,576 bytes.
    """

    total: str
    k: str | None = None
    v: str | None = None


@dataclass(frozen=True)
class PrintedPart:
    """What a log says about one cache.

    Attributes:
        line: number of the line with the sizes, from 1.
        name: kv, base, swa or recurrent; state for the "MB per state" that versions of 2023 print before a cache.
        printed: the figures.
        cells: of one stream, None where the log does not say.
        n_layer: layers as printed; of a recurrent cache all layers of the model.
        n_seqs: sequences.
        n_rs_seq: earlier states that a recurrent cache keeps of each sequence, where they are printed.
        n_stream: streams, where they are printed.
        n_mem: cells of all layers together, which the first versions print.
        type_k, type_v: element types.
        buffers: device and MiB of every buffer.
        vram: MiB of those layers' K and V that are on a GPU, where a version of 2023 prints it.
    """

    line: int
    name: str
    printed: Printed
    cells: int | None = None
    n_layer: int | None = None
    n_seqs: int | None = None
    n_rs_seq: int | None = None
    n_stream: int | None = None
    n_mem: int | None = None
    type_k: str | None = None
    type_v: str | None = None
    buffers: tuple[tuple[str, str], ...] = ()
    vram: str | None = None


@dataclass
class LoggedContext:
    """One context of a log: what was printed about its model before, its own settings and its caches.

    Attributes:
        model: name -> value as printed, of the model.
        keys: key -> value of the model's file, as the loader lists them: numbers, and where the windows begin.
        windows: whether each layer has a window, where the log says so; the output layer counts as the last.
        values: name -> value as printed, of the context.
        padded: n_ctx after padding, where the log says so.
        streams: whether a line speaks of streams or has the newer names.
        parts: the caches.
    """

    model: dict[str, str]
    keys: dict[str, str]
    windows: list[bool]
    values: dict[str, str] = field(default_factory=dict)
    padded: int | None = None
    streams: bool = False
    parts: list[PrintedPart] = field(default_factory=list)

    @property
    def caches(self) -> list[PrintedPart]:
        """The parts that are caches, not estimates of one."""
        return [part for part in self.parts if part.name != "state"]
