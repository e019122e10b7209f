"""Evaluation: the results of `metrics.evaluate`, always together with their protocol."""

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from auxhash.compute.arrays import Array, ArrayLike, Numbers
from auxhash.compute.extras import install

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Every measure of `metrics.evaluate`; radii are 0..n_bits."""

    k: Numbers
    precision: Array  # at k
    recall: Array  # at k
    average_precision: Array | None  # mAP at k; None for more than 64 k
    mean_average_precision: float  # over the whole base
    radius_precision: Array
    radius_recall: Array
    retrieved: Array  # mean number of points within each radius
    utilization: float  # effective bits of the base
    utilization_bound: float
    balance: Array  # share of +1, per bit
    correlation: float  # mean absolute correlation over the pairs of bits
    protocol: dict[str, Any]

    def __str__(self) -> str:
        lines = [f"{name.replace('_', ' ')}: {value}" for name, value in self.protocol.items()]
        lines += [
            "",
            f"mAP {self.mean_average_precision:.4f} over the whole base; "
            f"{self.utilization:.2f} effective bits of at most {self.utilization_bound:.2f}; "
            f"bits +1 in {self.balance.min():.2f} to {self.balance.max():.2f} of the codes, "
            f"mean |correlation| {self.correlation:.3f}",
            "",
            f"{'k':>9}  precision    recall" + "       mAP" * (self.average_precision is not None),
        ]
        shown = np.arange(len(self.k)) if len(self.k) <= 20 else _spread(len(self.k))
        for i in shown:
            lines.append(f"{self.k[i]:9d}  {self.precision[i]:9.4f} {self.recall[i]:9.4f}")
            if self.average_precision is not None:
                lines[-1] += f" {self.average_precision[i]:9.4f}"
        lines += ["", f"{'radius':>9}  precision    recall  retrieved"]
        for r in range(len(self.retrieved)):
            numbers = self.radius_precision[r], self.radius_recall[r], self.retrieved[r]
            lines.append("{:9d}  {:9.4f} {:9.4f} {:10.1f}".format(r, *numbers))
            if self.radius_recall[r] >= 1:
                break
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain lists and numbers, the protocol included."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in asdict(self).items()
        }

    def to_json(self, indent: int | None = None) -> str:
        """Return `to_dict` as JSON; protocol values that JSON cannot hold become strings."""
        return json.dumps(self.to_dict(), indent=indent, default=_plain)

    def to_frame(self) -> "pandas.DataFrame":
        """Return a pandas frame of (measure, at, value), with the protocol in its `attrs`."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError(f"to_frame needs pandas: {install('frame')}") from error
        radii = np.arange(len(self.retrieved))
        parts: list[tuple[str, ArrayLike, ArrayLike]] = [
            ("precision at k", self.k, self.precision),
            ("recall at k", self.k, self.recall),
            ("mAP", [self.protocol["n_base"]], [self.mean_average_precision]),
            ("precision by radius", radii, self.radius_precision),
            ("recall by radius", radii, self.radius_recall),
            ("retrieved by radius", radii, self.retrieved),
            ("utilization", [self.protocol["n_bits"]], [self.utilization]),
            ("balance of bit", np.arange(len(self.balance)), self.balance),
        ]
        if self.average_precision is not None:
            parts.append(("mAP at k", self.k, self.average_precision))
        frame = pandas.concat(
            [pandas.DataFrame({"measure": m, "at": at, "value": v}) for m, at, v in parts],
            ignore_index=True,
        )
        frame.attrs = dict(self.protocol)
        return frame

    def plot(self) -> "Figure":
        """Return a matplotlib figure of the curves over k and the radius, with the protocol."""
        try:
            from matplotlib.figure import Figure
            from matplotlib.ticker import MaxNLocator
        except ImportError as error:
            raise ImportError(f"plot needs matplotlib: {install('plot')}") from error
        figure = Figure(figsize=(12, 4.8), layout="constrained")
        by_k, by_radius, curve = figure.subplots(1, 3)
        marker = "o" if len(self.k) <= 20 else ""
        by_k.plot(self.k, self.precision, marker=marker, label="precision")
        by_k.plot(self.k, self.recall, marker=marker, label="recall")
        if self.average_precision is not None:
            by_k.plot(self.k, self.average_precision, marker=marker, label="mAP")
        by_k.set(title="Among the k nearest", xlabel="k", xscale="log")
        by_k.xaxis.set_major_formatter("{x:,.0f}")
        by_radius.plot(self.radius_precision, marker=".", label="precision")
        by_radius.plot(self.radius_recall, marker=".", label="recall")
        by_radius.set(title="Within a Hamming radius", xlabel="radius")
        by_radius.xaxis.set_major_locator(MaxNLocator(integer=True))
        curve.plot(self.radius_recall, self.radius_precision, marker=".")
        curve.set(
            title="Precision over recall", xlabel="recall", ylabel="precision", xlim=(0, 1.02)
        )
        for axes in (by_k, by_radius, curve):
            axes.set_ylim(0, 1.02)
        for axes in (by_k, by_radius):
            axes.legend()
        figure.suptitle(f"{self._title()}\n", fontweight="bold")
        stated = {name: value for name, value in self.protocol.items() if value != "not given"}
        text = ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in stated.items())
        figure.text(0.5, 0.94, text, fontsize="x-small", ha="center", va="top", wrap=True)
        return figure

    def _title(self) -> str:
        data = self.protocol["data_set"]
        on = "" if data == "not given" else f" on {data}"
        bits = self.protocol["n_bits"]
        return f"Codes of {bits} bits{on}: mAP {self.mean_average_precision:.3f}"


def _spread(n: int) -> Numbers:
    """Return about a dozen of the positions 0..n-1, evenly spaced on a logarithmic scale."""
    return np.unique(np.geomspace(1, n, 12).round().astype(np.int64)) - 1


def _plain(value: object) -> object:
    """Return what JSON can hold: a number of NumPy as Python's, anything else as text."""
    return value.item() if isinstance(value, np.generic) else str(value)
