"""The process that ranks are forked from: it has imported torch and Triton, and has never touched a GPU.

Run as `python -m pkb.nursery.main`. It is told its settings, and obeys the judge, on the socket that is its
stdin. When the judge goes away, however that happens, it kills every descendant, removes the judge's folders and exits.
"""

import contextlib
import importlib
import os

from pkb.nursery.server import NurseryProcess
from pkb.platforms import platforms
from pkb.protocol.channel import Channel, ChannelClosed
from pkb.sandbox import linux
from pkb.sandbox import visible_paths as view
from pkb.sandbox.processes import adopt_orphans, import_present, judges_socket

# What ranks would otherwise each import again.
_PRELOADED = ("torch", "torch.distributed")
# These look at the environment when they are loaded, so the settings come first.
_PRELOADED_WITH_SETTINGS = ("torch.distributed._symmetric_memory", "pkb.rank.builder", "pkb.problems.suite")


def main() -> None:
    channel = Channel(judges_socket())
    adopt_orphans()
    # Ranks have this process's rights: without this they could read its memory.
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    for name in _PRELOADED:
        importlib.import_module(name)
    with contextlib.suppress(ChannelClosed):
        settings = channel.receive()
        os.environ |= settings.pop("environment")
        platforms_own = settings.pop("preloaded")
        nursery = NurseryProcess(channel, **settings)
        platforms()
        view.readable()
        import_present([*_PRELOADED_WITH_SETTINGS, *platforms_own])
        nursery.serve()
    # Nothing here is worth tearing down piece by piece, and libraries would complain of what is frozen.
    os._exit(0)


if __name__ == "__main__":
    main()
