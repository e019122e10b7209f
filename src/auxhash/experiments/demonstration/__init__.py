"""The demonstration page: handwritten digits, how MAC learns them, and what codes find."""
