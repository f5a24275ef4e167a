"""The process that ranks are forked from: it has imported torch and Triton, and has never touched a GPU.

Run as `python -m pkb.nursery.main`. It receives its settings and the judge's orders on the socket that is its stdin.
When the judge goes away, however that happens, it kills every descendant, removes the judge's folders and exits.
"""

import contextlib
import importlib
import os

from pkb.backends import load_backends
from pkb.checks import list_checks
from pkb.nursery.forking import preload_modules, take_judge_socket
from pkb.nursery.server import NurseryServer
from pkb.platforms import load_platforms
from pkb.problems.suite import list_shared_modules
from pkb.protocol.channel import Channel, ChannelClosed
from pkb.protocol.messages import NurserySettings, decode_order
from pkb.sandbox import linux
from pkb.sandbox import visible_paths as view
from pkb.sandbox.processes import adopt_orphans

# What ranks would otherwise each import again.
_PRELOADED = ("torch", "torch.distributed")
# These look at the environment when they are loaded, so the settings come first. Confined ranks could not import them.
_PRELOADED_WITH_SETTINGS = (
    *("torch.distributed._symmetric_memory", "pkb.rank.builder", "pkb.problems.suite", "pkb.problems.link"),
    *("pkb.problems.case", "pkb.problems.sound_weights", "pkb.problems.kernelbench"),
)


def main() -> None:
    channel = Channel(take_judge_socket())
    adopt_orphans()
    # Ranks have this process's rights: without this they could read its memory.
    linux.prctl(linux.PR_SET_DUMPABLE, 0)
    for name in _PRELOADED:
        importlib.import_module(name)
    with contextlib.suppress(ChannelClosed):
        settings = decode_order(channel.receive())
        assert isinstance(settings, NurserySettings)
        os.environ |= settings.environment
        nursery = NurseryServer(channel, settings)
        # Before ranks are confined: they may not be able to read the folders of PKB_PLUGINS.
        load_platforms()
        load_backends()
        list_checks()
        # Looks for compilers and packages, once for all worlds.
        view.list_rules()
        preload_modules([*_PRELOADED_WITH_SETTINGS, *list_shared_modules(), *settings.preloaded])
        nursery.serve()
    # Nothing here is worth tearing down piece by piece, and libraries would complain of what is frozen.
    os._exit(0)


if __name__ == "__main__":
    main()
