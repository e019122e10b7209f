import re
import time

from auxhash.compute import bars, context, underway
from auxhash.learn.training import progress


def test_without_a_terminal_progress_is_lines_on_stderr(capsys, monkeypatch):
    """One at every interval, though nothing is reported meanwhile, and one at the end."""
    monkeypatch.setattr(bars, "LINE_SECONDS", 0.05)
    with bars.new_bar() as shown:
        task = shown.add_task("L(h) 12", total=8, completed=2, stage="MAC")
        time.sleep(0.3)
        shown.update(task, completed=8)
    out, lines = capsys.readouterr()
    assert not out
    first, second, *_, last = lines.splitlines()
    assert first == second == "MAC 2 of 8 L(h) 12; 0:00:00 taken, about 0:00:00 left in all"
    assert last == "MAC 8 of 8 L(h) 12; 0:00:00 taken"


def test_the_loop_under_way_counts_by_what_it_adds(capsys, monkeypatch):
    """Half of a loop of 100 steps of 400 is 50 of them, not half a step."""
    shares = []
    monkeypatch.setattr(bars, "LINE_SECONDS", 0.05)
    monkeypatch.setattr(bars, "_left", lambda taken, share: shares.append(share))
    with underway.listening() as listener, bars.new_bar(listener=listener) as shown:
        shown.add_task("", total=400, completed=100, stage="learning", stride=100)
        for _ in underway.each("gradient steps", range(2)):
            time.sleep(0.2)
    assert set(shares) == {100 / 400, 150 / 400}


def test_short_work_writes_no_line(capsys):
    with bars.new_bar() as shown:
        shown.add_task("L(h) 12", total=8, stage="MAC")
    assert capsys.readouterr() == ("", "")


def test_the_parts_made_before_the_first_step_are_lines_too(capsys, monkeypatch):
    monkeypatch.setattr(bars, "LINE_SECONDS", 0.05)
    monkeypatch.setattr(context, "MIN_SECONDS", 0.0)
    with progress.getting_ready(True) as now:
        now("nearest neighbours")
        for _ in underway.each("distances", range(2)):
            time.sleep(0.2)
    assert (
        "nearest neighbours, distances 50%, 0:00:00 left; 0:00:00 taken" in capsys.readouterr().err
    )


def test_the_time_left_is_that_of_all_steps():
    assert bars._left(60.0, 0.25) == 180
    assert bars._left(60.0, 0.0) is bars._left(60.0, 1.0) is None
    assert bars._times(60.0, 180.0) == "0:01:00 taken, about 0:03:00 left in all"
    assert bars._times(60.0, None) == "0:01:00 taken"


def test_the_steps_to_come_count_before_the_first():
    """By what is foreseen, and then by how much longer than foreseen it takes."""
    expected = context.ExpectedTime(before=100.0, steps=1000.0)
    assert expected.left(0.0, 0.0) == 1100
    assert expected.left(50.0, 0.5) == 50 + 1000
    assert expected.left(100.0, 0.5) == 100 + 2000


def test_a_bound_of_steps_is_no_estimate(capsys, monkeypatch):
    """MAC may make 50 iterations, and makes few: the time left is that of a few."""
    monkeypatch.setattr(bars, "LINE_SECONDS", 0.05)
    shares = []
    monkeypatch.setattr(bars, "_left", lambda taken, share: shares.append(share))
    with bars.new_bar() as shown:
        shown.add_task("", total=61, likely=16, completed=4, stage="MAC")
        time.sleep(0.2)
    assert set(shares) == {4 / 16}


def test_lines_before_the_first_step_say_what_is_left_in_all(capsys, monkeypatch):
    monkeypatch.setattr(bars, "LINE_SECONDS", 0.05)
    with (
        context.using(expected=context.ExpectedTime(3600.0, 7200.0)),
        progress.getting_ready(True) as now,
    ):
        now("nearest neighbours")
        time.sleep(0.2)
        for _ in underway.each("distances", range(2)):
            time.sleep(0.2)
        time.sleep(0.2)
    first, *_, last = capsys.readouterr().err.splitlines()
    assert first == "nearest neighbours; 0:00:00 taken, about 3:00:00 left in all"
    assert re.search("about 0:00:.. left in all$", last)  # quicker by far than was foreseen


def test_lines_before_there_is_a_task_are_none(monkeypatch, capsys):
    monkeypatch.setattr(bars, "LINE_SECONDS", 0.001)
    with bars.new_bar() as bar:
        time.sleep(0.05)
        bar.add_task("", total=3, stage="late")
        time.sleep(0.05)
    assert "late" in capsys.readouterr().err
