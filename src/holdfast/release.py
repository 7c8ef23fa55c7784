"""The version of this release, and that of its core: the only place that has them."""

VERSION = "0.3.0"
CORE_VERSION = f"{VERSION}.dev"
"""The version of the core. That of a checkout is `<release>.dev`, and may replace any core of that release."""
