"""The checks of the self-test. Add one: an object in a file of its own, and its name in this list."""

from pkb.tools.selftest.check import SelftestCheck
from pkb.tools.selftest.checks.all_references import ALL_REFERENCES
from pkb.tools.selftest.checks.cheats import CHEATS
from pkb.tools.selftest.checks.clocks import CLOCKS
from pkb.tools.selftest.checks.faults import FAULTS
from pkb.tools.selftest.checks.honest import HONEST
from pkb.tools.selftest.checks.leftovers import LEFTOVERS
from pkb.tools.selftest.checks.machine import MACHINE
from pkb.tools.selftest.checks.memory import MEMORY
from pkb.tools.selftest.checks.references import REFERENCES
from pkb.tools.selftest.checks.sandbox import SANDBOX
from pkb.tools.selftest.checks.timed_cheats import TIMED_CHEATS
from pkb.tools.selftest.checks.timing import TIMING

CHECKS: tuple[SelftestCheck, ...] = (
    MACHINE,
    SANDBOX,
    REFERENCES,
    HONEST,
    FAULTS,
    CHEATS,
    TIMED_CHEATS,
    TIMING,
    CLOCKS,
    MEMORY,
    ALL_REFERENCES,
    LEFTOVERS,
)
"""In the order of the table. Where time is short, the later ones lose more of their steps.

LEFTOVERS is last: it closes the judge.
"""
