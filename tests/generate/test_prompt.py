"""Prompts: their text is pinned, their examples are kernels that we ship, and they give nothing away."""

from pathlib import Path

import pytest

from helpers.commands import run_pkb
from pkb.backends import load_backends
from pkb.errors import UsageError
from pkb.generate.argument_docs import describe_arguments
from pkb.generate.examples import choose_examples
from pkb.generate.prompt import KernelRequest, write_prompt
from pkb.generate.template import Template
from pkb.hardware.roofline import Hardware
from pkb.problems.problem import Problem
from pkb.problems.suite import list_problems, load_problem

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
PINNED = {
    "13_cuda_bf16": ("13", KernelRequest("cuda", "bf16", "h100_8")),
    "1_triton_fp32_scratch_few": ("1", KernelRequest("triton", "fp32", None, "scratch", examples=3)),
    "5_torch_fp16_large": ("5", KernelRequest("torch", "fp16", None, nproc=2, size="large", examples=0)),
    "22_parallelkittens_bf16": ("22", KernelRequest("parallelkittens", "bf16", None, size="tiny")),
    "L1_1_triton_fp32_few": ("L1/1", KernelRequest("triton", "fp32", "h100_8", examples=3)),
    "L2_9_torch_bf16": ("L2/9", KernelRequest("torch", "bf16", None)),
}


@pytest.mark.parametrize("name", PINNED)
def test_text_is_pinned(name: str) -> None:
    problem, request = PINNED[name]
    expected = (GOLDEN / f"{name}.txt").read_text()
    assert write_prompt(load_problem(problem), request) == expected, (
        "if this is meant: python tests/generate/test_prompt.py"
    )


def test_every_backend_has_a_template_for_every_form() -> None:
    for backend in load_backends():
        assert Template.load(backend).parts["how"] != Template.load(backend, form="models").parts["how"]


@pytest.mark.parametrize("backend", ["cuda", "triton"])
def test_examples_are_shipped_and_never_the_answer(backend: str) -> None:
    shipped = set((ROOT / "solutions" / backend).glob("*.py"))
    for problem in list_problems():
        shown = choose_examples(Template.load(backend), backend, problem, 3)
        assert len(shown) == 3
        assert {example.path for example in shown} <= shipped
        assert problem.stem not in {example.problem.stem for example in shown}


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("backend", ["cuda", "triton"])
def test_as_many_examples_as_asked_for(backend: str, count: int) -> None:
    text = write_prompt(load_problem(1), KernelRequest(backend, examples=count, size="tiny"))
    kernels = {path: path.read_text() for path in (ROOT / "solutions" / backend).glob("*.py")}
    assert sum(kernel in text for kernel in kernels.values()) == count
    assert (ROOT / "solutions" / backend / f"1_allreduce_{backend}.py").read_text() not in text


@pytest.mark.parametrize("problem", list_problems(), ids=lambda problem: problem.stem)
def test_prompts_hold_the_problem_and_no_hidden_size(problem: Problem) -> None:
    text = write_prompt(problem, KernelRequest("triton", size="tiny"))
    assert problem.show_source() in text
    assert all(f"- `{name}`: " in text for name in problem.arguments)
    for hidden in problem.list_hidden_sizes("bfloat16", 4)[::9]:
        assert f"M={hidden.m}, N={hidden.n}" not in text
        known = set(describe_arguments(problem, problem.sizes["tiny"], "bfloat16", 4))
        assert not any(line in text for line in set(describe_arguments(problem, hidden, "bfloat16", 4)) - known)


def lines(problem: str, size: str = "tiny", world: int = 2) -> dict[str, str]:
    found = load_problem(problem)
    words = describe_arguments(found, found.size(size), "bfloat16", world)
    return dict(zip(found.arguments, (line.partition(": ")[2] for line in words), strict=True))


