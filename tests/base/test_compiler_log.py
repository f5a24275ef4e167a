"""What is kept of the output of compilers."""

import pytest

from pkb.base.compiler_log import MOST_LINES, trim_log

ERROR = """kernel.cu({line}): error: identifier "y{line}" is undefined
      x[0] = y{line};
             ^

"""
WARNING = """kernel.cu(9): warning #177-D: variable "unused" was declared but never referenced
      int unused;
          ^

Remark: The warnings can be suppressed with "-diag-suppress <warning-number>"

"""
GCC = """[1/2] c++ -MMD -MF main.o.d -DTORCH_EXTENSION_NAME=bad -fPIC -std=c++20 -c main.cpp -o main.o
FAILED: main.o
c++ -MMD -MF main.o.d -DTORCH_EXTENSION_NAME=bad -fPIC -std=c++20 -c main.cpp -o main.o
In file included from /usr/include/c++/12/vector:64,
                 from main.cpp:1:
main.cpp: In function 'void f()':
main.cpp:4:9: error: 'twice' was not declared in this scope
    4 |     x = twice(2);
      |         ^~~~~
main.cpp:9:1: warning: no return statement in function returning non-void [-Wreturn-type]
ninja: build stopped: subcommand failed.
"""
NVCC = """[2/3] /usr/local/cuda/bin/nvcc -gencode=arch=compute_90,code=sm_90 -c cuda.cu -o cuda.cuda.o
FAILED: cuda.cuda.o
cuda.cu(4): error: identifier "y" is undefined
            void k(float *x) { y[i] *= 2.f; }
                               ^

1 error detected in the compilation of "cuda.cu".
ninja: build stopped: subcommand failed.
"""
PTXAS = """FAILED: cuda.cuda.o
ptxas /tmp/tmpxft_00000f91_00000000-6_cuda.ptx, line 21; error   : Instruction 'wgmma.fence' not supported on 'sm_90'
ptxas fatal   : Ptx assembly aborted due to errors
ninja: build stopped: subcommand failed.
"""
LD = """[2/2] c++ main.o -shared -lnope -o bad2.so
FAILED: bad2.so
c++ main.o -shared -lnope -o bad2.so
/usr/bin/ld: cannot find -lnope: No such file or directory
collect2: error: ld returned 1 exit status
ninja: build stopped: subcommand failed.
"""
EXTENSION = """[1/3] /usr/local/cuda/bin/nvcc --generate-dependencies-with-compile -c cuda.cu -o cuda.cuda.o
FAILED: cuda.cuda.o
ptxas /tmp/cuda.ptx, line 23; error   : Unknown symbol 'a'
ptxas fatal   : Ptx assembly aborted due to errors
[2/3] c++ -MMD -c main.cpp -o main.o
main.cpp: In function 'int f()':
main.cpp:5:3: error: 'y' was not declared in this scope
    5 |   y = 1;
      |   ^
main.cpp:2:5: note: declared here
ninja: build stopped: subcommand failed.
"""
GCC_TEMPLATE = """main.cpp: In instantiation of 'T twice(T) [with T = S]':
main.cpp:9:12:   required from here
main.cpp:3:14: error: no match for 'operator+' (operand types are 'S' and 'S')
    3 |     return a + a;
      |            ~~^~~
"""
CLANG_TEMPLATE = """main.cpp:3:14: error: invalid operands to binary expression ('S' and 'S')
    3 |     return a + a;
      |            ~ ^ ~
main.cpp:9:12: note: in instantiation of function template specialization 'twice<S>' requested here
    9 |     return twice(s);
      |            ^
1 error generated.
"""
NVCC_TEMPLATE = """pkb.cuh(2): error: no operator "+" matches these operands
            operand types are: S + S
  return a + a;
           ^
pkb.cuh(2): note #3328-D: built-in operator+(<pointer>, <ptrdiff_t>) does not match
  return a + a;
           ^
          detected during instantiation of "T g(T) [with T=S]" at line 4

"""


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (GCC, GCC.splitlines()[6:9]),
        (NVCC, NVCC.splitlines()[2:5]),
        (PTXAS, [PTXAS.splitlines()[1]]),
        (LD, [LD.splitlines()[3]]),
        (EXTENSION, [EXTENSION.splitlines()[2], *EXTENSION.splitlines()[6:9]]),
        ("collect2: error: ld returned 1 exit status\n", ["collect2: error: ld returned 1 exit status"]),
        ("[1/2] cc\nFAILED: x\nit went wrong\nninja: build stopped", ["it went wrong"]),
        ("", ["the compiler said nothing"]),
        ("\n".join(map(str, range(50))), [*map(str, range(30, 50))]),
    ],
    ids=["gcc", "nvcc", "ptxas", "ld", "extension", "consequence alone", "unknown", "nothing", "no errors"],
)
def test_errors_come_without_noise(output: str, expected: list[str]) -> None:
    assert trim_log(output) == expected
    assert len(trim_log(output * 50)) <= MOST_LINES


def test_errors_are_kept_and_warnings_dropped() -> None:
    log = WARNING + ERROR.format(line=3) + WARNING + '1 error detected in the compilation of "kernel.cu".\n'
    assert trim_log(log) == ERROR.format(line=3).splitlines()[:3]


def test_many_errors_are_counted_and_equal_ones_appear_once() -> None:
    lines = trim_log("".join(ERROR.format(line=line) for line in range(40)) + ERROR.format(line=0))
    assert len(lines) <= MOST_LINES
    assert lines[0].startswith("kernel.cu(0): error")
    assert lines[-1] == f"and {40 - (len(lines) - 1) // 3} more errors"


@pytest.mark.parametrize(
    ("log", "place"),
    [
        (GCC_TEMPLATE, "main.cpp:9:12:   required from here"),
        (CLANG_TEMPLATE, CLANG_TEMPLATE.splitlines()[3]),
        (NVCC_TEMPLATE, NVCC_TEMPLATE.splitlines()[7]),
    ],
    ids=["gcc", "clang", "nvcc"],
)
def test_the_place_that_instantiates_a_template_is_kept(log: str, place: str) -> None:
    lines = trim_log(log)
    assert "error" in lines[0]
    assert place in lines
    assert not [line for line in lines if "note" in line and line != place]
    assert len(lines) <= 5


def test_long_lines_are_cut() -> None:
    assert [len(line) for line in trim_log("x.cpp:1:1: error: " + "x" * 1000)] == [200]
