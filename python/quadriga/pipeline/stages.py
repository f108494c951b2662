# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/stages.py: the source and stages that users give a pipeline.
"""The stages of a pipeline, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy.typing as npt

from .. import _core
from ..arguments import whole
from ..codelets import Cost
from ..cuda_source import CudaSource
from ..errors import InvalidArgument, InvalidType
from . import given
from .chunk import Chunk, Kind, Seconds, Shape
from .front import KernelUse, Stage
from .indexed import IndexedSource, indexed
from .kernels import kernel_stage
from .reduction import reduction_of
from .rows import Rows, rows_of


class Stages:
    """A source and stages, stated before a run."""

    def __init__(self) -> None:
        self._stages: list[Stage] = []
        self._source: Iterable[Any] | None = None
        self._rows: Rows | None = None  # the source, if it is an array
        self._indexed: IndexedSource | None = None  # the source, if it gives any chunk
        self._reuses: bool | None = None  # whether the source fills memory again
        self._source_seconds: Seconds | None = None
        self._flow: _core.Flow | None = None
        self._is_stopped = False

    def source(
        self,
        chunks: Iterable[Any] | Callable[[int], Any],
        rows: int | None = None,
        *,
        sizes: Iterable[float] | None = None,
        reuses: bool | None = None,
    ) -> Self:
        """Set where chunks come from: an iterable of arrays, tuples or dicts, of any sizes.

        Or an array, or a dict of arrays with equal numbers of rows: each chunk is `rows` of them,
        without a copy. By default `rows` minimizes the time by the machine's description, counting
        copies, launches and the time in which the first and the last chunk are alone; `stats` has
        the number.

        Or a sequence or function and `sizes`, a number for each chunk, or an `IndexedSource`, which
        has them: ``chunks[i]`` or ``chunks(i)`` is chunk `i`. Chunks are then read as the order
        takes them, so that a few that are there (`look_ahead`) do as well as all; in order where
        results, a ``serial_in_order`` stage or a `flat_map` need that. Sizes are in any unit: only
        which is larger counts, and chunks have the memory that their content takes.

        One thread at a time calls the source, when there is room. Values that aren't arrays stay
        on the host. To send a chunk through some of the stages only, yield
        ``quadriga.pipeline.Through(chunk, stages)``.

        Nobody may change what it yields until the chunk has ended: arrays that a generator or
        another iterator yields are read-only to it until it ends or their chunk has gone, and
        stages get writeable views. A source that fills one buffer again and again states
        ``reuses=True``: arrays are copied before it is asked for the next chunk. Where it doesn't,
        the run ends with an `InvalidArgument` if it yields memory again, while a chunk has it, that
        it could write to meanwhile (part of a larger array, a bytearray), or an array whose content
        has changed: views made before the first yield can still write it. Of arrays of 256
        elements or more a sample of at least 128 is compared, which a change of few may escape.
        ``reuses=False`` says that it only reads such memory; nothing is compared.
        """
        if self._source is not None:
            raise InvalidArgument("the pipeline has a source already")
        if rows is not None:
            rows = whole("rows", rows, 1, given.MOST)
        given.reuses(reuses)
        self._indexed = indexed(chunks, sizes)
        chunks = self._indexed if self._indexed is not None else chunks
        self._rows = rows_of(chunks, rows)
        if self._rows is not None:
            chunks = self._rows
        self._reuses = False if self._rows is not None and reuses is None else reuses
        if not isinstance(chunks, Iterable):
            raise InvalidType(f"a source is an iterable of chunks, got {type(chunks).__name__}")
        self._source = chunks
        return self

    def kernel(
        self,
        function: Callable[..., Any] | None = None,
        *,
        cuda: CudaSource | Callable[..., Any] | None = None,
        arrays: str | None = None,
        reads: Sequence[str] | None = None,
        updates: Sequence[str] = (),
        writes: Mapping[str, Shape | Kind] | None = None,
        temporaries: Mapping[str, Shape | Kind] | None = None,
        returns: str | Sequence[str] | Mapping[str, Any] | None = None,
        constants: Mapping[str, Any] | None = None,
        name: str | None = None,
        cost: Cost | None = None,
    ) -> Self:
        """Add a kernel, which runs on a device; consecutive kernels need no copy in between.

        It is called with the fields in the order reads, constants that are arrays, updates, writes,
        temporaries; constants that are numbers are passed by name.

        Parameters
        ----------
        function : callable, optional
            Gets NumPy views; runs on cores and emulated devices.
        cuda, arrays
            The variant for CUDA devices, as in `codelet`.
        reads, updates : sequence of str
            Fields that it reads; fields that it reads and writes. Default of `reads` in a first
            kernel without updates: the field ``"array"``.
        writes : dict of str to tuple or callable
            Fields that it writes entirely: ``(shape, dtype)``, or where chunks differ
            ``lambda chunk: (shape, dtype)``, called when the chunk arrives.
        temporaries : dict of str to tuple or callable
            The same for fields that exist on the device only, for consecutive kernels.
        returns : str, sequence of str or dict, optional
            Fields that the function returns: one array, or a tuple of as many. Their sizes may
            depend on content. A dict gives the maximum bytes of each, or a function of the chunk
            that returns them; otherwise they are estimated from earlier chunks. `reads` then
            defaults to the function's parameters. Existing fields are replaced. Nobody may change
            the arrays until the chunk has ended.
        constants : dict
            Arrays that all chunks share, and numbers.
        name : str, optional
            Default: the function's.
        cost : Cost, optional
            As in `codelet`.

        Returns
        -------
        Self
            This pipeline, as in `source` and `map`.

        Raises
        ------
        InvalidArgument
            If an argument isn't accepted, or the run has started.
        """
        is_first = not any(stage.kind == "kernel" for stage in self._stages)
        return self._add(
            kernel_stage(
                function,
                is_first,
                cuda=cuda,
                arrays=arrays,
                reads=reads,
                updates=updates,
                writes=writes,
                temporaries=temporaries,
                returns=returns,
                constants=constants,
                name=name,
                cost=cost,
            )
        )

    def reduce(
        self,
        field: str,
        op: str | tuple[Callable[..., Any], Callable[..., Any]] = "sum",
        *,
        axis: int | tuple[int, ...] | None = 0,
        dtype: npt.DTypeLike | None = None,
        initial: npt.ArrayLike | None = None,
        cuda: CudaSource | Callable[..., Any] | None = None,
        arrays: str | None = None,
        name: str | None = None,
        cost: Cost | None = None,
    ) -> Self:
        """Reduce a field over all chunks; partial results stay on devices until the end.

        The result is NumPy's for all chunks concatenated along the first axis, except for the
        order of sums. `reduced` has it after the run; chunks pass on unchanged.

        Parameters
        ----------
        field : str
        op : {"sum", "mean", "max", "min"} or tuple
            Or two functions: a kernel ``add(x, part)``, which adds a field to a part, and
            ``join(part, other)``, which adds another part to it, on the host. They may be called in
            any order.
        axis : int, tuple of int or None
            Which axes of a chunk are reduced; None: all; ``()``: none, so that fields of one shape
            are combined elementwise.
        dtype : dtype, optional
            Of parts and result. Default: as in NumPy.
        initial : array, optional
            With two functions: their neutral element.
        cuda, arrays, cost
            As in `kernel`, for two functions. For the named operations, too, `arrays` is the
            library on GPUs: ``"cupy"`` (default) or ``"torch"``.
        name : str, optional
            Of stage and result. Default: the field's.
        """
        made = reduction_of(field, op, axis, dtype, initial, cuda, arrays, name, cost)
        if any(use.name == f"reduced {made.name}" for stage in self._stages for use in stage.uses):
            raise InvalidArgument(f"there is a result {made.name!r} already; give this one a name=")
        uses = [
            KernelUse(field, "read"),
            KernelUse(f"reduced {made.name}", "update", reduction=made),
        ]
        return self._add(Stage("kernel", made.name, codelet=made.codelet, uses=uses))

    def map(
        self,
        function: Callable[[Chunk], Any],
        *,
        mode: str = "parallel",
        name: str | None = None,
    ) -> Self:
        """Add a body on the host, which is called with the chunk.

        Parameters
        ----------
        function : callable
            Returns None, an array (the field ``"array"``), or a dict of fields that are added to
            the chunk.
        mode : {"parallel", "serial", "serial_in_order"}
            Several chunks at once; one at a time; one at a time in the source's order.
        name : str, optional
            Default: the function's.
        """
        return self._add(
            Stage(given.mode(mode), given.title("map", function, name), function=function)
        )

    def filter(
        self,
        function: Callable[[Chunk], Any],
        *,
        mode: str = "parallel",
        name: str | None = None,
    ) -> Self:
        """Drop chunks for which a function on the host is false.

        Parameters
        ----------
        function : callable
            Called with the chunk; returns whether to keep it.
        mode : {"parallel", "serial", "serial_in_order"}
            As in `map`.
        name : str, optional
        """
        title = given.title("filter", function, name)
        return self._add(Stage(given.mode(mode), title, function=function, filters=True))

    def flat_map(
        self,
        function: Callable[[Chunk], Iterable[Any]],
        *,
        memory: int | str | None = None,
        name: str | None = None,
        reuses: bool | None = None,
    ) -> Self:
        """Make several chunks of each, or none.

        Parameters
        ----------
        function : callable
            Called with a chunk, in the order of the source; returns or yields chunks as a source
            does. It is asked for the next one while there is room, so a chunk may become any
            number of others. Their arrays may be views of the chunk's, and may overlap.
        memory : int or str, optional
            Maximum bytes of its chunks in progress. Default: an equal share of half of
            `host_memory`.
        name : str, optional
        reuses : bool, optional
            As in `source`: True if the function fills memory again that a chunk of its may still
            have, so that chunks get copies. By default a chunk fails with an `InvalidArgument` if
            its arrays lie where those of another one in progress do, with another content, by the
            same samples; False: nothing is compared.
        """
        title = given.title("flat_map", function, name)
        most = given.byte_count("memory", memory)
        word = given.reuses(reuses)
        return self._add(Stage("flat_map", title, function=function, memory=most, reuses=word))

    def takes(self, stage: str, seconds: float | Callable[[Chunk], float]) -> Self:
        """State the time per chunk of ``"source"`` or of a host stage.

        `estimate` and the virtual clock use it; under the latter, bodies otherwise take no time.

        Parameters
        ----------
        stage : str
            A stage added before.
        seconds : float or callable
            Seconds per chunk, or a function of the chunk that returns them.
        """
        if self._flow is not None:
            raise InvalidArgument("state the times of stages before the run starts")
        stated = given.seconds(stage, seconds)
        if stage == "source":
            self._source_seconds = stated
            return self
        named = [s for s in self._stages if s.name == stage and s.kind != "kernel"]
        if not named:
            known = ["source", *(s.name for s in self._stages if s.kind != "kernel")]
            raise InvalidArgument(f"takes({stage!r}): expected one of {', '.join(known)}")
        for each in named:
            each.seconds = stated
        return self

    def _add(self, stage: Stage) -> Self:
        if self._flow is not None:
            raise InvalidArgument("add stages before the run starts")
        self._stages.append(stage)
        return self