def test_arguments_in_words() -> None:
    assert lines("13") == {
        "A_local": "bfloat16[32, 512]; each rank has values of its own",
        "B_local": "bfloat16[512, 24]; each rank has values of its own",
    }
    assert lines("45")["gamma"].endswith("; the same values on all ranks")
    assert lines("18")["variance_epsilon"] == "float 1e-05"
    assert lines("3")["src"] == "varies from call to call, for example int 0"
    assert lines("10")["indices"].startswith("rank 0: int64[")
    assert lines("73")["group"] == "not passed; its default is None"
    assert lines("22", world=4)["ep_group"].startswith("rank 0: the process group of ranks [0, 1]; rank 1: ")
    assert lines("22")["fsdp_group"] == "the process group of ranks [0, 1]"
    assert lines("49")["gate_proj"].startswith("Linear(in_features=")
    assert " with strides " in lines("26")["expert_mask"]
    assert lines("20")["local_y"].startswith("float8_e4m3fn[")


def test_shapes_that_need_no_values_are_known_at_any_size() -> None:
    assert lines("13", "large")["A_local"].startswith("bfloat16[16384, 512]")
    with pytest.raises(UsageError, match="choose a smaller --size: tiny, paper"):
        lines("80", "large")


def test_facts_that_a_profile_lacks_are_left_out() -> None:
    text = write_prompt(load_problem(1), KernelRequest("triton", size="tiny"))
    assert "- memory: 3,350 GB/s" in text
    assert (" multiprocessors\n" in text) == (getattr(Hardware.load("h100_8"), "sms", None) is not None)
    assert "# Hardware" not in write_prompt(load_problem(1), KernelRequest("triton", size="tiny", hardware=None))


def test_the_track_decides_what_is_barred() -> None:
    library = "- is communication by a library (instead: move the data yourself"
    assert library in write_prompt(load_problem(1), KernelRequest("triton", size="tiny", track="scratch"))
    assert library not in write_prompt(load_problem(1), KernelRequest("triton", size="tiny"))


def test_people_replace_what_they_like(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('sections = ["task", "answer"]\n[text]\ntask = "Write $problem in $backend for $$5."\n')
    text = write_prompt(load_problem(1), KernelRequest("triton", size="tiny", template=own))
    assert text.startswith("Write 1_allreduce in triton for $5.\n\n# Your answer\n")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ('[text]\ntask = "$nobody"\n', "the text text.task of the template names 'nobody'; it may name arguments"),
        ('[text]\ntask = "50 $ each"\n', "write \\$\\$ for a dollar sign"),
        ('sections = "task"\n', "sections in .* must be a list, not a str"),
        ("sections = [\n", "is not TOML"),
        ('sections = ["nothing"]\n', "the text text.nothing of the template"),
        ('examples = ["9"]\n', "no shipped kernel solutions/triton/9_layernorm_backward_triton.py to show"),
    ],
)
def test_mistakes_in_templates_are_explained(tmp_path: Path, content: str, says: str) -> None:
    own = tmp_path / "own.toml"
    own.write_text(content)
    with pytest.raises(UsageError, match=says):
        write_prompt(load_problem(1), KernelRequest("triton", size="tiny", template=own))


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for name, (problem, request) in PINNED.items():
        (GOLDEN / f"{name}.txt").write_text(write_prompt(load_problem(problem), request))


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["1", "--backend", "parallelkittens", "--examples", "few"], "1_allreduce"),
        (["L1/19", "--suite", "kernelbench", "--backend", "cuda", "--examples", "few"], "L1_19_ReLU"),
        (["1", "--backend", "triton", "--examples", "few"], ""),
        (["1", "--backend", "parallelkittens", "--examples", "0"], ""),
    ],
)
def test_examples_that_are_asked_for_and_not_there_are_named_once(words: list[str], named: str) -> None:
    told = run_pkb("prompt", *words).stderr.splitlines()
    says = f"no example is shown for {named}: there is no shipped kernel for --backend "
    assert [line.startswith(says) for line in told] == ([True] if named else [])
