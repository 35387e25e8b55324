"""Runs against each other: pairs, tests and intervals, and everything that stands between them and fairness."""

from __future__ import annotations

import html
import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.control_runs import ANSWERS, constant_run, tampered, write_control_pack

from securebench.errors import ConfigError
from securebench.reports.compare.annotations import annotate
from securebench.reports.compare.caveats import match_caveats, run_caveats
from securebench.reports.compare.comparison import Comparison, compare_runs, match_runs
from securebench.reports.compare.markdown import markdown
from securebench.reports.compare.page import comparison_page
from securebench.reports.compare.pairing import Pair, TaskScore, pair_up
from securebench.reports.compare.words import difference_text, explained, p_text, points, verdict
from securebench.reports.runs import Run, load_run
from securebench.reports.statistics import mcnemar, paired_difference, permutation_test
from securebench.testing.synthetic_run import SyntheticRun, write_run


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def pack(place: Path) -> Path:
    return write_control_pack(place / "pack")


@pytest.fixture(scope="module")
def first(place: Path, pack: Path) -> Run:
    return load_run(constant_run(place, "first", "42", pack=pack))


@pytest.fixture(scope="module")
def second(place: Path, pack: Path) -> Run:
    return load_run(constant_run(place, "second", "43", pack=pack))


def caveats(first: Run, second: Run) -> str:
    return "\n".join(match_caveats(first, second, pair_up(first, second)))


def test_difference_is_over_tasks_that_both_were_judged_on(first: Run, second: Run) -> None:
    match = match_runs(first, second)
    assert (match.difference.tasks, match.difference.wins, match.difference.ties, match.difference.losses) == (
        14,
        2,
        7,
        5,
    )
    assert match.difference.mean == pytest.approx(-3 / 14)
    differences = [0.0] * 4 + [-1.0] * 5 + [1.0] * 2 + [0.0] * 3
    assert match.difference == paired_difference(differences)
    assert match.permutation == permutation_test(differences)
    assert match.mcnemar == match.permutation.p_value == pytest.approx(mcnemar(2, 5))
    assert match.adjusted == match.permutation.p_value
    assert not match.significant
    assert verdict(match) == "no difference shown"


def test_swapping_the_runs_turns_everything_round(first: Run, second: Run) -> None:
    one, other = match_runs(first, second), match_runs(second, first)
    assert one.difference.mean == -other.difference.mean
    assert one.difference.interval.low == pytest.approx(-other.difference.interval.high)
    assert (one.wins, one.losses) == (other.losses, other.wins)
    assert one.permutation == other.permutation


def test_flips_are_the_tasks_that_one_passed_and_the_other_did_not(first: Run, second: Run) -> None:
    flips = match_runs(first, second).flips
    assert [pair.task_id for pair in flips] == [f"one-{n}" for n in range(5)] + ["other-0", "other-1"]
    assert [pair.difference for pair in flips] == [-1.0] * 5 + [1.0] * 2


def test_task_flips_where_the_majority_of_its_attempts_does() -> None:
    def flipped(before: int, after: int) -> bool:
        return Pair("t", "f", TaskScore(4, before, float(before)), TaskScore(4, after, float(after))).flipped

    assert flipped(0, 3)
    assert flipped(4, 2)
    assert not flipped(2, 1)
    assert not flipped(3, 4)


def test_sums_of_the_same_parts_in_another_order_are_no_difference() -> None:
    one, other = sum([0.1, 0.2, 0.3]), sum([0.3, 0.2, 0.1])
    assert one != other
    assert Pair("t", "f", TaskScore(3, 0, one), TaskScore(3, 0, other)).difference == 0


def test_attempts_of_a_task_count_together(place: Path, pack: Path, first: Run) -> None:
    three = load_run(constant_run(place, "three", "43", pack=pack, attempts=3))
    match = match_runs(first, three)
    assert match.difference.tasks == 14
    assert match.difference.mean == pytest.approx(-3 / 14)
    assert "different numbers of attempts at each task: 1 and 3" in match.caveats


def test_better_run_is_found_with_enough_tasks(tmp_path: Path) -> None:
    answers = {f"t{n}": (42,) if n % 3 else (42, 43) for n in range(60)}
    pack = write_control_pack(tmp_path / "pack", answers)
    good, bad = (load_run(constant_run(tmp_path, name, name, pack=pack)) for name in ("42", "43"))
    match = match_runs(bad, good)
    assert match.significant
    assert match.difference.interval.low > 0.4
    assert verdict(match) == "better"
    assert verdict(match_runs(good, bad)) == "worse"
    assert match.detectable < match.difference.mean


