# SPDX-License-Identifier: BSD-3-Clause
# python/quadriga/pipeline/pipeline.py: the pipeline that users write.
"""Chunks through stages on all devices."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .. import _core, mapped
from ..arguments import whole
from ..current import innermost
from ..engine import Engine
from ..errors import Error, InvalidArgument
from ..failures import add_note, raise_kept
from ..machine import Machine
from . import given
from .chunk import Chunk, label_of
from .front import Front
from .pending import Pending
from .progress import Progress, Told, progress_of
from .reduction import Reduced
from .rows import Rows
from .stages import Stages
from .stats import ChunkFailure, PipelineEstimate, PipelineStats, from_core

_SLICE = 0.05  # seconds between two looks at signals
_PATIENCE = 1.0  # seconds that an interrupt waits for what runs


class Pipeline(Stages):
    """Passes chunks from a source through kernels on all devices and functions on the host.

    Parameters
    ----------
    memory : int or str, optional
        Limit of each device's memory for the run: bytes, or text such as ``"4GiB"``. Default: all
        that tiles may use.
    devices : str or Machine, optional
        As in `Engine`, for a separate engine.
    engine : Engine, optional
        Instead of a separate one.
    host_memory : int or str, optional
        Limit of host memory for chunks in progress. Default: half of the engine's.
    order : {"adaptive", "largest", "first_come", "smallest"}
        Which chunk goes to a device next; adaptive: two small ones on each device, then the largest
        first, and the smallest last.
    on_error : {"raise", "skip"}
        Whether a stage's failure ends the run, or its chunk is dropped and recorded in `failures`.
    on_full : {"wait", "drop"}
        While there is no room for another chunk: the source waits, or it is asked all the time, as
        live data require, and what there is no room for is dropped and counted
        (``stats().missed``). Numbers of chunks then have gaps.
    look_ahead : int
        Limit of chunks that were read but haven't reached a device.
    most_on_device, most_on_link, most_in_all : int, optional
        Limits: chunks on a device (default: one arriving, one in its kernels, one leaving),
        concurrent copies on a link (default: as many as saturate it), chunks on all devices.
    threads : int, optional
        Limit of concurrent bodies of parallel stages. Default: the number of usable cores.

    Raises
    ------
    InvalidArgument
        If an argument isn't accepted. With `devices`, also whatever `Engine` raises.

    Examples
    --------
    >>> import numpy as np, quadriga
    >>> pipeline = quadriga.Pipeline(devices="emulated:2,memory=1MiB")
    >>> def double(x, y):
    ...     y[:] = 2 * x
    >>> _ = pipeline.source({"x": np.full(n, n)} for n in (3, 1, 2))
    >>> _ = pipeline.kernel(double, reads=["x"], writes={"y": lambda c: (c["x"].shape, "i8")})
    >>> [chunk["y"].tolist() for chunk in pipeline.results(in_order=True)]
    [[6, 6, 6], [2], [4, 4]]
    """

    def __init__(
        self,
        memory: int | str | None = None,
        *,
        devices: str | Machine | None = None,
        engine: Engine | None = None,
        host_memory: int | str | None = None,
        order: str = "adaptive",
        on_error: str = "raise",
        on_full: str = "wait",
        look_ahead: int = 64,
        most_on_device: int | None = None,
        most_on_link: int | None = None,
        most_in_all: int | None = None,
        threads: int | None = None,
    ) -> None:
        if engine is not None and devices is not None:
            raise InvalidArgument("a pipeline takes devices or an engine, not both")
        if on_error not in ("raise", "skip"):
            raise InvalidArgument(f"on_error is {on_error!r}; expected 'raise' or 'skip'")
        if on_full not in ("wait", "drop"):
            raise InvalidArgument(f"on_full is {on_full!r}; expected 'wait' or 'drop'")
        self._options = {
            "order": given.order(order),
            "skips": on_error == "skip",
            "misses": on_full == "drop",
            "memory": given.byte_count("memory", memory),
            "host_memory": given.byte_count("host_memory", host_memory),
            "look_ahead": whole("look_ahead", look_ahead, 1, given.MOST),
            "most_on_device": whole("most_on_device", most_on_device or 0, 0, given.MOST),
            "most_on_link": whole("most_on_link", most_on_link or 0, 0, given.MOST),
            "most_in_all": whole("most_in_all", most_in_all or 0, 0, given.MOST),
            "threads": whole("threads", threads or len(os.sched_getaffinity(0)), 1, given.MOST),
        }
        super().__init__()
        self._raised: dict[str, BaseException] = {}
        self._engine = engine if devices is None else Engine(devices)
        self._front: Front | None = None

    # Runs

    def estimate(
        self, chunks: Iterable[Any] | None = None, seconds: Mapping[str, float] | None = None
    ) -> PipelineEstimate:
        """The least time of a run over chunks like these, before it begins.

        Parameters
        ----------
        chunks : iterable, optional
            As a source yields them; only the functions in ``writes`` and of `flat_map` read their
            content. The latter are called, with fields that kernels write unspecified. Default: all
            of a source with sizes. Its smallest and its largest are read; what others ask for is
            taken to be on the line between these, by their sizes.
        seconds : dict of str to float, optional
            Seconds per chunk of ``"source"`` or stages, instead of those given to `takes`; needed
            for kernels whose cost isn't known.

        Raises
        ------
        InvalidArgument
            If `seconds` names no stage, or the run, which reads a source with sizes, has begun.
        Unavailable
            If the time of a kernel isn't known, or a `flat_map` raises, or there is one and no
            chunk is given; the message names it.
        """
        stated = dict(seconds or {})
        names = ["source", *(stage.name for stage in self._stages)]
        for name in stated:
            if name not in names:
                raise InvalidArgument(f"seconds of {name!r}: expected one of {', '.join(names)}")
        front = Front(iter(()), self._stages, False, self._source_seconds)
        sizes = None
        if chunks is None:
            if self._indexed is None or len(self._indexed) == 0:
                raise InvalidArgument("estimate() needs chunks, or a source with sizes")
            if self._flow is not None:
                raise InvalidArgument(
                    "estimate() by sizes comes before the run, which reads the source"
                )
            sizes = self._indexed.sizes
            ends = [int(sizes.argmin()), int(sizes.argmax())]
            shown = [front.shown(number, self._indexed[number]) for number in ends]
        else:
            shown = [front.shown(number, each) for number, each in enumerate(chunks)]
        threads: Any = self._options["threads"]
        told = _core.estimate_pipeline(
            self.engine.core,
            front,
            front.stages(),
            threads,
            self._source_seconds is not None,
            shown,
            [float(stated.get(name, 0.0)) for name in names],
            sizes,
        )
        told["shares"] = tuple(told["shares"])
        return PipelineEstimate(**told)

    def run(self, progress: bool | Told = False) -> PipelineStats:
        """Run until the source has ended and all chunks have passed; results are dropped.

        Parameters
        ----------
        progress : bool or callable
            True: show the run on standard error while it goes on. On a terminal a screen twice a
            second: chunks, their rate and the time left if the source has a length, the limiting
            resource, the bound, and all stages; elsewhere a line every ten seconds. A function is
            called with the `PipelineStats` so far, twice a second.

        Returns
        -------
        PipelineStats

        Raises
        ------
        Exception
            The exception of a stage or the source, with a note that names stage and chunk.
        """
        flow = self._begin()
        view: Progress | None = None
        failed = True
        try:
            view = progress_of(progress, self.stats, self._source)
            while not self._has_run(flow):
                if view:
                    view.tell()
            failed = False
        finally:
            self._end(view, left=failed, failed=failed)
        return self.stats()

    def results(self, in_order: bool = True, progress: bool | Told = False) -> Iterator[Chunk]:
        """Iterate over chunks that have passed all stages, in the source's order or as completed.

        The run starts with the first chunk and continues between chunks. Leaving the loop stops
        it: the source isn't called again.

        Parameters
        ----------
        in_order : bool
        progress : bool or callable
            As in `run`.

        Raises
        ------
        Exception
            As in `run`, after the chunks before the one that failed.
        """
        flow = self._begin()
        view: Progress | None = None
        ended = failed = False
        try:
            view = progress_of(progress, self.stats, self._source)
            while True:
                try:
                    known, chunk = flow.next(in_order, _SLICE)
                except Error as error:
                    ended = failed = True
                    raise_kept(self._original(error))
                if view:
                    view.tell()
                mapped.check()
                if chunk is not None:
                    chunk.records.clear()
                    yield chunk
                elif known:
                    ended = True
                    return
        finally:
            self._end(view, left=not ended, failed=failed or not ended)

    def stop(self) -> None:
        """End the run early, from any thread: chunks in a stage finish it, others are dropped.

        A run that begins later ends at once, without a chunk.
        """
        self._is_stopped = True
        if self._flow is not None:
            self._flow.stop()

    # What happens

    @property
    def engine(self) -> Engine:
        """The engine in use: the one given, else that of the ``with`` block, else its own."""
        if self._engine is None:
            self._engine = innermost() or Engine()
        return self._engine

    @property
    def order(self) -> str:
        """Which chunk goes to a device next; can be set during a run."""
        return next(name for name, code in given.ORDERS.items() if code == self._options["order"])

    @order.setter
    def order(self, value: str) -> None:
        self._options["order"] = given.order(value)
        if self._flow is not None:
            self._flow.set_order(self._options["order"])

    def stats(self) -> PipelineStats:
        """Statistics of the run so far; raises `InvalidArgument` before it has started."""
        if self._flow is None:
            raise InvalidArgument("the pipeline hasn't run yet")
        return from_core(self._flow.stats(), self._rows.chunk if self._rows is not None else 0)

    @property
    def reduced(self) -> Reduced:
        """The results of `reduce` by name, a dict, once the run has succeeded; empty before.

        Empty for a run without chunks. A maximum or minimum of no elements is left out. What isn't
        there raises `InvalidArgument`, which says why.
        """
        if self._flow is None or self._front is None:
            return Reduced(self._stages, "the pipeline hasn't run yet")
        known = self._front.reductions
        why = "no chunk came, or the run hasn't ended well"
        found = Reduced(self._stages, why)
        for use, at in self._flow.reduced():
            found.add(known[use], at)
        return found

    @property
    def failures(self) -> list[ChunkFailure]:
        """Chunks that failed so far, at most a thousand."""
        if self._flow is None or self._front is None:
            return []
        found = self._raised | self._front.raised
        return [
            ChunkFailure(
                chunk, stage, found.get(label_of(chunk, parts)) or Error(message), tuple(parts)
            )
            for chunk, parts, stage, message in self._flow.failures()
        ]

    def __repr__(self) -> str:
        names = " > ".join(["source", *(stage.name for stage in self._stages)])
        if self._flow is None:
            return f"<Pipeline {names}: not run>"
        stats = self.stats()
        return f"<Pipeline {names}: {stats.chunks} chunks in {stats.seconds:.3g} s>"

    # Inside

    def _begin(self) -> _core.Flow:
        if self._source is None:
            raise InvalidArgument("the pipeline has no source; give it one by source()")
        if self._flow is not None:
            raise InvalidArgument("a pipeline runs once; make another one for another run")
        has_cuda = any(device.kind == "cuda" for device in self.engine.machine.devices)
        memory: Any = self._options["host_memory"]
        pending = Pending(self.engine.core, self._stages)
        if self._indexed is not None:
            self._indexed.failed = None
        pending.begin(self._source if self._indexed is None else self._indexed.read)
        buffers = _core.HostBuffers(self.engine.core, memory)
        self._front = Front(
            iter(self._source) if self._indexed is None else self._indexed,
            self._stages,
            has_cuda,
            self._source_seconds,
            buffers,
            self._reuses,
            pending,
        )
        options: dict[str, Any] = self._options | {"takes": self._source_seconds is not None}
        options["sizes"] = None if self._indexed is None else self._indexed.sizes
        if self._rows is not None and self._rows.chunk == 0:
            self._rows.chunk = self._chosen_rows(self._rows)
        self._flow = _core.Flow(self.engine.core, self._front, self._front.stages(), **options)
        if self._is_stopped:  # before, or by a thread that found no run yet
            self._flow.stop()
        return self._flow

    def _chosen_rows(self, rows: Rows) -> int:
        """How many rows make a chunk, by what chunks of one row and of two need."""
        if rows.total <= 1:
            return 1
        front = Front(iter(()), self._stages, False)
        given: Any = self._options
        chosen = _core.choose_rows(
            self.engine.core,
            front,
            front.stages(),
            given["memory"],
            given["host_memory"],
            given["most_on_device"],
            given["threads"],
            [front.shown(number, rows.part(0, number + 1)) for number in range(2)],
            rows.total,
        )
        for each in front.reductions.values():
            each.layout = None  # of rows that were looked at, not of chunks
        return int(chosen)

    def _has_run(self, flow: _core.Flow) -> bool:
        """Whether the run has ended; waits for a moment."""
        try:
            has_run = flow.run(_SLICE)
        except Error as error:
            raise_kept(self._original(error))
        if has_run:
            mapped.check()
        return has_run

    def _end(self, view: Progress | None, left: bool, failed: bool) -> None:
        """Nothing of a view stays, whatever interrupts the end of the run."""
        try:
            if left:
                self._leave()
        finally:
            if view:
                view.end(failed)

    def _leave(self) -> None:
        """Somebody leaves the run: what runs is waited for, not the source."""
        assert self._flow is not None
        assert self._front is not None
        self._flow.stop()
        self._flow.drain(_PATIENCE)
        self._front.close()

    def _original(self, error: Error) -> BaseException:
        """What Python raised, if it was Python, with stage and chunk."""
        assert self._flow is not None
        assert self._front is not None
        self._raised = self._front.end()
        failed = None if self._options["skips"] else min(self._flow.failures(), default=None)
        read = None if self._indexed is None else self._indexed.failed
        if failed and read is not None and read < failed[0]:
            failed = None
        label = label_of(*failed[:2]) if failed else "source"
        found = self._raised.get(label)
        if found is None:
            return error
        add_note(found, f"in stage '{failed[2]}' at chunk {label}" if failed else "in the source")
        return found
