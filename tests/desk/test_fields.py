"""Forms are the options of the commands: none is lost, none is invented, and no value becomes an option."""

from __future__ import annotations

import threading

import pytest

from sabun.cli._frame import run, whole
from sabun.desk.fields import as_typed, fields_of, misfit, on_page, private_table
from sabun.desk.jobs import jobs
from sabun.desk.picture import in_short
from sabun.telling.terminal.output import heard, print_line

JOBS = {" ".join(job.words): job for own in jobs(whole).values() for job in own}
BY_THE_DESK = {"json", "overwrite", "encoding", "separator", "decimal", "thousands", "sheet", "owner_only"}
FILES = {"regions", "study", "signing_key", "checkpoint", "synthetic", "plot"}


@pytest.mark.parametrize("job", JOBS)
def test_every_option_is_a_field_or_is_known_to_be_none(job: str) -> None:
    options = {option.name for option in JOBS[job].command.params}
    fields = {one.name for one in JOBS[job].fields}
    assert fields <= options
    assert options - fields <= BY_THE_DESK | FILES
    assert private_table(JOBS[job].fields).name in ("table", "private")
    assert all(one.choices for one in JOBS[job].fields if one.kind == "choice")
    usual = [one for one in JOBS[job].fields if one.kind == "choice" and one.usual]
    assert all(one.usual in one.choices for one in usual), "what is usual can be chosen"


def test_a_value_is_never_taken_for_an_option() -> None:
    fields = JOBS["summaries mean"].fields
    typed = as_typed(fields, {"column": ["--yes"], "where": ["-a=1:2\n\n b=3: "], "confidence": ["0.95"]}, {"table": "-x.csv"})
    assert typed == ["./-x.csv", "--column=--yes", "--where=-a=1:2", "--where", "b=3:"]


def test_a_complaint_finds_its_field() -> None:
    fields = fields_of(JOBS["summaries mean"].command)
    assert misfit(fields, "epsilon must be finite and > 0; got -1.", None) == "epsilon"
    assert misfit(fields, "--rule must come with --id.", None) == "rule"
    assert misfit(fields, "'clinic' has epsilon 1 left.", None) == ""
    assert on_page("Missing option. See: sabun summaries mean --help") == "Missing option."


def test_the_digest_in_a_purpose_is_for_machines() -> None:
    assert in_short(f"summaries.mean on age (parameters {'0' * 64})") == "summaries.mean on age"
    assert in_short("by hand (parameters unknown)") == "by hand (parameters unknown)"


def test_a_command_is_heard_by_who_runs_it_and_by_nobody_else(capsys: pytest.CaptureFixture[str]) -> None:
    with heard() as hears:
        other = threading.Thread(target=print_line, args=("from elsewhere",))
        other.start()
        other.join()
        assert run(["summaries", "mean"]) == 2
    assert "Missing" in hears.complaint
    assert hears.remarks == []
    assert capsys.readouterr() == ("from elsewhere\n", "")
