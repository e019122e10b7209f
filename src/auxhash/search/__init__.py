"""Search among codes, and measure how good it is.

index/     exact and approximate indexes, names for ids, re-ranking
metrics/   precision, recall and mAP, with ties counted by their exact expectation
chance     detect queries that have nothing to do with the codes they are searched among
"""
