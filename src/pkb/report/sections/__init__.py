"""The sections of a report: one module each, here or in a folder `report_sections` of PKB_PLUGINS.

A module has a function `make_section(data: ReportData) -> Section` and an ORDER: sections with a lower one come first.
"""

from dataclasses import replace

from pkb.base.plugins import list_plugin_folders, load_objects
from pkb.report.data import ReportData
from pkb.report.section import Section

__path__ += list_plugin_folders("report_sections")


def make_sections(data: ReportData) -> dict[str, Section]:
    """Return all sections by the names of their modules, in the order of reading.

    Where there are several suites, each has its own sections, named after it too.
    """
    makers, orders = (load_objects(__name__, __path__, name) for name in ("make_section", "ORDER"))
    order = sorted(makers, key=lambda name: (orders[name], name))
    suites = data.split_suites()
    if len(suites) == 1:
        return {name: makers[name](data) for name in order}
    return {
        f"{name}_{suite}": _add_suite(makers[name](part), part.rows[0].suite)
        for suite, part in suites.items()
        for name in order
    }


def _add_suite(section: Section, suite: str) -> Section:
    return replace(section, title=f"{section.title}: suite {suite}")
