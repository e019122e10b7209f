"""A fitted scikit-learn estimator as bytes, and back, through skops: never a pickle.

skops builds only types that it trusts. We add one, the trees of HistGradientBoostingClassifier,
which `hash_function="trees"` needs: they are arrays of nodes, whose links we check.
"""

import io
import zipfile
from collections.abc import Sequence
from typing import Any

TREE = "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor"


def to_bytes(estimator: Any) -> bytes:
    """The estimator in skops's format; raises ImportError without skops."""
    data: bytes = _skops().dumps(estimator)
    return data


def from_bytes(data: bytes, trusted: Sequence[str] = ()) -> Any:
    """The estimator; raises ValueError where it holds types that neither skops nor `trusted` names.

    `trusted` lists types by their full names.
    """
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        # A small archive could otherwise unfold to any size.
        if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
            raise ValueError("a stored classifier is compressed, which skops never does")
    skops = _skops()
    unknown = set(skops.get_untrusted_types(data=data)) - set(trusted)
    if others := sorted(unknown - {TREE}):
        raise ValueError(
            f"a stored classifier holds types that skops does not trust: {', '.join(others)}; "
            f"if you trust whoever made the file, load it with trusted={others}"
        )
    estimator = skops.loads(data, trusted=[*trusted, *unknown])
    if TREE in unknown:
        _check_trees(estimator)
    return estimator


def _check_trees(estimator: Any) -> None:
    """Raise unless every link of every tree leads to a later node: prediction does not check."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    if type(estimator) is not HistGradientBoostingClassifier:
        raise ValueError(f"trees inside a {type(estimator).__name__} need trusted=[{TREE!r}]")
    for tree in (tree for trees in estimator._predictors for tree in trees):
        inner = tree.nodes[tree.nodes["is_leaf"] == 0]
        own = (tree.nodes["is_leaf"] == 0).nonzero()[0]
        fine = inner["feature_idx"] < estimator.n_features_in_
        for side in ("left", "right"):
            fine &= (own < inner[side]) & (inner[side] < len(tree.nodes))
        if (
            inner["is_categorical"].any()
            or inner["feature_idx"].min(initial=0) < 0
            or not all(fine)
        ):
            raise ValueError("a stored classifier has a damaged tree")


def _skops() -> Any:
    try:
        from skops import io as skops_io
    except ImportError as error:
        raise ImportError(
            "a model that holds a scikit-learn classifier is stored through skops: "
            "pip install 'auxhash[classifiers]'"
        ) from error
    return skops_io
