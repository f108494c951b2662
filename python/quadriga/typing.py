# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/typing.py: what signatures of the package take and return, by name.
"""Types of arguments and results, for annotations.

Protocols describe arrays of other libraries by what they offer, so that none of these libraries
has to be installed. `numpy.typing` has what is not listed here, as ``DTypeLike`` and ``NDArray``.

Examples
--------
>>> import numpy as np
>>> from quadriga import linalg
>>> from quadriga.typing import Array, ArrayLike
>>> def inverse(a: ArrayLike, n: int) -> Array:
...     return linalg.solve(a, np.eye(n), assume_a="pos")
>>> inverse([[2.0]], 1)
array([[0.5]])
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

__all__ = [
    "Array",
    "ArrayLike",
    "ChunkLike",
    "CudaArray",
    "DLPackArray",
    "Datatype",
    "Group",
    "Hierarchy",
    "HostArrayLike",
    "LinearOperator",
    "MatrixLike",
    "MessageArray",
    "OperatorLike",
    "PreconditionerLike",
    "Progress",
    "SourceLike",
    "SparseArray",
    "StoredArray",
    "StreamLike",
    "Trans",
]


def __dir__() -> list[str]:
    return __all__


class Array(Protocol):
    """An array of NumPy, CuPy, PyTorch or another library, on the host or a device."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""

    @property
    def ndim(self) -> int:
        """The number of dimensions."""

    @property
    def dtype(self) -> object:
        """The type of the elements, as the library names it."""

    def __len__(self) -> int: ...

    def __getitem__(self, key: Any, /) -> Any: ...


class CudaArray(Array, Protocol):
    """An array with the CUDA array interface: those of CuPy, tensors of PyTorch and others."""

    @property
    def __cuda_array_interface__(self) -> Mapping[str, Any]: ...


class DLPackArray(Protocol):
    """An array that DLPack describes: those of JAX and others."""

    def __dlpack__(self) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, int]: ...


class StoredArray(Protocol):
    """An array in a file or in parts, read by slices: those of h5py, Zarr and Dask."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""

    @property
    def dtype(self) -> npt.DTypeLike:
        """The type of the elements."""

    @property
    def chunks(self) -> object:
        """How it is divided."""

    def __getitem__(self, key: Any, /) -> Any: ...


@runtime_checkable
class SourceLike(Protocol):
    """The protocol of objects that can replace an input matrix.

    The engine's threads call ``read``, one call at a time; the `linalg` call raises its exceptions.
    It fails if ``read`` keeps `out`, whose memory the engine takes back. The object may also have
    ``hermitian``, a bool, like `Source`.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def dtype(self) -> npt.DTypeLike:
        """The type of the elements, as NumPy takes it."""

    def read(self, rows: slice, cols: slice, out: npt.NDArray[Any]) -> object:
        """Write the elements of these rows and columns to `out`, which has their shape.

        What is returned isn't used: anything but None and `out` is refused.
        """


#: What results are NumPy arrays for: arrays, nested lists and numbers, and matrices that are read.
HostArrayLike = npt.NDArray[Any] | Sequence[Any] | complex | np.generic | SourceLike | StoredArray


class _SupportsArray(Protocol):
    """What NumPy makes an array of."""

    def __array__(self) -> npt.NDArray[Any]: ...


#: What is taken as a vector or matrix: arrays of any library, `Data`, lists and sources.
ArrayLike = HostArrayLike | CudaArray | DLPackArray | _SupportsArray

#: CuPy in, CuPy out; PyTorch in, PyTorch out.
CudaArrayT = TypeVar("CudaArrayT", bound=CudaArray)
#: The array given as `out`, which is returned.
OutT = TypeVar("OutT", bound=Array | DLPackArray | _SupportsArray)


class SparseArray(Protocol):
    """A sparse array or matrix of SciPy or CuPy, of any format."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def tocsr(self) -> Any:
        """The same by compressed rows."""


class LinearOperator(Protocol):
    """A matrix that is known by its products, as `scipy.sparse.linalg.LinearOperator`."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def matvec(self, x: Any, /) -> Any:
        """The product with a vector."""


class Hierarchy(Protocol):
    """Levels of a multigrid method, as pyamg makes them."""

    @property
    def levels(self) -> Sequence[Any]:
        """From the finest to the coarsest, with matrices A, and P and R but for the last."""


#: A matrix with elements: sparse or dense, or the path of a file or folder.
MatrixLike = SparseArray | ArrayLike | str | os.PathLike[str]
#: A matrix that is known by its products: an operator, or a function of a vector.
OperatorLike = LinearOperator | Callable[[Any], Any]
#: The name of a method (with a number), a diagonal, a matrix, an operator or levels.
PreconditionerLike = str | tuple[str, int] | ArrayLike | SparseArray | OperatorLike | Hierarchy


class _SupportsBuffer(Protocol):
    """What has the buffer protocol, as bytes have."""

    def __buffer__(self, flags: int, /) -> memoryview: ...


#: What messages are sent from and received in.
MessageArray = Array | DLPackArray | _SupportsArray | _SupportsBuffer
#: One kind of array in and out.
MessageArrayT = TypeVar("MessageArrayT", bound=MessageArray)


class _CudaStream(Protocol):
    """By the protocol of CUDA's Python libraries."""

    def __cuda_stream__(self) -> tuple[int, int]: ...


class _CuPyStream(Protocol):
    @property
    def ptr(self) -> int: ...


class _TorchStream(Protocol):
    @property
    def cuda_stream(self) -> int: ...


#: A stream of a GPU: CuPy's, PyTorch's, another library's, or its address.
StreamLike = int | _CudaStream | _CuPyStream | _TorchStream


class Datatype(Protocol):
    """A datatype of mpi4py."""

    def decode(self) -> tuple[Any, str, dict[str, Any]]:
        """How it was made."""

    def Get_extent(self) -> tuple[int, int]:
        """The lower bound and the extent, in bytes."""


class Group(Protocol):
    """A communicator of mpi4py, as ``MPI.COMM_WORLD``."""

    def Get_rank(self) -> int:
        """The number of this process."""

    def Get_size(self) -> int:
        """The number of processes."""

    def bcast(self, obj: Any, root: int = 0) -> Any:
        """Send an object to all."""


#: What the source of a pipeline yields: an array, a tuple, or a mapping of names to values.
ChunkLike = npt.NDArray[Any] | tuple[Any, ...] | Mapping[str, Any]

#: The operation on a factor: nothing, the transpose, or the conjugate transpose.
Trans = Literal[0, 1, 2, "N", "T", "C"] | bool
#: Whether to show a bar, or what to call with the fraction done.
Progress = bool | Callable[[float], object] | None
