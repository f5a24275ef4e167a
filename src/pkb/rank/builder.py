"""The process that compiles a candidate's extensions: forked like a rank, without peers and without a GPU."""

import os
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from pkb.base.python_source import argument_free_callers, local_names
from pkb.protocol.channel import Message
from pkb.rank.bootstrap import import_candidate
from pkb.rank.extensions import MODULE, BuildError, install
from pkb.rank.rank import Rank


class Builder(Rank):
    def _enter(self, order: Message, listener_fd: int | None) -> None:
        """Join nothing. The nursery has never touched CUDA, so it is not too late to hide the GPUs."""
        os.environ["CUDA_VISIBLE_DEVICES"] = ""

    def build(self, candidate: str, extensions: Message) -> tuple[Message, list[Tensor]]:
        """Import the candidate, which compiles what it compiles then; then what `solution` would compile in a call."""
        install(home=self.folder, **extensions)
        module = import_candidate(Path(candidate))
        source = Path(candidate).read_bytes()
        for name in argument_free_callers(source, {"load_inline", *local_names(source, MODULE)}):
            _try(getattr(module, name))
        return {}, []


def _try(function: Callable[[], object]) -> None:
    try:
        function()
    except BuildError:
        raise
    except Exception as error:
        # It may need its peers or a GPU: the ranks will tell.
        print(f"not compiled ahead: {error!r}")
