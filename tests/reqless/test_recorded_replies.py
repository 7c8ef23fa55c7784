"""The recorded replies of every command: our door gives them, and so does the reference."""

import pytest
from alike import meant
from recorded_replies import FOLDER, Step, is_as_said, stories
from reference import reference_text
from two_doors import Door

from holdfast.testing import ScratchStore

STORIES = dict(stories())


def play(door: Door, steps: list[Step], ours: bool) -> None:
    for step in steps:
        if step.only_ours and not ours:
            continue
        door.messages()
        before = door.contents() if ours and step.is_refused else {}
        reply = door.raw(*step.words)
        assert is_as_said(reply, step.reply), f"{step.line}\n  answered {reply!r}"
        if step.reply is None:
            continue
        if ours and step.is_refused:
            assert door.contents() == before, f"refused, and left a trace: {step.line}"
        messages = door.messages()
        if ours:
            assert messages == step.messages, step.line
        else:  # in which order the reference writes keys depends on the server it runs in
            assert meant(messages) == meant(step.messages + step.reference_adds), step.line


@pytest.mark.full
@pytest.mark.parametrize("name", STORIES)
def test_our_door_answers_as_recorded(door: Door, name: str) -> None:
    play(door, STORIES[name], ours=True)


@pytest.mark.full
@pytest.mark.parametrize("name", STORIES)
def test_the_reference_answers_as_recorded(store: ScratchStore, name: str) -> None:
    text = reference_text()
    if text is None:
        pytest.skip("the reference cannot be fetched")
    reference = Door(store.socket_path, text, 6)
    reference.flush()
    play(reference, STORIES[name], ours=False)
    reference.close()


def test_every_command_is_recorded() -> None:
    used = {step.words[0] for steps in STORIES.values() for step in steps}
    assert used <= {path.stem for path in FOLDER.glob("*.txt")}