def test_more_runs_are_corrected_for_and_compared_with_the_first(
    place: Path, pack: Path, first: Run, second: Run
) -> None:
    third = load_run(constant_run(place, "third", "7", pack=pack))
    comparison = compare_runs([first, second, third])
    assert [(match.first.label, match.second.label) for match in comparison.matches] == [
        ("first", "second"), ("first", "third"),
    ]  # fmt: skip
    assert comparison.corrected
    raw = [match.permutation.p_value for match in comparison.matches]
    assert min(match.adjusted for match in comparison.matches) == pytest.approx(min(1.0, 2 * min(raw)))
    every = compare_runs([first, second, third], all_pairs=True)
    assert len(every.matches) == 3
    assert "after Holm" in explained(every.matches[0], True)
    assert "of this pair alone, not corrected" in explained(every.matches[0], True)
    assert "of this pair alone" in markdown(comparison)
    assert "of this pair alone and not corrected" in comparison_page(comparison)
    assert "of this pair alone" not in markdown(compare_runs([first, second]))


def test_one_run_is_no_comparison(first: Run) -> None:
    with pytest.raises(ConfigError, match="two runs or more"):
        compare_runs([first])


def test_rows_of_another_state_of_the_pack_are_left_out_and_said(place: Path, first: Run) -> None:
    changed = dict(ANSWERS) | {"none-0": (8,)}
    pack = write_control_pack(place / "changed-pack", changed)
    other = load_run(constant_run(place, "changed", "43", pack=pack))
    pairing = pair_up(first, other)
    assert (len(pairing.pairs), pairing.changed) == (0, 14)
    said = caveats(first, other)
    assert "different states of the pack: sha256:" in said
    assert "14 tasks of the same ids are of another pack, or have other files, and are left out" in said
    assert len(pair_up(first, other, by_id=True).pairs) == 14


def test_runs_without_a_task_in_common_are_told_what_to_do(place: Path, first: Run) -> None:
    pack = write_control_pack(place / "other-pack", extra=" Think.")
    other = load_run(constant_run(place, "elsewhere", "43", pack=pack))
    with pytest.raises(ConfigError, match="14 tasks have the same ids, but are of different packs; --by-id"):
        compare_runs([first, other])
    assert compare_runs([first, other], by_id=True).matches[0].difference.tasks == 14
    none = load_run(constant_run(place, "none", "43", pack=write_control_pack(place / "none-pack", {"x": (1,)})))
    with pytest.raises(ConfigError, match="runs of the same pack"):
        compare_runs([first, none])


def test_runs_of_the_same_terms_have_no_caveats(first: Run, second: Run) -> None:
    comparison = compare_runs([first, second])
    assert comparison.comparable
    assert run_caveats(first) == ()
    assert caveats(first, second) == ""


def test_different_terms_are_said(place: Path, pack: Path, first: Run) -> None:
    limited = load_run(constant_run(place, "limited", "43", pack=pack, sandbox={"memory": "256m"}))
    assert "different limits: sandbox.memory none and" in caveats(first, limited)
    part = load_run(constant_run(place, "part", "43", pack=pack, limit=9))
    assert any("not of the whole pack: 9 of 14 tasks (limit 9)" in line for line in run_caveats(part))
    assert "5 tasks were planned in one of them only (5 and 0)" in caveats(first, part)
    later = write_control_pack(place / "later-pack", version=2)
    newer = load_run(constant_run(place, "newer", "43", pack=later))
    assert "different benchmarks: control 1 and control 2" in caveats(first, newer)
    assert "they are the same run" in caveats(first, first)


def test_different_plans_are_said(first: Run, second: Run) -> None:
    plan = second.plan.model_copy(
        update={"securebench": "9.9 sha256:ffffffffffffffff", "host": {"backend": "docker"}, "images": {"a": "b"}}
    )
    said = caveats(first, replace(second, plan=plan))
    assert "different SecureBench: 0.1.0 sha256:" in said
    assert "9.9 sha256:ffffffffffff" in said
    assert "different sandboxes: none and docker" in said
    assert "different images: a none and b" in said


