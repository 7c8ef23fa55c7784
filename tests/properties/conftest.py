"""Asserts of the machine's modules say what differs, as those of test files do."""

import pytest

pytest.register_assert_rewrite("compare", "machine")
