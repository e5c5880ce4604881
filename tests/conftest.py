"""Hypothesis profiles: ``quick`` while working, ``thorough`` where it counts (``HYPOTHESIS_PROFILE=thorough``)."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

slow_is_fine = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("quick", max_examples=20, deadline=None, suppress_health_check=slow_is_fine)
settings.register_profile("thorough", max_examples=300, deadline=None, suppress_health_check=slow_is_fine)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
