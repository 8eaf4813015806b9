"""Every bound of the project in one place, each with its reason.

Sizes are checked against these before memory is taken.
"""

MAX_SEQ = 64
"""Sequences a cell can belong to: upstream's LLAMA_MAX_SEQ, and the width of one uint64 set."""

MAX_CELLS = 1_048_576
"""Cells of one cache: a million cells is a context larger than any shipped model's."""

MAX_OPS = 10_000
"""Operations of one scenario: a played timeline of that length still fits in memory as deltas."""

MAX_IDS = 128
"""Sequence ids of one token: every sequence may be named, and named twice (quirk cp-double-count)."""

MAX_BATCH = 65_536
"""Tokens of one batch: llama-server's largest useful batch, and a bound on what a form can ask for."""

MAX_LAYERS = 1_024
"""Layers of one model: several times the deepest known one."""

MAX_BUCKETS = 255
"""Relative position buckets: with 256 upstream divides by the logarithm of 1."""

MAX_MASK_BYTES = 1 << 30
"""Bytes of one mask in any element type: 512 queries over 131,072 cells in float32 take a quarter of it."""

MAX_TENSOR_BYTES = 1 << 30
"""Bytes of the K and V of one cache: 8,192 cells of an 8B model in f16, which a small server still holds."""

MAX_STATE_BYTES = 2 * MAX_TENSOR_BYTES
"""Bytes of one state stream in memory: the K and V of a pair of caches."""

MAX_SCENARIO_BYTES = 4 << 20
"""Bytes of a scenario document: 10,000 operations with their texts stay below it."""

MAX_LINK_CHARS = 32_000
"""Characters of a scenario in a link: browsers take several times that in an address, chats and mail hardly more."""

MAX_LINK_BYTES = 1 << 20
"""Bytes of a document unpacked from a link: many times what packs into one, and its model takes a tenth of a GiB."""

MAX_BEATS = 10_000_000
"""Beats of one step: the largest batch in ubatches of one token, each with all refusals of two searches in a pair."""

MAX_REPORT_CHARS = 60_000
"""Characters of a report: an issue takes 65,536, and its author wants to add some."""

MAX_TIMELINE_BYTES = 1 << 29
"""Bytes of all changes of one timeline: ten thousand steps of a server's cache take a tenth of it."""

INT32_MAX = 2**31 - 1
"""The largest position; upstream's stand-in for an open end of a range."""

MAX_NAME_BYTES = 256
"""Bytes of an architecture's name in a file: several times the longest one."""

MAX_LOG_BYTES = 64 << 20
"""Bytes of a debug log: hundreds of maps of 32,768 cells, and still only seconds to read."""

MAX_READINGS = 1_000_000
"""Symbols of one log tried where several readings are possible: some seconds of work at most."""

MAX_HEADS = 65_536
"""KV heads of one layer: several hundred times what any known model has."""

MAX_HEAD_SIZE = 1 << 20
"""Elements of one K or V head."""

MAX_STATE_WIDTH = 1 << 28
"""Elements of one sequence's recurrent state in a layer: hundreds of times the largest known one."""

MAX_PLAN_CTX = 1 << 27
"""Positions of a planned context: ten times the longest any known model was trained for."""

MAX_PLAN_SEQ = 1_024
"""Sequences of a planned context: more than any version allows, so that its refusal can be told."""

MAX_HEADER_BYTES = 1 << 26
"""Bytes of a GGUF header: tokenizers of 260,000 tokens with their merges take a quarter of it."""

MAX_HEADER_KEYS = 1_024
"""Keys of a GGUF header: twenty times what files have."""

MAX_HEADER_STRING = 4_096
"""Bytes of a string of a GGUF header that is kept: names and addresses; chat templates are skipped."""

MAX_CONFIG_BYTES = 4 << 20
"""Bytes of a config.json: a thousand times the usual one, as quantized models list their tensors there."""
