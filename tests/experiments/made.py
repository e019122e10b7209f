"""Made numbers for tests of claims."""

from auxhash.experiments.groups import Record


def record(method, loss=1.0, p=0.5, kind="linear", bits=8, seed=0, group="KSH", **more):
    return Record(
        group, method, kind, bits, seed, loss, {10: p, 20: p / 2}, average_precision=p, **more
    )


def history(*losses, seconds=None, free=0.1, violations=0, **columns):
    """Steps with these losses; what else is given has one value for each step."""
    seconds = seconds or [1.0] * len(losses)
    return [
        {"loss": loss, "seconds": s, "free_loss": free, "violations": violations}
        | {name: values[at] for name, values in columns.items()}
        for at, (loss, s) in enumerate(zip(losses, seconds, strict=True))
    ]


def outcome(test, *records):
    return test(list(records))[0]
