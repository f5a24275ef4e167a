"""Words of strangers, made safe to print."""

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pkb.base.printable import clean_fields, clean_line, clean_lines, clean_sentence, clean_values, is_clean
from pkb.failure import Failure
from pkb.record import Evidence, KernelTime, Verdict

FORGED = "\r\x1b[2K1_allreduce  candidate  CORRECT  0.9 s\n"


def assert_safe(line: str) -> None:
    """Fail unless a text is one line of visible characters that every terminal and every file can take."""
    line.encode("utf-8")
    assert line.isprintable()
    assert len(line.splitlines()) <= 1
    for character in line:
        assert unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Mn", "Me")
        assert unicodedata.bidirectional(character) not in ("R", "AL", "AN", "RLE", "RLO", "LRE", "LRO", "RLI", "LRI")


@settings(max_examples=2000, derandomize=True, database=None, deadline=None)
@given(st.text(st.characters(exclude_categories=()), max_size=60), st.integers(0, 40))
@example("\ud800", 40)
@example(FORGED, 40)
@example("\u202eTCERROC\u2066\u200b\u2028\x85\xad\ufeff\U000e0041", 40)
def test_any_text_becomes_one_safe_line(text: str, length: int) -> None:
    line = clean_line(text, length)
    assert_safe(line)
    assert len(line) <= length
    assert clean_line(line, length) == line
    assert is_clean(line)
    lines = clean_lines(text)
    for one in lines.split("\n"):
        assert_safe(one)
    assert clean_lines(lines) == lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, [brackets] and µs × ≤", "plain text, [brackets] and µs × ≤"),
        ("two\nlines\tand\u00a0more\u2028", "two lines and more "),
        ("\x1b[31mred\x07", "?[31mred?"),
        ("\u202eabc\u05d0", "?abc?"),
        ("e\u0301\u3164", "e??"),
    ],
)
def test_what_can_be_shown_stays(text: str, shown: str) -> None:
    assert clean_line(text) == shown
    assert is_clean(text) == (text == shown)


def test_what_is_too_long_is_cut_and_says_so() -> None:
    assert clean_line("x" * 50, 10) == "x" * 7 + "..."
    assert clean_lines("a\n" * 50, 5) == "\na\na\n"


def test_keys_that_look_alike_are_kept_apart() -> None:
    assert clean_values({"\x01": 1, "\x02": ["\x03", None, 2.5]}) == {"?": 1, "? (1)": ["?", None, 2.5]}


def test_no_failure_and_no_part_of_a_record_can_hold_other_text() -> None:
    failure = Failure(Verdict.CRASH, FORGED, check="x", log=f"one{FORGED}two", processes=[FORGED, {"\ud800": FORGED}])
    assert_safe(failure.reason)
    assert_safe(str(failure))
    assert all(map(is_clean, failure.evidence.log.split("\n")))
    assert len(failure.evidence.log.split("\n")) == 3
    assert_safe(str(failure.evidence.details))
    assert_safe(KernelTime(FORGED, 1, 1.0, 1.0).name)
    assert_safe(Evidence(traceback=[FORGED]).traceback[0])


def test_cleaning_leaves_other_fields_alone() -> None:
    evidence = Evidence(check="x", rank=3, details={"n": 1.5})
    clean_fields(evidence, texts=("log",))
    assert evidence == Evidence(check="x", rank=3, details={"n": 1.5})


def test_blanks_cannot_push_words_to_the_next_row() -> None:
    forged = "no" + " \N{NO-BREAK SPACE}\t" * 70 + "CORRECT  1_allreduce  1.4 s"
    assert clean_sentence(forged) == "no CORRECT 1_allreduce 1.4 s"
    assert clean_line("    indented") == "    indented"
