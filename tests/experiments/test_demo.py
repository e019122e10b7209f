"""The demonstration's other process; the examples run the demonstration itself."""

from multiprocessing import get_context

from auxhash.experiments.demo import compile_from_the_end


def test_the_process_that_compiles_ends_well_and_says_nothing(capfd):
    other = get_context("spawn").Process(target=compile_from_the_end)
    other.start()
    other.join(300)
    assert other.exitcode == 0
    assert capfd.readouterr() == ("", "")
