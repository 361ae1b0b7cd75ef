"""Property tests here are not timed (machines are busy) and draw few but varied examples."""

from hypothesis import settings

settings.register_profile("records", deadline=None, max_examples=40)
settings.load_profile("records")
