"""Runs that are kept: `compare` and what it is made of. A run writes codes; reports only read."""
