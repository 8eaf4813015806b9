"""Where upstream surprises: what happens, in which version, and how to see it here.

Each entry was confirmed against the running C++ unless it says otherwise. The model does the same, and an event
names the id where it happens.
"""

from dataclasses import dataclass

from kvmodel.errors import ParamError

UNIFIED = "0.3.11"
"""llama-cpp-python of mid-2025, with the unified cache."""

LEGACY = "0.3.7"
"""llama-cpp-python of January 2025, with the older cache."""


@dataclass(frozen=True)
class Quirk:
    """One surprising behaviour.

    Attributes:
        id: short name, as events and errors carry it.
        versions: versions of llama-cpp-python that show it.
        title: what it is, in a few words.
        what: what happens.
        see: what to do to watch it.
    """

    id: str
    versions: tuple[str, ...]
    title: str
    what: str
    see: str


QUIRKS = (
    Quirk(
        "div-shift-sign",
        (UNIFIED,),
        "Dividing positions rotates keys the wrong way",
        "seq_div stores the old position minus the new one as pending shift, while seq_add stores new minus old. The"
        " next update therefore turns each key away from its new position instead of towards it. The older cache has"
        " the right sign.",
        "Decode 8 tokens, divide their positions by 2, look at the pending shift: it is positive, although every"
        " position became smaller.",
    ),
    Quirk(
        "yarn-shift-magnitude",
        (UNIFIED,),
        "Under YaRN every shift scales the keys again",
        "A shift under YaRN multiplies the keys by the magnitude factor once more. That factor is part of the stored"
        " keys already, so keys grow with each shift they live through.",
        "Shift one key several times under YaRN and compare its length with that of a key computed at the same place.",
    ),
    Quirk(
        "cp-double-count",
        (UNIFIED,),
        "Copying onto cells that have the target counts them twice",
        "seq_cp, and a token that names one id twice, count a position again for a sequence that owns the cell already."
        " Removing the sequence takes one count away, so pos_min and pos_max go on reporting the position until the"
        " cache is cleared. Later batches of that sequence are refused.",
        "Copy sequence 0 to 1 twice, remove sequence 1, decode a token of sequence 1 at position 0.",
    ),
    Quirk(
        "purge-leak",
        (UNIFIED,),
        "A failed decode can lose old window cells",
        "While slots are sought, ubatches are stored on trial. When one overwrites an expired cell, the older positions"
        " of that sequence are purged as well, also outside the slot. The roll-back restores the slots only, so cells"
        " purged elsewhere stay empty even if the decode fails.",
        "In a window cache decode a batch whose first ubatch fits on expired cells and whose second finds no slot.",
    ),
    Quirk(
        "swa-shift-lost",
        (UNIFIED,),
        "A trial store drops pending shifts",
        "The copy that the roll-back restores holds positions and owners, but no shifts. Cells that a trial store"
        " overwrote come back with a shift of 0, so their keys are never rotated to their new positions.",
        "In a window cache shift a sequence, then prepare a batch that fits on its expired cells before an update.",
    ),
    Quirk(
        "defrag-zero-budget",
        (UNIFIED, LEGACY),
        "A defrag budget of 0 moves is no limit",
        "The plan stops when the number of moves equals the budget. With a budget of 0 the first move makes it 1, the"
        " two are never equal, and all holes are filled.",
        "Run an update with optimize and as many graph nodes as leave no move: everything is compacted.",
    ),
    Quirk(
        "equal-split-overflow",
        (UNIFIED,),
        "An equal split can be one sequence too long",
        "The equal split takes sequence sets until there are more than n_ubatch of them and looks at the limit only"
        " then, so a ubatch can hold one token more than n_ubatch.",
        "Split 4 sequences of 1 token each with n_ubatch 3: one ubatch of 4 tokens comes out.",
    ),
    Quirk(
        "state-truncated",
        (UNIFIED, LEGACY),
        "A state file that ends early leaves a half-read cache",
        "Reading past the end of the stream throws before the clean-up that every other failure runs. What was read up"
        " to then stays in the cache.",
        "Cut a state file in the middle of its cells and restore it.",
    ),
    Quirk(
        "state-ids-dropped",
        (UNIFIED,),
        "High sequence ids are not saved",
        "Ids of n_seq_max and above are left out when the state is written. A cell that had only such ids comes back"
        " used, but without an owner.",
        "With n_seq_max 1 store a token of sequence 5, write the state and restore it.",
    ),
    Quirk(
        "state-empty-seq",
        (UNIFIED, LEGACY),
        "Restoring one sequence from an empty stream crashes",
        "A stream of 0 cells restored as a single sequence ends the process.",
        "Save a sequence that owns no cell and restore it as one sequence.",
    ),
    Quirk(
        "bf16-shift-abort",
        (UNIFIED, LEGACY),
        "A bf16 K cache cannot be shifted on the CPU",
        "The CPU backend has no rotation for bf16, so a shift of a K cache of that type ends the process.",
        "Set type_k to bf16, shift a sequence and update.",
    ),
    Quirk(
        "restore-by-index",
        (LEGACY,),
        "A roll-back takes cell numbers for positions",
        "After a failed computation the older cache removes the positions that equal the cell numbers of the slot."
        " Unless cells and positions coincide, it frees the wrong cells and leaves those of the failed ubatch.",
        "Store one sequence behind another, so that cells and positions differ, and let the computation fail.",
    ),
    Quirk(
        "partial-decode",
        (LEGACY,),
        "A failed decode keeps its first ubatches",
        "The older cache seeks a slot for one ubatch at a time. If a later one finds none, those before it stay"
        " stored, and head has moved although the call returns 1.",
        "Decode a batch of several ubatches of which only the first fits.",
    ),
    Quirk(
        "stale-delta",
        (LEGACY,),
        "A freed cell keeps its pending shift",
        "Freeing a cell and clearing the cache leave its delta in place. The next token stored there inherits it and is"
        " rotated by a shift that was meant for another token. A decode is safe, since it updates before it stores.",
        "Shift a sequence, remove it, restore a saved state into the same cells and update.",
    ),
    Quirk(
        "recurrent-swap-loss",
        (LEGACY,),
        "Swapping states can lose a sequence",
        "The recurrent cache swaps cells to bring the states of a ubatch together. A swap into a fresh cell that no"
        " sequence is tagged with loses the sequence that was there; its next use ends the process.",
        "Use recurrent sequences in changing groups until one has to move into a fresh cell.",
    ),
    Quirk(
        "recurrent-dangling-tail",
        (LEGACY,),
        "Removing all sequences leaves their tails",
        "seq_rm of every sequence empties the cells of a recurrent cache but not the tails that point at them. The"
        " next use of such a sequence ends the process.",
        "Decode a recurrent sequence, remove sequence -1, decode it again.",
    ),
    Quirk(
        "recurrent-self-copy",
        (LEGACY,),
        "Copying a recurrent sequence onto itself drops it",
        "seq_cp first clears the target's state. If source and target are one sequence, its own state is gone.",
        "In a recurrent cache copy sequence 0 to sequence 0.",
    ),
    Quirk(
        "no-seq",
        (UNIFIED,),
        "A cell can be used without an owner",
        "A token stored without a sequence fills a cell that no sequence owns. Nothing sees it, no search uses it"
        " again, and only seq_rm of every sequence or clear frees it.",
        "Place a token with an empty list of ids, then remove sequence 0: the cell stays used.",
    ),
    Quirk(
        "dead-batch-checks",
        (UNIFIED,),
        "Two batch checks never fire",
        "The checks for incompatible sequence sets and for decreasing positions are written so that their conditions"
        " cannot become true. This one was read from the source, not seen to happen.",
        "Decode a batch whose positions of one sequence count down: it is accepted.",
    ),
)  # fmt: skip
"""Every known quirk, the unified cache first."""

_BY_ID = {quirk.id: quirk for quirk in QUIRKS}


def quirk(quirk_id: str) -> Quirk:
    """Look a quirk up.

    Raises:
        ParamError: there is none of that id.
    """
    if quirk_id not in _BY_ID:
        raise ParamError("quirk", quirk_id, ", ".join(_BY_ID))
    return _BY_ID[quirk_id]
