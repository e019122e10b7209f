"""Fetching the files of named data sets, and checking them."""
