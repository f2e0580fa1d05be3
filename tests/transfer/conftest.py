"""Examples are drawn the same way each time, and the first one may compile a kernel."""

from hypothesis import settings

settings.register_profile("transfer", deadline=None, derandomize=True)
settings.load_profile("transfer")
