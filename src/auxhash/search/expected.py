"""ExpectedRecall: what a model promises of points that it was not learnt from."""

from dataclasses import dataclass

from auxhash.compute import checks
from auxhash.compute.registry import register

NEAREST = 10  # neighbours of a query that codes should find


@register("ExpectedRecall")
@dataclass(frozen=True)
class ExpectedRecall:
    """Share of the 10 nearest of held-out points that are among the first 10 of n_base points.

    By Hamming distance, by the query's outputs and, if the model has learnt tables, by these, each
    with its standard error over the queries.
    """

    n_base: int
    n_queries: int
    hamming: float
    hamming_error: float
    outputs: float
    outputs_error: float
    tables: float | None = None
    tables_error: float | None = None

    def check_read(self) -> None:
        checks.integer("n_base", self.n_base, 1)
        checks.integer("n_queries", self.n_queries, 1)
        for name in ("hamming", "hamming_error", "outputs", "outputs_error"):
            checks.number(name, getattr(self, name), 0)
        for name in ("tables", "tables_error"):
            if getattr(self, name) is not None:
                checks.number(name, getattr(self, name), 0)

    def __str__(self) -> str:
        shares = f"{self.hamming:.3f} by Hamming distance, {self.outputs:.3f} by outputs"
        errors = [self.hamming_error, self.outputs_error]
        if self.tables is not None and self.tables_error is not None:
            shares += f", {self.tables:.3f} by tables"
            errors.append(self.tables_error)
        return (
            f"{shares} (standard errors at most {max(errors):.3f} over {self.n_queries:,} "
            f"queries), of the {NEAREST} nearest among the first {NEAREST} of {self.n_base:,}"
        )
