# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_layouts_mpi.py: layouts of MPI's datatypes, against what MPI packs.
import numpy as np
import pytest

from quadriga.errors import InvalidArgument
from quadriga.message import Layout

try:
    from mpi4py import MPI
except (ImportError, RuntimeError) as error:
    pytest.skip(f"needs mpi4py and an MPI library: {error}", allow_module_level=True)


def by_mpi(datatype, memory):
    datatype.Commit()
    packed = bytearray(datatype.Pack_size(1, MPI.COMM_SELF))
    end = datatype.Pack(memory, packed, 0, MPI.COMM_SELF)  # as many as there are extents
    return bytes(packed[:end])


def random_type(random, depth):
    if depth == 0:
        return [MPI.DOUBLE, MPI.INT, MPI.CHAR, MPI.DOUBLE_INT, MPI.FLOAT, MPI.SHORT][
            random.integers(6)
        ]
    of = random_type(random, depth - 1)
    few = [int(each) for each in random.integers(1, 4, size=3)]
    places = [0, *(int(each) for each in np.cumsum(random.integers(3, 6, size=2)))]
    in_bytes = [each * 64 for each in places]
    order = [MPI.ORDER_C, MPI.ORDER_FORTRAN][random.integers(2)]
    makers = [
        lambda: of.Create_contiguous(few[0]),
        lambda: of.Create_vector(few[0], few[1], few[1] + few[2]),
        lambda: of.Create_hvector(few[0], few[1], 256),
        lambda: of.Create_indexed(few, places),
        lambda: of.Create_hindexed(few, in_bytes),
        lambda: of.Create_indexed_block(2, places),
        lambda: of.Create_hindexed_block(2, in_bytes),
        lambda: MPI.Datatype.Create_struct(few, in_bytes, [of, MPI.INT, of]),
        lambda: of.Create_subarray([4, 5], few[:2], [0, 1], order),
        lambda: of.Create_darray(
            6, int(random.integers(6)), [7, 8], [MPI.DISTRIBUTE_CYCLIC, MPI.DISTRIBUTE_BLOCK],
            [few[0], MPI.DISTRIBUTE_DFLT_DARG], [2, 3], order,
        ),
        lambda: of.Create_resized(0, of.Get_extent()[1] + 16),
        lambda: of.Dup(),
    ]  # fmt: skip
    return makers[random.integers(len(makers))]()


@pytest.mark.parametrize("seed", range(150))
def test_any_datatype_packs_as_mpi_packs_it(seed):
    random = np.random.default_rng(seed)
    datatype = random_type(random, 1 + seed % 3)
    layout = Layout.from_mpi(datatype)
    memory = np.frombuffer(random.bytes(layout.extent), dtype=np.uint8)
    assert (layout.nbytes, layout.extent) == (datatype.Get_size(), datatype.Get_extent()[1])
    assert layout.pack(memory).tobytes() == by_mpi(datatype, memory)


def test_what_is_no_datatype_is_refused():
    with pytest.raises(InvalidArgument, match="int is no mpi4py.MPI.Datatype"):
        Layout.from_mpi(3)
