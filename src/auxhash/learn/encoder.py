"""A saved model as a value, whatever estimator and version wrote the file."""

import os
from dataclasses import replace

from auxhash.model.model import Model, NeedsEstimatorError
from auxhash.model.modelfile import ModelFileError


def load(path: str | os.PathLike[str], n_jobs: int | None = None) -> Model:
    """Load a saved model for encoding alone, by way of its estimator where nothing else can."""
    try:
        return Model.load(path, n_jobs=n_jobs)
    except ModelFileError as error:
        if not isinstance(error.__cause__, NeedsEstimatorError):
            raise
    from auxhash.learn import loading

    return replace(loading.as_model(loading.load(path), path), n_jobs=n_jobs)
