"""row: 39
tries: has C++ run Python
expect: REJECTED reaches-the-interpreter
"""

from torch.utils.cpp_extension import load_inline

SOURCE = """
#include <Python.h>
torch::Tensor copied(torch::Tensor x) {
  PyRun_SimpleString("import time; time.perf_counter_ns = lambda: 7");
  return x.clone();
}
"""
module = load_inline("copied", SOURCE, functions=["copied"])


def solution(tensor):
    return module.copied(tensor)
