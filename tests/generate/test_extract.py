"""Candidates are found in whatever models send."""

import pytest

from pkb.generate.extract import extract

KERNEL = 'import torch\n\n\ndef solution(x):\n    """Not "```" a fence."""\n    return x.clone()\n'
OTHER = "def solution(x):\n    return x\n"
HELPER = "import torch\n\nSCALE = 2\n\n\ndef helper(x):\n    return SCALE * x\n"
USER = "def solution(x):\n    return helper(x)\n"


def fenced(source: str, language: str = "python") -> str:
    return f"```{language}\n{source}```\n"


@pytest.mark.parametrize(
    ("answer", "source", "says"),
    [
        (fenced(KERNEL), KERNEL, "took block 1 of 1"),
        (f"Sure!\n\n{fenced(KERNEL)}\nHope it helps.", KERNEL, "took block 1 of 1"),
        (fenced(KERNEL, ""), KERNEL, "took block 1 of 1"),
        (fenced(KERNEL, "Python title=kernel.py"), KERNEL, "took block 1 of 1"),
        (f"~~~py\n{KERNEL}~~~\n", KERNEL, "took block 1 of 1"),
        (f"````python\n{KERNEL}````\n", KERNEL, "took block 1 of 1"),
        (fenced(KERNEL).replace("\n", "\r\n"), KERNEL.replace("\n", "\r\n"), "took block 1 of 1"),
        (fenced(OTHER) + fenced(KERNEL), KERNEL, "2 blocks define `solution`; took block 2 of 2"),
        (fenced(KERNEL) + fenced("def solution(x:\n"), KERNEL, "took block 1 of 2, the last that is valid Python"),
        (fenced("pip install triton\n", "bash") + fenced(KERNEL), KERNEL, "took block 2 of 2"),
        (fenced("__global__ void f() {}\n", "cuda") + fenced(KERNEL), KERNEL, "took block 2 of 2"),
        (fenced(KERNEL) + "Use it so:\n" + fenced("print(solution(x))\n"), KERNEL, "took block 1 of 2"),
        (fenced(HELPER) + fenced(USER), f"{HELPER}\n\n{USER}", "joined with 1 earlier blocks"),
        (fenced("N = 1\n") + fenced(HELPER) + fenced(USER), f"{HELPER}\n\n{USER}", "joined with 1 earlier blocks"),
        (f"<think>{fenced(OTHER)}Hm.</think>\n{fenced(KERNEL)}", KERNEL, "left out what was marked as thinking"),
        (f"```python\n{KERNEL}", KERNEL, "its block was never closed"),
        ("```python\ndef solution(x):\n    y = (x +", "def solution(x):\n    y = (x +", "it is not valid Python"),
        (KERNEL, KERNEL, "no code block; took lines 1 to 6"),
        (f"Here is the kernel:\n\n{KERNEL}\nIt copies.\n", KERNEL + "\n", "no code block; took lines 3 to 9"),
        (f"# The kernel\nfrom me to you\n\n{KERNEL}", KERNEL, "no code block; took lines 4 to 9"),
        (
            "import torch\ndef solution(x):\n  return (x",
            "import torch\ndef solution(x):\n  return (x",
            "not valid Python",
        ),
        ("solution = lambda x: x\n", None, "there is no code"),
        (fenced("solution = torch.compile(f)\n"), "solution = torch.compile(f)\n", "took block 1 of 1"),
        (fenced("__global__ void f() {}\n", "cuda"), None, "none of the 1 code blocks defines `solution`"),
        ("I would multiply first.", None, "there is no code in the answer"),
        ("", None, "the answer is empty"),
        ("<think>Hm.</think>\n", None, "the answer is empty"),
    ],
)
def test_finds_the_candidate_and_says_how(answer: str, source: str | None, says: str) -> None:
    found = extract(answer)
    assert found.source == source
    assert says in "; ".join(found.notes)


MODEL = "import torch.nn as nn\n\n\nclass ModelNew(nn.Module):\n    def forward(self, x):\n        return x + 1\n"
REFERENCE = "import torch.nn as nn\n\n\nclass Model(nn.Module):\n    pass\n"
HEIR = "class ModelNew(Model):\n    pass\n"


@pytest.mark.parametrize(
    ("answer", "source", "says"),
    [
        (fenced(MODEL), MODEL, "took block 1 of 1"),
        (fenced(REFERENCE) + fenced(MODEL), MODEL, "took block 2 of 2"),
        (fenced(MODEL) + fenced(REFERENCE), MODEL, "took block 1 of 2"),
        (fenced(REFERENCE) + fenced(HEIR), f"{REFERENCE}\n\n{HEIR}", "joined with 1 earlier blocks"),
        (fenced("ModelNew = build()\n") + fenced(MODEL), MODEL, "2 blocks define `ModelNew`; took block 2 of 2"),
        (f"So:\n\n{MODEL}", MODEL, "no code block; took lines 3 to 8"),
        (fenced(KERNEL) + fenced(REFERENCE), None, "none of the 2 code blocks defines `ModelNew`"),
    ],
)
def test_finds_the_class_of_a_model(answer: str, source: str | None, says: str) -> None:
    found = extract(answer, entry="ModelNew")
    assert found.source == source
    assert says in "; ".join(found.notes)


def test_says_how_the_answer_ended() -> None:
    assert extract(fenced(KERNEL), "length").notes == [
        "the answer was cut off at the limit of tokens",
        "took block 1 of 1",
    ]
    assert extract("No.", "refusal").notes[0] == "the model refused"
    assert extract("", "content_filter").notes[0] == "the provider's filter stopped the answer"
