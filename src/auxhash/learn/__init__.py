"""Learn hash functions: estimators, what trains them, and the methods they are compared with.

training/      one training: points held out, steps, checkpoints, progress, interruption
smooth/        the gradient core and its objectives; refinement after MAC
hasher         the methods of every fitted estimator
estimators     MACHash, TwoStepHash, EndToEndHash: from labels or pairs
neighborhash   NeighborHash: from points alone
paper          the four methods of the paper as estimators
choose         settings chosen by validation: `fit --auto`
baselines/     the methods compared with
torch/         PyTorch modules as hash functions
loading, encoder   saved estimators, and saved models of any version
"""