def test_different_assurance_is_said(first: Run, second: Run) -> None:
    rows = tuple(replace(row, assurance="judged") for row in second.rows)
    assert "verdicts of different assurance: pure and judged" in caveats(first, replace(second, rows=rows))


def test_state_of_a_run_is_said(place: Path, pack: Path) -> None:
    unsealed = load_run(constant_run(place, "unsealed", "43", pack=pack, records={"sign": False}))
    assert any("is not sealed" in line for line in run_caveats(unsealed))
    broken = load_run(tampered(constant_run(place, "broken", "43", pack=pack), '"score":0.0', '"score":1.0'))
    assert any("is not as it was written" in line for line in run_caveats(broken))
    assert any("without the audit" in line for line in run_caveats(replace(broken, plan=broken.plan.model_copy(update={"unsafe": True}))))  # fmt: skip


def test_faults_and_what_nobody_judged_are_said_and_left_out(tmp_path: Path) -> None:
    whole = load_run(write_run(tmp_path / "a", SyntheticRun(run_id="a", tasks=40, attempts=1, transcripts=0)))
    faulty = load_run(
        write_run(tmp_path / "b", SyntheticRun(run_id="b", tasks=40, attempts=1, transcripts=0, faults=0.3))
    )
    comparison = compare_runs([whole, faulty])
    errors = faulty.summary.errors
    assert errors > 3
    assert comparison.matches[0].pairing.unjudged == errors
    assert comparison.matches[0].difference.tasks == 40 - errors
    assert any(f"has {errors} attempts on which the host failed" in line for line in comparison.sides[1].caveats)
    assert not comparison.comparable


@pytest.fixture(scope="module")
def comparison(first: Run, second: Run) -> Comparison:
    return compare_runs([first, second])


def test_json_holds_everything(comparison: Comparison) -> None:
    value = json.loads(json.dumps(comparison.as_json(), allow_nan=False))
    assert value["comparable"] is True
    assert [run["score"] for run in value["runs"]] == pytest.approx([9 / 14, 6 / 14])
    assert value["runs"][0]["interval"]["low"] < 9 / 14
    [match] = value["matches"]
    assert (match["first"], match["second"], match["tasks"]) == ("first", "second", 14)
    assert match["mcnemar"] == {"wins": 2, "losses": 5, "p_value": pytest.approx(0.453125)}
    assert match["permutation"]["exact"] is True
    assert len(match["flips"]) == len(match["differing"]) == 7
    assert match["minimum_detectable"]["power"] == 0.8


def test_markdown_says_it_in_a_table_and_a_sentence(comparison: Comparison) -> None:
    text = markdown(comparison)
    assert "| <code>first</code> | 64.3 % |" in text
    assert "<code>second</code> against <code>first</code>: no difference shown." in text
    assert "21.4 points less, which chance can explain (95 % interval" in text
    assert "<summary>7 tasks flipped</summary>" in text
    assert "WARNING" not in text


def test_annotations_are_errors_where_the_run_is_worse(comparison: Comparison) -> None:
    assert [line.partition(" ")[0] for line in annotate(comparison)] == ["::notice"]
    [match] = comparison.matches
    worse = replace(comparison, matches=(replace(match, adjusted=0.001),))
    assert [line.partition(" ")[0] for line in annotate(worse)] == ["::error"]


def test_page_is_one_file_with_a_policy(comparison: Comparison) -> None:
    page = comparison_page(comparison)
    assert "default-src 'none'; style-src 'sha256-" in html.unescape(page)
    assert "script-src" not in page
    assert "<script" not in page
    assert page.count("<svg") >= 5
    assert "21.4 points less, which chance can explain" in page
    assert "src=" not in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.parametrize(
    "share, text", [(0.0264, "+2.6"), (-0.004, "−0.4"), (0.0, "0.0"), (-0.0001, "0.0"), (1.0, "+100.0")]
)
def test_points(share: float, text: str) -> None:
    assert points(share) == text


@pytest.mark.parametrize(
    "p_value, text",
    [(1.0, "1.00"), (0.454, "0.45"), (0.0499, "0.05"), (0.0312, "0.031"), (0.00012, "0.00012"), (0.0, "< 0.0001")],
)
def test_p_values(p_value: float, text: str) -> None:
    assert p_text(p_value) == text


def test_difference_in_words() -> None:
    found = paired_difference([1.0, 0.0, -1.0, 1.0] * 30)
    assert found is not None
    assert difference_text(found).startswith("+25.0 [+10")
