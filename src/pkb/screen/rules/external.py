"""Work that is not done in the call: by other files, other machines, or earlier runs."""

from collections.abc import Iterable

from pkb.screen.facts import Facts
from pkb.screen.rule import BOTH, Spot, rule


@rule("put all code into the one file", reject=BOTH)
def loads_code(facts: Facts) -> Iterable[Spot]:
    """brings in code from another file"""
    return facts.find_uses(
        *("importlib.util.spec_from_file_location", "importlib.util.module_from_spec", "importlib.machinery", "imp"),
        *("runpy", "zipimport", "pkgutil.get_loader", "sys.path", "site", "torch.jit.load", "torch.package"),
        *("torch.ops.load_library", "torch.classes.load_library", "torch.export.load"),
    )


@rule("compute everything in the call", reject=BOTH)
def uses_the_network(facts: Facts) -> Iterable[Spot]:
    """talks to the network"""
    return facts.find_uses(
        *("socket", "socketserver", "ssl", "urllib.request", "http", "ftplib", "smtplib", "telnetlib", "xmlrpc"),
        *("requests", "httpx", "aiohttp", "urllib3", "websockets", "paramiko", "huggingface_hub", "torch.hub", "pip"),
        *("asyncio.open_connection", "asyncio.start_server", "multiprocessing.connection", "zmq"),
    )


@rule("compute the results in the call", reject=BOTH)
def loads_results(facts: Facts) -> Iterable[Spot]:
    """reads values from a file or a database"""
    return facts.find_uses(
        *("torch.load", "pickle.load", "pickle.Unpickler"),
        *("dill.load", "joblib.load", "cloudpickle.load", "shelve", "dbm", "sqlite3", "safetensors"),
        *("numpy.load", "numpy.loadtxt", "numpy.fromfile", "diskcache"),
    )


@rule("keep what calls share in symmetric memory", warn=BOTH)
def touches_files(facts: Facts) -> Iterable[Spot]:
    """reads or writes files in every call"""
    return facts.find_uses(
        *("builtins.open", "io.open", "os.open", "os.listdir", "os.scandir", "os.walk", "pathlib.Path", "tempfile"),
        *("shutil", "glob", "mmap", "torch.save", "numpy.save", "pickle.dump", "numpy.memmap"),
        *("torch.from_file", "torch.UntypedStorage.from_file", "multiprocessing.shared_memory"),
        hot=True,
    )


@rule("pass tensors and numbers", warn=BOTH)
def unpickles(facts: Facts) -> Iterable[Spot]:
    """turns bytes into objects"""
    return facts.find_uses("pickle.loads", "dill.loads", "cloudpickle.loads", "joblib.loads")
