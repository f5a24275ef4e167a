"""The speed of light, and how near records come to it."""

import pytest

from helpers.made_records import row
from pkb.analyse.speed_of_light import compute_sol_score, compute_speed_of_light, score_rows
from pkb.errors import UsageError
from pkb.hardware.calibrate import calibrate, format_profile, save
from pkb.hardware.roofline import Hardware
from pkb.problems.case import DTYPES
from pkb.problems.size import Size
from pkb.problems.suite import find_suite, load_problem


def test_the_score_by_hand() -> None:
    assert compute_sol_score(100.0, 10.0, 10.0) == 1.0
    assert compute_sol_score(100.0, 100.0, 10.0) == 0.5
    assert compute_sol_score(100.0, 55.0, 10.0) == pytest.approx(2 / 3)
    assert compute_sol_score(100.0, 190.0, 10.0) == pytest.approx(1 / 3)
    assert compute_sol_score(100.0, 9.0, 10.0) == 1.0
    assert compute_sol_score(10.0, 20.0, 10.0) is None


def test_an_all_reduce_is_bound_by_its_links() -> None:
    found = compute_speed_of_light(load_problem("allreduce"), Hardware.load("h100_8"), Size(1024, 1024), "bfloat16", 8)
    bytes_ = 1024 * 1024 * 2
    assert found.bound == "link"
    assert found.us == found.link_us == pytest.approx(1e6 * 2 * bytes_ * 7 / 8 / 450e9)
    assert found.memory_us == pytest.approx(1e6 * 2 * bytes_ / 3.35e12)
    assert (found.m, found.n, found.world, found.dtype) == (1024, 1024, 8, "bfloat16")


def test_a_large_product_is_bound_by_compute_and_ranks_of_one_gpu_share_it() -> None:
    problem, hardware = load_problem("allgather_gemm"), Hardware.load("h100_8")
    apart = compute_speed_of_light(problem, hardware, "large", "float32", 4)
    together = compute_speed_of_light(problem, hardware, "large", "float32", 4, shared=True)
    assert apart.bound == together.bound == "compute"
    assert together.us == pytest.approx(4 * apart.us)
    assert together.link_us == 0


@pytest.mark.parametrize("name", ["h100_8", "h200_8", "b200_72", "a100_8", "l40s"])
def test_every_profile_has_all_figures(name: str) -> None:
    found = Hardware.load(name)
    assert found.flops_per_s.keys() == DTYPES.keys()
    assert min(found.gpus, found.sms, found.shared_memory_kib, found.l2_mib) > 0
    # Terabytes and teraflops, not gigabytes: a slip of the point would show.
    assert 0.5e12 < found.hbm_bytes_per_s < 10e12
    assert 30e9 < found.link_bytes_per_s < 1e12
    assert 10e12 < found.flops_per_s["float32"] < found.flops_per_s["bfloat16"] < 3e15


@pytest.mark.parametrize(
    ("driver_says", "gpus"),
    [("NVIDIA A100-SXM4-80GB", 8), ("NVIDIA B200", 72), ("NVIDIA L40S", 8), ("NVIDIA H200", 8), ("NVIDIA GB200", None)],
)
def test_gpus_are_known_by_the_driver_s_name(driver_says: str, gpus: int | None) -> None:
    found = Hardware.find_by_gpu(driver_says)
    assert (found and found.gpus) == gpus


def test_more_ranks_than_gpus_are_refused() -> None:
    with pytest.raises(UsageError, match="lower --nproc"):
        compute_speed_of_light(load_problem("allreduce"), Hardware.load("h100_8"), "paper", "bfloat16", 16)


def test_this_machine_is_measured_and_read_back(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PKB_CACHE", str(tmp_path))
    with pytest.raises(UsageError, match="pkb roofline --calibrate"):
        Hardware.load("this_machine")
    found = calibrate()
    assert save(found).read_text() == format_profile(found)
    assert Hardware.load("this_machine") == found
    rates = [found.hbm_bytes_per_s, found.link_bytes_per_s, *found.flops_per_s.values()]
    # Any computer does a hundred million of each in a second, and none a quintillion.
    assert all(1e8 < rate < 1e18 for rate in rates)
    assert "Measured by" in format_profile(found)


def test_records_are_scored_by_their_own_light_or_by_what_is_named() -> None:
    known = row("1_allreduce", speed=2.0, reference_us=100.0, candidate_us=50.0, roofline_us=10.0)
    setup = {"m": 1024, "n": 1024, "dtype": "bfloat16", "world": 8, "platform": "gpus"}
    unknown = row("2_allgather", speed=2.0, reference_us=100.0, candidate_us=50.0, **setup)
    others = [row("1_allreduce"), row("1_allreduce", "WRONG", speed=9.0)]
    first, second = score_rows([unknown, known, *others], find_suite("parallel"))
    assert (first.light_us, first.reference_percent, first.candidate_percent) == (10.0, 10.0, 20.0)
    assert first.score == pytest.approx(compute_sol_score(100.0, 50.0, 10.0))
    assert (second.light_us, second.score) == (None, None)
    hardware = Hardware.load("h100_8")
    _, named = score_rows([unknown, known], find_suite("parallel"), hardware)
    assert (
        named.light_us
        == compute_speed_of_light(load_problem("allgather"), hardware, Size(1024, 1024), "bfloat16", 8).us
    )
    shared = score_rows(
        [row("2_allgather", speed=2.0, **(setup | {"platform": "shared-gpu"}))], find_suite("parallel"), hardware
    )
    assert (
        shared[0].light_us
        == compute_speed_of_light(load_problem("allgather"), hardware, Size(1024, 1024), "bfloat16", 8, shared=True).us
    )


def test_a_model_s_record_is_scored_at_its_size() -> None:
    setup = {"m": 0, "n": 0, "size": "paper", "dtype": "float32", "world": 1, "platform": "gpus"}
    timed = row("L1_19_ReLU", speed=2.0, reference_us=10_000.0, candidate_us=5_000.0, **setup)
    (found,) = score_rows([timed], find_suite("kernelbench"), Hardware.load("h200_8"))
    moved = 2 * 4 * 4096 * 393216
    assert found.light_us == pytest.approx(1e6 * moved / 4.8e12)
    known = compute_speed_of_light(load_problem("L1/19"), Hardware.load("h200_8"), "paper", "float32", 1)
    assert (known.size, known.bound, known.us) == ("paper", "memory", found.light_us)
