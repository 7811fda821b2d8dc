"""Settings of all tests."""

from hypothesis import settings

# No deadline for one example: on a loaded machine, or when the first example loads a model, it tells nothing about
# the code. All else stays as in the profile that hypothesis chose, which is another one under CI.
settings.register_profile("postquem", deadline=None)
settings.load_profile("postquem")
