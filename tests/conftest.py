"""make soak runs the same properties on many more examples."""

import os

from hypothesis import settings

settings.register_profile("brief", max_examples=30, deadline=None)
settings.register_profile("soak", max_examples=1000, deadline=None)
settings.load_profile("soak" if os.environ.get("AUXHASH_SOAK") else "brief")
