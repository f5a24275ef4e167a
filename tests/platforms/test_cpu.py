"""How ranks share the processor."""

import os
import sys

import psutil
import pytest

from pkb.judge.judge import Judge
from pkb.judge.worlds.world import World


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a policy for threads that should not interrupt")
def test_ranks_and_their_threads_do_not_interrupt_each_other(judge: Judge) -> None:
    nursery = psutil.Process(judge.nursery.process.pid)
    before = set(nursery.children())
    with World(judge.nursery, 2, judge.limits) as world:
        world.start()
        threads = [thread.id for rank in set(nursery.children()) - before for thread in rank.threads()]
        # Of gloo, beside the ranks' own.
        assert len(threads) > 2
        assert {os.sched_getscheduler(thread) for thread in threads} == {os.SCHED_BATCH}
