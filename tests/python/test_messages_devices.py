# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_messages_devices.py: arrays in memory of emulated devices as messages.
import numpy as np
import pytest
from ranks_of_tests import run_ranks

import quadriga
from quadriga import message
from quadriga.message import Layout

GPUS = "emulated:2,memory=16MiB"


HEAD = f"""
    gpus = message.Devices("{GPUS}")
"""


def test_between_processes(tmp_path):
    printed = run_ranks(
        tmp_path,
        2,
        HEAD
        + """
    for count in (1, 100, 5000, 300_000):
        values = np.arange(count, dtype=np.float64)
        if comm.rank == 0:
            a = gpus.array(values)
            comm.send(a, 1, tag=3)  # to a device
            comm.send(a, 1, tag=4)  # to the host
            comm.send(values, 1, tag=5)  # from the host
        else:
            b, c, host = gpus.empty(count, device=1), gpus.empty(count), np.empty(count)
            assert comm.recv(b, 0, 3).nbytes == values.nbytes
            assert (b.get() == values).all()
            comm.recv(host, 0, 4)
            assert (host == values).all()
            comm.recv(c, 0, 5)
            assert (c.get() == values).all()
    comm.barrier()
    print(comm.paths()[1 - comm.rank]["in" if comm.rank == 1 else "out"])
    """,
    )
    assert printed.split() == ["mapped", "mapped"]


def test_layouts(tmp_path):
    run_ranks(
        tmp_path,
        2,
        HEAD
        + """
    a = np.arange(300.0 * 200).reshape(300, 200)
    if comm.rank == 0:
        comm.send(gpus.array(a), 1)
    else:
        b = gpus.empty((200, 300))
        comm.recv(b, 0, layout=Layout.of(np.empty((200, 300)).T))
        assert (b.get() == a.T).all()
    comm.barrier()
    """,
    )


def test_collectives_refuse_them_and_layouts_must_fit():
    gpus = message.Devices(GPUS)
    with message.world() as comm:
        a = gpus.array(np.ones(4))
        with pytest.raises(quadriga.InvalidType, match="device's memory"):
            comm.allreduce(a, a)
        with pytest.raises(quadriga.InvalidArgument, match="reaches bytes"):
            comm.send(a, 0, layout=Layout.contiguous(5, np.float64))


def test_a_full_device_says_so():
    gpus = message.Devices("emulated:1,memory=1MiB")
    with pytest.raises(quadriga.TooLarge, match="memory left"):
        gpus.empty(1 << 20)


def test_devices_are_emulated():
    with pytest.raises(quadriga.InvalidArgument):
        message.Devices("cpu")
