"""One thread, as several processes share the cores, and few steps."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def quick():
    torch = pytest.importorskip("torch")
    from auxhash.torch import learning

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning, "LEAST_STEPS", 1)  # as many as the epochs of a test have
        yield
    torch.set_num_threads(before)
