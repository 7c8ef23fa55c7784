"""The comparison itself can fail."""

from two_doors import Door

from holdfast.core.texts import bundle
from holdfast.testing import ScratchStore


def test_each_door_hears_only_what_its_own_call_published(store: ScratchStore) -> None:
    """Both listen to one server, and so to each other's calls."""
    one, other = (Door(store.socket_path, bundle("doors.reqless"), database) for database in (4, 5))
    for door in (one, other):
        door.flush()
        door.messages()
    one.call("config.set", 1, "first", "1")
    assert [text.count("first") for _, text in one.messages()] == [1]
    other.messages()
    other.call("config.set", 1, "second", "1")
    assert [text.count("second") for _, text in other.messages()] == [1]
    one.close()
    other.close()
