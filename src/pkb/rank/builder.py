"""The process that compiles a candidate's extensions: forked like a rank, but without peers and GPUs."""

import os
from collections.abc import Callable
from pathlib import Path

from pkb.base.python_source import find_argument_free_callers, find_local_names
from pkb.protocol import messages as m
from pkb.protocol.extension_files import MODULES
from pkb.published_lib import offer_modules
from pkb.rank.bootstrap import import_candidate
from pkb.rank.extensions import BuildError, install_loaders
from pkb.rank.rank import HANDLERS, Rank


class Builder(Rank):
    def _enter(self, order: m.Spawn, port: int, listener_fd: int | None) -> None:
        """Join no group. The nursery has never touched CUDA, so it is not too late to hide the GPUs."""
        os.environ["CUDA_VISIBLE_DEVICES"] = ""

    def build_extensions(self, order: m.BuildExtensions) -> None:
        """Import the candidate, which compiles its extensions; then compile what `solution` would compile in a call."""
        install_loaders(order.extensions, home=self.folder)
        offer_modules()
        module = import_candidate(Path(order.candidate), self.folder.parent)
        source = Path(order.candidate).read_bytes()
        compilers = {name for one in MODULES for name in find_local_names(source, one)}
        for name in find_argument_free_callers(source, {"load_inline", *compilers}):
            _try_call(getattr(module, name))


def _try_call(function: Callable[[], object]) -> None:
    try:
        function()
    except BuildError:
        raise
    except Exception as error:
        # The function may need peers or a GPU: the ranks will show.
        print(f"not compiled before the ranks start: {error!r}")


HANDLERS[m.BuildExtensions] = Builder.build_extensions  # type: ignore[assignment]
