"""What the comparison of two doors leaves open, and what not."""

from alike import same_refusal
from two_doors import Refused


def not_cancelled(jid: str, child: str) -> Refused:
    return Refused(f"Cancel(): {jid} is a dependency of {child} but is not mentioned to be canceled")


def test_a_refused_cancel_may_name_any_of_several_dependents() -> None:
    assert same_refusal(not_cancelled("a", "b"), not_cancelled("a", "c"))
    assert not same_refusal(not_cancelled("a", "b"), not_cancelled("d", "b"))
