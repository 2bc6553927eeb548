"""Which examples do the tests with drawn input see?

The same in every run, so that a change is judged by what it changes; ``HYPOTHESIS_PROFILE=default`` draws new ones.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
