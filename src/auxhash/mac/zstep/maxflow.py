"""Minimum cuts in floating point, on the neighbour lists of the graph itself.

SciPy's `maximum_flow` takes integer capacities of 32 bits; scaling real couplings to them costs
precision, and larger ones wrap around silently. Libraries that take real ones are under the GPL
(PyMaxflow, igraph) or slow (NetworkX, in pure Python), and want a graph of their own. This one
works on the real numbers, and copies no graph: capacities are the couplings.

The blocks are dense graphs, where excess has many ways to the nearest room. Potentials tell all
edges at once what to carry, as in a network of resistors, and after a few passes over the edges
most blocks have only excess left, or only room: then all points have the same optimal value. What
remains of the others is sent to partners with room, and then by push-relabel.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from auxhash.codes import Codes
from auxhash.compute.arrays import AnyArray, Array, Numbers
from auxhash.compute.kernels import kernel
from auxhash.mac.zstep.graph import Edges, weigh

TINY = 1e-13  # an amount that is smaller, relative to all supply, counts as none
MAX_PASSES = 4  # over the edges, at most, to find potentials


class Network(NamedTuple):
    """The edges among n points of one group, and the flow along them.

    Edge e of point i can still take -a[e] - flow, and its reverse -a[e] + flow, where flow is
    flow[e - shift[i]]: couplings are the same in both directions, flows opposite.
    """

    points: Numbers  # (n,), in the graph
    place: NDArray[np.int32]  # of each point of the graph in `points`, -1 for all others
    start: Numbers  # (n,), the first edge of each point
    stop: Numbers  # (n,), the end of its edges
    shift: Numbers  # (n,)
    indices: NDArray[np.uint32]  # the partners, those of each point in rising order
    a: Array  # the couplings, none above 0
    flow: Array
    supply: Array  # (n,), what each point has yet to send; negative: what it can still take in


@kernel
def _spread(
    points: AnyArray, n_points: int, edges: Edges, a: Array, u: Array, slack: Array, tiny: float
) -> tuple[Array, Array]:
    """Potentials x of all points of the graph, and the supply left to some of them when every edge
    carries |a| (x_i - x_j).

    No edge carries more than it can: potentials are within +-1/2, 0 outside. A pass raises each by
    what sends its own point's supply; then a point has the average of its partners' in place of it.
    """
    indptr, within, indices = edges.indptr, edges.within, edges.indices
    x, supply = np.zeros(n_points), -2 * u
    for _ in range(MAX_PASSES):
        if supply.min() >= -tiny or supply.max() <= tiny:
            break
        for t in range(len(points)):
            if slack[t] > 0:
                n = points[t]
                x[n] = min(max(x[n] + 0.5 * supply[t] / slack[t], -0.5), 0.5)
        for t in range(len(points)):
            n = points[t]
            own = slice(indptr[n], within[n])
            supply[t] = -2 * (u[t] + slack[t] * x[n]) - weigh(a[own], indices[own], x)
    return x, supply


@kernel
def _network(
    points: AnyArray, place: AnyArray, edges: Edges, a: Array, x: Array, supply: Array
) -> Network:
    """The network with the flow that potentials x make."""
    indices, start, stop = edges.indices, edges.indptr[points], edges.within[points]
    shift = stop - np.cumsum(stop - start)
    flow = np.zeros((stop - start).sum())
    for i in range(len(points)):
        for e in range(start[i], stop[i]):
            if place[indices[e]] >= 0:
                flow[e - shift[i]] = a[e] * (x[indices[e]] - x[points[i]])
    return Network(points, place, start, stop, shift, indices, a, flow, supply)


@kernel
def _push(network: Network, i: int, j: int, e: int, amount: float) -> None:
    """Send an amount along edge e from i to j."""
    low, high = network.start[j], network.stop[j]
    while low < high:  # finds the reverse edge: of equal partners the first, which is coupled
        middle = (low + high) // 2
        if network.indices[middle] < network.points[i]:
            low = middle + 1
        else:
            high = middle
    network.flow[e - network.shift[i]] += amount
    network.flow[low - network.shift[j]] -= amount
    network.supply[i] -= amount
    network.supply[j] += amount


@kernel
def _hop(network: Network, tiny: float) -> None:
    """Send excess to partners with room."""
    place, indices, a, supply = network.place, network.indices, network.a, network.supply
    start, stop, shift, flow = network.start, network.stop, network.shift, network.flow
    for i in range(len(supply)):
        e = start[i]
        while e < stop[i] and supply[i] > tiny:
            j = place[indices[e]]
            if j >= 0 and supply[j] < -tiny:
                amount = min(supply[i], -supply[j], -a[e] - flow[e - shift[i]])
                if amount > 0:
                    _push(network, i, j, e, amount)
            e += 1


@kernel
def _heights(network: Network, tiny: float, height: AnyArray) -> None:
    """Set `height`: number of edges to the nearest point with room, n if none can be reached."""
    place, indices, a, supply = network.place, network.indices, network.a, network.supply
    start, stop, shift, flow = network.start, network.stop, network.shift, network.flow
    n = len(height)
    queue = np.empty(n, np.int32)
    last = 0
    for i in range(n):
        height[i] = n
        if supply[i] < -tiny:
            height[i] = 0
            queue[last] = i
            last += 1
    first = 0
    while first < last < n:
        j = queue[first]
        first += 1
        for e in range(start[j], stop[j]):
            i = place[indices[e]]
            if i >= 0 and height[i] == n and flow[e - shift[j]] - a[e] > tiny:
                height[i] = height[j] + 1
                queue[last] = i
                last += 1


@kernel
def _push_relabel(network: Network, tiny: float, height: AnyArray) -> None:
    """Send excess on towards room, until there is none of one of them, or no way left."""
    place, indices, a, supply = network.place, network.indices, network.a, network.supply
    start, stop, shift, flow = network.start, network.stop, network.shift, network.flow
    n = len(supply)
    queue = np.empty(n, np.int32)  # a ring of the points with excess, first in, first out
    first = length = 0
    for i in range(n):
        if supply[i] > tiny:
            queue[length] = i
            length += 1
    n_open = (supply < -tiny).sum()
    relabels = n
    while length and n_open:
        if relabels >= n:  # exact heights from time to time save many small relabellings
            _heights(network, tiny, height)
            relabels = 0
        i = queue[first]
        first = (first + 1) % n
        length -= 1
        while supply[i] > tiny and height[i] < n:
            lowest = n
            for e in range(start[i], stop[i]):
                j = place[indices[e]]
                if j < 0:
                    continue
                residual = -a[e] - flow[e - shift[i]]
                if residual > tiny and height[i] == height[j] + 1:
                    before = supply[j]
                    amount = min(supply[i], residual)
                    _push(network, i, j, e, amount)
                    residual -= amount
                    n_open -= before < -tiny and supply[j] >= -tiny
                    if before <= tiny < supply[j]:
                        queue[(first + length) % n] = j
                        length += 1
                    if supply[i] <= tiny:
                        break
                if residual > tiny:
                    lowest = min(lowest, height[j])
            if supply[i] > tiny:
                height[i] = max(height[i], lowest + 1)
                relabels += 1


@kernel
def minimum_cut(
    points: AnyArray, place: AnyArray, edges: Edges, a: Array, u: Array, slack: Array
) -> Codes:
    """Minimise (1/4) z'Az + u'z over +-1 codes of some points of one group, every coupling <= 0.

    `place` has each point's position in `points`, -1 for all others; `slack` is half the sum of a
    point's |couplings| to the others. Unequal z cost |a| more than equal ones: that is the pair's
    capacity. A point with u < 0 has an excess of 2 |u|, one with u > 0 has room for 2 u. Excess
    flows along the edges to where there is room; points that cannot reach any in the end are +1,
    the others -1.
    """
    n = len(points)
    tiny = TINY * 2 * np.abs(u).sum()
    x, supply = _spread(points, len(place), edges, a, u, slack, tiny)
    n_open = (supply < -tiny).sum()
    if n_open == 0 or n_open == n:
        return np.full(n, -1 if n_open else 1, np.int8)
    network = _network(points, place, edges, a, x, supply)
    height = np.empty(n, np.int32)
    _hop(network, tiny)
    _push_relabel(network, tiny, height)
    _heights(network, tiny, height)
    z: Codes = (2 * (height == n) - 1).astype(np.int8)
    return z
