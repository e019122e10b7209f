"""Effective number of bits: how evenly the possible codes are used."""

from collections.abc import Sequence
from dataclasses import replace

from auxhash.experiments.claims import (
    Claim,
    among,
    largest_effective,
    low_precision,
    more_effective,
    utilization_goes_with_precision,
)
from auxhash.experiments.figures import comparison
from auxhash.experiments.figures.comparison import PSEUDOLABELS
from auxhash.experiments.figures.figure import GroupFigure, Section, of, over_bits
from auxhash.experiments.figures.styles import DASHES
from auxhash.experiments.groups import Group, Record
from auxhash.experiments.svg import Plot, Series, Style
from auxhash.search import metrics


def sections(groups: Sequence[Group], records: Sequence[Record]) -> list[Section]:
    plots = [_plot(group, of(records, group=group.name)) for group in groups]
    note = "Solid: the base. Dashed: the test set. Dotted: the most that is possible for each."
    return [Section("Effective bits over bits", [[p for p in plots if p.series]], note=note)]


def _plot(group: Group, records: Sequence[Record]) -> Plot:
    if not records:
        return Plot(group.name, "b", "effective bits", [])
    base = over_bits(records, lambda r: r.effective["base"], kinds=False)
    series = [replace(one, style=replace(one.style, dashes="")) for one in base]
    for test in over_bits(records, lambda r: r.effective["query"], kinds=False):
        look = replace(test.style, dashes=DASHES["linear"])
        series.append(replace(test, label=f"{test.label}, test set", style=look, keyed=False))
    for words, n in group.data.sizes.items():
        most = [metrics.utilization_bound(b, n) for b in group.bits]
        look = Style("ink", dashes=DASHES["bound"])
        series.append(Series(f"bound, {words}", look, group.bits, most, keyed=False))
    return Plot(group.name, "number of bits b", "effective bits", series)


UNSUP_ENTROPY = GroupFigure(
    "unsup-entropy",
    "Fig. 12",
    "Code utilisation: effective number of bits",
    "The paper's figure of the entropy of the codes on SIFT1M.",
    comparison.unsupervised,
    sections,
    (
        Claim("tPCA typically achieves the largest effective bits", largest_effective("TPCA")),
        Claim("... while its precision is low", low_precision("TPCA")),
        Claim(
            "Code utilisation correlates to some extent with precision when ranking methods",
            utilization_goes_with_precision,
        ),
        Claim(
            "MACcut uses more effective bits than cut, which minimises the same objective",
            among(PSEUDOLABELS, more_effective("MACcut", "cut")),
            ours=True,
        ),
        Claim(
            "... and MACquad more than quad",
            among(PSEUDOLABELS, more_effective("MACquad", "quad")),
            ours=True,
        ),
    ),
    pictures=False,
)
