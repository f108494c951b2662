# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_gpu_message_streams.py: messages ordered with CuPy's streams, on one GPU or two.
import pytest
from gpus_of_tests import on_gpu
from ranks_of_tests import run_ranks

pytestmark = on_gpu
pytest.importorskip("cupy", reason="needs CuPy")

HEAD = """
    import cupy
    gpu = comm.rank % cupy.cuda.runtime.getDeviceCount()
    cupy.cuda.Device(gpu).use()
    other = 1 - comm.rank
    stream = cupy.cuda.Stream(non_blocking=True)

    def keep_busy():  # Some tenths of a second.
        with stream:
            a = cupy.ones((4096, 4096))
            for _ in range(60):
                a = a @ a / 4096
"""


def test_what_streams_hold_comes_first_and_what_they_get_later(tmp_path):
    """Contiguous and strided arrays, sizes from a slot's to many segments."""
    run_ranks(
        tmp_path,
        2,
        HEAD
        + """
    for count in (100, 5000, 300_000, 20_000_000):
        for step in (1, 2):
            with stream:
                a = cupy.zeros(count * step)[::step]
                b = cupy.zeros(count * step)[::step]
            keep_busy()
            with stream:
                a += 1 + comm.rank
            arriving = comm.irecv(b, other, stream=stream)
            comm.send(a, other, stream=stream)
            arriving.wait()
            with stream:
                total = b.sum()
                b[:] = -1
            assert float(total.get(stream=stream)) == count * (1 + other), (count, step)
    comm.barrier()
    """,
    )


def test_a_call_waits_for_no_stream(tmp_path):
    run_ranks(
        tmp_path,
        2,
        HEAD
        + """
    with stream:
        a, b = cupy.zeros(1_000_000), cupy.zeros(1_000_000)
    keep_busy()
    # The first messages open devices and memory, which takes as long.
    message.waitall([comm.irecv(b, other, stream=stream), comm.isend(a, other, stream=stream)])
    stream.synchronize()
    comm.barrier()
    begin = time.perf_counter()
    keep_busy()
    busy = cupy.cuda.Event()
    busy.record(stream)
    requests = [comm.irecv(b, other, stream=stream), comm.isend(a, other, stream=stream.ptr)]
    assert not busy.done, "the calls took as long as what the stream held"
    message.waitall(requests)
    stream.synchronize()
    comm.barrier()
    """,
    )
