"""What holds for every test: property tests are bounded by their examples, not by the clock."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "barnabas", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("barnabas")
