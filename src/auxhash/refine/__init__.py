"""Refinement: lower L(h) after MAC."""

from auxhash.refine.descent import REPORTS, Refine

__all__ = ["REPORTS", "Refine"]
