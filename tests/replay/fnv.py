"""FNV-1a, 64 bit, without a loop over bytes.

One step is h -> (h XOR b) * P. Writing h XOR b as h + d, where d depends on the lowest byte of h alone, the hash is
a sum of d times powers of P. The lowest byte runs on its own modulo 256, and there each bit follows from the lower
bits and a running XOR, since P is odd. A zero byte only multiplies by P, so the sums skip it.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

OFFSET = 0xCBF29CE484222325
PRIME = 0x100000001B3
WORD = 2**64
CHUNK = 1 << 16


def _powers(count: int) -> NDArray[np.uint64]:
    """P to the powers 0 ... count - 1, modulo 2^64."""
    factors = np.full(count, PRIME, np.uint64)
    factors[0] = 1
    return np.cumprod(factors)


POWER = _powers(CHUNK + 1)
POWERS = POWER.tolist()
LOW_POWER = POWER.astype(np.uint8)
BITS = np.uint8(1) << np.arange(8, dtype=np.uint8)


@lru_cache(maxsize=1024)
def fnv1a(data: bytes) -> str:
    """The hash of `data` as 16 lower-case hex digits."""
    value = OFFSET
    for at in range(0, len(data), CHUNK):
        value = _extend(value, np.frombuffer(data, np.uint8, min(CHUNK, len(data) - at), at))
    return f"{value:016x}"


def _extend(value: int, data: NDArray[np.uint8]) -> int:
    """The hash `value` continued over one chunk."""
    n = len(data)
    where = np.flatnonzero(data)
    total: int = value * POWERS[n]
    if len(where):
        ends = np.append(where[1:], n)
        low = _low_bytes(value * POWERS[where[0]] & 0xFF, data[where], LOW_POWER[ends - where])
        change = (low ^ data[where]).astype(np.int64) - low
        total += int((change.view(np.uint64) * POWER[n - where]).sum())
    return total % WORD


def _low_bytes(before: int, data: NDArray[np.uint8], factor: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The lowest byte of the hash ahead of every byte of `data`, none of which is zero.

    With the bits below k known, bit k of (low XOR data) * factor tells whether bit k of `low` flips on the way to the
    next byte: `factor` is odd, so that bit enters the product as it is.

    Args:
        before: the lowest byte ahead of the first one.
        data: uint8 [n].
        factor: uint8 [n], the power of P that follows each byte.
    """
    low = np.zeros(len(data), np.uint8)
    run = np.empty(len(data) + 1, np.uint8)
    for bit in BITS:
        run[0] = before
        np.multiply(low ^ data, factor, out=run[1:])
        run &= bit
        low |= np.bitwise_xor.accumulate(run)[:-1]
    return low
