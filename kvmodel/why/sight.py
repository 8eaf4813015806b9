"""Why a token sees a cell or not, with the figures of the rule."""

from kvmodel.batch import UBatch
from kvmodel.errors import ParamError, check_int
from kvmodel.mask import KQ_MASK_PAD, MaskReason, mask_reasons
from kvmodel.snapshot import PartSnapshot
from kvmodel.timeline import Tokens
from kvmodel.types import SWAType, pad
from kvmodel.why.content import Content, content_at, owners
from kvmodel.why.window import shown, window_of
from kvmodel.words import count


def mask_story(
    part: PartSnapshot, ubatch: UBatch, row: int, cell: int, *, causal: bool = True, tokens: Tokens | None = None
) -> str:
    """Say whether a token of a ubatch sees a cell, and by which rule.

    Args:
        part: the cells when the ubatch is computed.
        ubatch: the tokens that ask.
        row: row of the mask: a token of the ubatch, or one of the rows that fill it up to a multiple of 64.
        cell: index of a cell.
        causal: later positions are hidden.
        tokens: of the scenario; with them the sentence quotes the token's text as the scenario has it.

    Raises:
        ParamError: there is no such row or cell, or the cells hold states, for which there is no mask.
    """
    if part.is_recurrent:
        raise ParamError("part", part.name, "cells of a transformer cache; states have no mask")
    row = check_int("row", row, 0, pad(len(ubatch), KQ_MASK_PAD) - 1)
    cell = check_int("cell", cell, 0, part.n_cells - 1)
    if row >= len(ubatch):
        return f"Row {row} is padding behind the {count(len(ubatch), 'token')} of the ubatch; it sees no cell."
    pos, seq = int(ubatch.pos[row]), int(ubatch.first_seq[row])
    who = f"Token {row}{_quoted(ubatch, row, tokens)} (position {pos}, sequence {seq})"
    if cell >= part.n_kv:
        return f"{who} does not see cell {cell}: attention looks at the first {count(part.n_kv, 'cell')} only (n_kv)."
    held = content_at(part.arrays, cell)
    reason = _reason(part, ubatch, row, cell, causal)
    sees = "sees" if reason is MaskReason.VISIBLE else "does not see"
    where = f" (position {held.pos})" if held.pos >= 0 else ""
    return f"{who} {sees} cell {cell}{where}: {_because(reason, part, held, pos, seq, causal)}."


def _quoted(ubatch: UBatch, row: int, tokens: Tokens | None) -> str:
    serial = int(ubatch.token[row])
    text = tokens[serial].text if tokens is not None and serial >= 0 else ""
    return f" “{''.join(c if c.isprintable() else ascii(c)[1:-1] for c in text)}”" if text else ""


def _reason(part: PartSnapshot, ubatch: UBatch, row: int, cell: int, causal: bool) -> MaskReason:
    swa_type, n_swa = window_of(part)
    one, asking = slice(cell, cell + 1), slice(row, row + 1)
    codes = mask_reasons(
        part.pos[one],
        part.seqs[one],
        ubatch.pos[asking],
        ubatch.first_seq[asking],
        causal=causal,
        swa_type=swa_type,
        n_swa=n_swa,
    )
    return MaskReason(int(codes[0, 0]))


def _because(reason: MaskReason, part: PartSnapshot, held: Content, pos: int, seq: int, causal: bool) -> str:
    away = held.pos - pos
    match reason:
        case MaskReason.EMPTY:
            return "the cell is empty"
        case MaskReason.OTHER_SEQ:
            return f"it belongs to {owners(held.seqs)}" if held.seqs else "it has no owner"
        case MaskReason.FUTURE:
            return f"that is {_distance(away)}"
        case MaskReason.OUTSIDE:
            return shown(part, pos, causal=causal)
    distance = "it is its own position" if not away else f"that is {_distance(away)}"
    later = ", which counts for nothing without causal attention" if away > 0 else ""
    rules = f"both belong to sequence {seq}, and {distance}{later}"
    return rules if window_of(part)[0] is SWAType.NONE else f"{rules}; {shown(part, pos, causal=causal)}"


def _distance(away: int) -> str:
    return f"{count(abs(away), 'position')} {'later' if away > 0 else 'earlier'}"
