# SPDX-License-Identifier: BSD-3-Clause
# tests/python/test_messages_predicted.py: which path a message takes, and its predicted seconds.
from ranks_of_tests import run_ranks


def test_the_path_of_a_message_is_predicted(tmp_path):
    run_ranks(
        tmp_path,
        2,
        """
    other, large = 1 - comm.rank, np.ones((1000, 1000))
    def chosen(*arguments, **more):
        (path,) = [each for each in comm.predict(*arguments, **more) if each.is_chosen]
        assert path.why and (path.seconds is None or path.seconds > 0)
        return path.name
    assert chosen(np.ones(10), other) == "slot"
    assert chosen(large, other) in ("read", "pieces")
    assert chosen(large.T[::2], other) == "pieces"
    assert chosen(large, comm.rank) == "copy"
    gpus = message.Devices("emulated:2,memory=16MiB,peer=2GB/s,latency=0us")
    a, b = gpus.empty(100_000, device=0), gpus.empty(100_000, device=1)
    paths = {each.name: each for each in comm.predict(a, other, into=b)}
    assert paths["mapped"].is_chosen and not paths["staged"].is_chosen
    # By the link; what a message costs beside that is measured, and more on a busy machine.
    assert 0.0004 <= paths["mapped"].seconds < 0.01
    assert comm.predict(a, other)[0].seconds is None  # within a device no link is stated
    try:
        comm.predict(a, 2)
        assert False
    except quadriga.InvalidArgument as error:
        assert "destination is 2" in str(error)
    comm.barrier()
    """,
    )
