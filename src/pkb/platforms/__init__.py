"""Where ranks run. A platform is one module with a PLATFORM, here or in a folder of PKB_PLUGINS."""

from functools import cache

from pkb.base.plugins import list_plugin_folders, load_objects
from pkb.errors import UsageError
from pkb.platforms._base import Clock, HostClock, Platform

__all__ = ["Clock", "HostClock", "Platform", "find_platform", "host_platform", "load_platforms"]

__path__ += list_plugin_folders("platforms")


@cache
def load_platforms() -> dict[str, Platform]:
    """Return all platforms by name, the preferred ones first."""
    found: list[Platform] = list(load_objects(__name__, __path__, "PLATFORM").values())
    return {platform.name: platform for platform in sorted(found, key=lambda platform: -platform.preference)}


def find_platform(name: str = "auto") -> Platform:
    """Return the platform of this name, or the preferred one of those that this machine can use."""
    if name == "auto":
        return next(platform for platform in load_platforms().values() if platform.find_missing() is None)
    if name not in load_platforms():
        raise UsageError(f"unknown platform {name!r}; choose from auto, {', '.join(load_platforms())}")
    if lacking := load_platforms()[name].find_missing():
        raise UsageError(f"platform {name} cannot be used here: {lacking}")
    return load_platforms()[name]


def host_platform() -> Platform:
    """Return the platform that every machine has: compilers run there, whatever the platform of the ranks."""
    return load_platforms()["cpu"]
