"""Code that reaches out of the kernel: into the judge, the interpreter, the process or the machine."""

from collections.abc import Iterable, Iterator

from pkb.screen.facts import Facts, is_under
from pkb.screen.rule import BOTH, Spot, rule

_PUBLIC = ("pkb.triton_lib", "pkb.cuda_lib", "pkb.symmetric")


@rule("import only pkb.triton_lib, pkb.cuda_lib or pkb.symmetric", reject=BOTH)
def imports_the_judge(facts: Facts) -> Iterator[Spot]:
    """belongs to the judge, not to kernels"""
    for use in [*facts.imports, *facts.find_uses("pkb", "__main__")]:
        if is_under(use.name, ("pkb.*", "__main__")) and not is_under(use.name, _PUBLIC):
            yield use


@rule("take what you need from the arguments", reject=BOTH)
def reads_frames(facts: Facts) -> Iterable[Spot]:
    """reads the variables of its callers"""
    return facts.find_uses(
        *("sys._getframe", "sys._current_frames", "inspect.stack", "inspect.currentframe", "inspect.getouterframes"),
        *("inspect.trace", "inspect.getinnerframes", "traceback.walk_stack"),
        *("*.f_back", "*.f_locals", "*.f_globals", "*.tb_frame", "*.gi_frame", "*.cr_frame", "*.ag_frame"),
    )


@rule("take what you need from the arguments", reject=BOTH)
def searches_memory(facts: Facts) -> Iterable[Spot]:
    """searches the process for objects of others"""
    return facts.find_uses(
        "gc.get_objects", "gc.get_referrers", "gc.get_referents", "*.__subclasses__", "sys.modules.values"
    )


@rule("leave hooks, signals and limits as they are", reject=BOTH)
def sets_hooks(facts: Facts) -> Iterator[Spot]:
    """changes how the process behaves"""
    yield from facts.find_uses(
        *("atexit", "faulthandler", "resource", "signal", "sys.settrace", "sys.setprofile", "sys.addaudithook"),
        *("sys.meta_path", "sys.path_hooks", "sys.excepthook", "threading.settrace", "threading.setprofile"),
        *(f"torch*._{verb}_profiler*" for verb in ("prepare", "enable", "disable")),
        *("torch*._enable_record_function", "torch*._profiler_enabled", "torch*._set_empty_test_observer"),
    )
    # They hide operators from whoever records them.
    yield from facts.find_identifiers("*RecordFunctionGuard", "*enableRecordFunction", "*clear*Callbacks")


@rule("do the work in this process", reject=BOTH)
def starts_processes(facts: Facts) -> Iterable[Spot]:
    """starts another process"""
    found = facts.find_uses(
        *("os.fork", "os.forkpty", "os.exec*", "os.spawn*", "os.posix_spawn*", "os.system", "os.popen", "pty"),
        *("subprocess", "multiprocessing", "torch.multiprocessing", "asyncio.create_subprocess_*"),
        *("concurrent.futures.ProcessPoolExecutor", "concurrent.futures.process"),
    )
    # Memory with a name, which starts no process in a rank.
    return (use for use in found if not is_under(use.name, ("multiprocessing.shared_memory",)))


@rule("finish the work inside the call; the judge looks for work that is left", warn=BOTH)
def starts_threads(facts: Facts) -> Iterator[Spot]:
    """starts another thread"""
    yield from facts.find_uses(
        *("threading.Thread", "threading.Timer", "_thread", "concurrent.futures.ThreadPoolExecutor"),
        *("concurrent.futures.thread", "asyncio.to_thread", "asyncio.run"),
    )
    yield from facts.find_identifiers(
        "pthread_create", "std::thread", "std::jthread", "std::async", "cudaLaunchHostFunc"
    )


@rule("return from the call, or raise", reject=BOTH)
def ends_processes(facts: Facts) -> Iterable[Spot]:
    """ends or signals a process"""
    return facts.find_uses("os.kill", "os.killpg", "os._exit", "os.abort", "signal.raise_signal", "signal.pthread_kill")


@rule("launch kernels through Triton, torch or pkb.cuda_lib", reject=BOTH)
def reaches_the_interpreter(facts: Facts) -> Iterator[Spot]:
    """reaches into the Python interpreter"""
    yield from facts.find_uses("ctypes.pythonapi", "ctypes.PyDLL", "ctypes.py_object", "_ctypes", "types.CodeType")
    yield from facts.find_uses("types.FunctionType", "*.__code__", "*.__closure__", "*.__globals__", "*.cell_contents")
    yield from facts.find_identifiers(
        "PyRun_*", "PyEval_*", "PyObject_*", "PyImport_*", "PyFrame_*", "Py_CompileString*"
    )
    yield from facts.find_identifiers(
        *(f"{o}::{n}" for o in ("py", "pybind11") for n in ("exec", "eval", "module_::import"))
    )


@rule("work on tensors through torch", warn=BOTH)
def pokes_memory(facts: Facts) -> Iterable[Spot]:
    """reads or writes memory by its address"""
    return facts.find_uses(
        "ctypes.memmove", "ctypes.memset", "ctypes.string_at", "ctypes.*.from_address", "ctypes.cast"
    )


@rule("link what you need, or use torch's and CUDA's own functions", warn=BOTH)
def loads_libraries(facts: Facts) -> Iterator[Spot]:
    """loads a shared library, whose code is not seen here"""
    for use in facts.find_uses("ctypes.CDLL", "ctypes.cdll.LoadLibrary", "ctypes.util.find_library", "cffi"):
        texts = [str(text) for text in facts.find_arguments(use)]
        if use.call and not (texts and all("cuda" in text or "nvrtc" in text for text in texts)):
            yield use
    yield from facts.find_identifiers("*dlopen", "*dlsym", "*dlmopen", "*DynamicLibrary")


@rule("take what you need from the arguments", reject=BOTH)
def reads_proc(facts: Facts) -> Iterator[Spot]:
    """looks into the system's view of processes"""
    for use in facts.find_uses("builtins.open", "io.open", "os", "pathlib", "codecs.open", "ctypes.CDLL"):
        if any(str(text).startswith("/proc") for text in facts.find_arguments(use)):
            yield use
    yield from facts.find_identifiers("ptrace", "process_vm_readv", "process_vm_writev")


@rule("leave file descriptors alone that you did not open", reject=BOTH)
def moves_descriptors(facts: Facts) -> Iterator[Spot]:
    """takes over file descriptors"""
    yield from facts.find_uses("os.dup", "os.dup2", "os.closerange")
    yield from facts.find_identifiers("dup2", "dup3")


@rule("the judge sets the environment; what must differ belongs into the arguments", warn=BOTH)
def sets_environment(facts: Facts) -> Iterator[Spot]:
    """changes the environment of the process"""
    yield from facts.find_uses("os.putenv", "os.unsetenv", *(f"os.environ.{m}" for m in _CHANGES))
    yield from (use for use in facts.find_uses("os.environ") if use.stored)


_CHANGES = ("update", "setdefault", "pop", "popitem", "clear", "__setitem__", "__delitem__", "__ior__")
