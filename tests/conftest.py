"""What holds for every test: property tests are bounded by their examples, not by the clock, and
processes are started with the signals of a terminal's, also where the tests run in the background.
"""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "barnabas", deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("barnabas")

# A shell has what it starts in the background ignore Ctrl-C, and all that this starts inherits it.
signal.signal(signal.SIGINT, signal.default_int_handler)
