"""Partitions in lockstep without a cluster: what `Rounds` does, on objects of this process."""

from auxhash.dask.part import LogEntry, Partition, combine


def run(program, arguments, log=None, lose=None):
    """Return what the program returns at each place, of as many as there are tuples of arguments.

    `log` gets all answers. `lose` is (place, answer): that partition is lost after so many, and
    runs anew from the log.
    """
    log = [] if log is None else log
    n = len(arguments)
    parts = [Partition(program, n, place, 60.0, *own) for place, own in enumerate(arguments)]
    requests = [part.begin(0, []) for part in parts]
    number = 0
    while requests[0].kind != "done":
        for request in requests:
            if request.kind == "failed":
                raise request.value
        reply, first = combine(requests), requests[0]
        if first.kind == "tell":
            reply = False
        if first.kind == "outcome":
            log[first.where :] = [LogEntry(reply, outcome=True)]
            reply = None
        else:
            log.append(LogEntry(reply))
        number += 1
        requests = [part.advance(number, reply) for part in parts]
        if lose is not None and number == lose[1]:
            place = lose[0]
            parts[place] = Partition(program, n, place, 60.0, *arguments[place])
            requests[place] = parts[place].begin(number, log)
    return [request.value for request in requests]
