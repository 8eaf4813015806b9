"""The bytes behind the cells of a cache: none by default, tensors when they are attached."""

from kvmodel.defrag import DefragPlan
from kvmodel.tensors import Layout, Tensors
from kvmodel.types import CacheParams


class DataPlane:
    """What every cache of attention layers does with its bytes.

    Attributes:
        params: what the cache was made of.
        tensors: K and V, or None: then only the cells are kept, which is enough for every question but theirs.
    """

    params: CacheParams
    tensors: Tensors | None = None

    @property
    def layout(self) -> Layout:
        """How K and V lie, attached or not.

        Raises:
            ParamError: such tensors cannot be, see `Layout`.
        """
        return Layout.of(self.params)

    def attach(self) -> None:
        """Give the cache tensors of zeros. Mutates.

        Raises:
            ParamError: they would exceed MAX_TENSOR_BYTES, or cannot be.
        """
        self.tensors = Tensors(self.layout)

    def _clear_bytes(self) -> None:
        if self.tensors is not None:
            self.tensors.clear()

    def _move_bytes(self, plan: DefragPlan) -> None:
        if self.tensors is not None:
            self.tensors.move(plan.src, plan.dst)
