"""The bytes behind the cells of a cache: none by default, tensors when they are attached."""

import numpy as np
from numpy.typing import NDArray

from kvmodel.caches.sizes import buffer_bytes, tensor_bytes
from kvmodel.defrag import DefragPlan
from kvmodel.rotation import Rotation
from kvmodel.tensors import Layout, Tensors
from kvmodel.types import CacheParams


class DataPlane:
    """What every cache of attention layers does with its bytes.

    Attributes:
        params: what the cache was made of.
        tensors: K and V, or None: then only the cells are kept, which is enough for every question but theirs.
        rotation: how the keys turn when a shift is applied, or None: then they stay as they are.
    """

    params: CacheParams
    tensors: Tensors | None = None
    rotation: Rotation | None = None

    @property
    def layout(self) -> Layout:
        """How K and V lie, attached or not.

        Raises:
            ParamError: such tensors cannot be, see `Layout`.
        """
        return Layout.of(self.params)

    @property
    def size_k_bytes(self) -> int:
        """Bytes of all K tensors; of states their first part, which mid-2025 calls R."""
        return sum(tensor_bytes(self.params, "k"))

    @property
    def size_v_bytes(self) -> int:
        """Bytes of all V tensors, transposed or not; of states their second part, which mid-2025 calls S."""
        return sum(tensor_bytes(self.params, "v"))

    @property
    def total_size(self) -> int:
        """Bytes of the CPU buffer: every tensor rounded up to the alignment."""
        return buffer_bytes(self.params)

    def attach(self, rotation: Rotation | None = None) -> None:
        """Give the cache tensors of zeros. Mutates.

        Args:
            rotation: how their keys turn when a shift is applied; without one a shift leaves the bytes alone.

        Raises:
            ParamError: they would exceed MAX_TENSOR_BYTES, or cannot be.
        """
        self.tensors = Tensors(self.layout)
        self.rotation = rotation

    def _clear_bytes(self) -> None:
        if self.tensors is not None:
            self.tensors.clear()

    def _move_bytes(self, plan: DefragPlan) -> None:
        if self.tensors is not None:
            self.tensors.move(plan.src, plan.dst)

    def _turn_bytes(self, shift: NDArray[np.int32], *, mrope: bool) -> None:
        """Turn the keys, where there are any and the model rotates them; `mrope` as in `Rotation.turn`."""
        if self.tensors is not None and self.rotation is not None and self.params.rope:
            self.rotation.turn(self.tensors, self.params, shift, mrope=mrope)
