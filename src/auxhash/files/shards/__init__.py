"""Many files of points encoded into as many files of codes, each by itself, here or on a cluster.

places     files at any address that fsspec knows: found, read, written whole or not at all
reading    the points and ids of a .parquet or .npy file, chunk by chunk
coding     one file of points into one file of codes
folder     all files: what is to be done, what was done before, and what does not fit together
"""

from auxhash.files.shards.folder import Done, Folder, Here

__all__ = ["Done", "Folder", "Here"]
