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
    monkeypatch.setattr(bars, "_times", lambda taken, share: shares.append(share) or "")
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
    assert bars._times(60.0, 0.25) == "0:01:00 taken, about 0:03:00 left in all"
    assert bars._times(60.0, 0.0) == bars._times(60.0, 1.0) == "0:01:00 taken"
