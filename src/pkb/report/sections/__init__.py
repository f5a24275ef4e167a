"""The sections of a report: one module each, here or in a folder `report_sections` of PKB_PLUGINS.

A module has a function `make_section(data: ReportData) -> Section` and an ORDER: sections with a lower one come first.
"""

from pkb.base.plugins import list_plugin_folders, load_objects
from pkb.report.data import ReportData
from pkb.report.section import Section

__path__ += list_plugin_folders("report_sections")


def make_sections(data: ReportData) -> dict[str, Section]:
    """Return all sections by the names of their modules, in the order of reading."""
    makers, orders = (load_objects(__name__, __path__, name) for name in ("make_section", "ORDER"))
    return {name: makers[name](data) for name in sorted(makers, key=lambda name: (orders[name], name))}
