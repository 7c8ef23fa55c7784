"""The gateway against a real store: by a client without a socket, and over HTTP."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from callers import Verbs, served, tokens
from starlette.testclient import TestClient

from holdfast import Client
from holdfast.web import create_app


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are coroutines."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture
def programs(client: Client) -> Iterator[Callable[..., Verbs]]:
    """Make callers of an application of this test's namespace, with some options."""
    with ExitStack() as stack:

        def made(**options: Any) -> Verbs:
            app = create_app(client, **{"auth": tokens(), **options})
            return Verbs(stack.enter_context(TestClient(app, raise_server_exceptions=False)))

        yield made


@pytest.fixture
def verbs(programs: Callable[..., Verbs]) -> Verbs:
    """A caller of an application without options."""
    return programs()


@pytest.fixture
def address(client: Client) -> Iterator[str]:
    """The URL of the gateway of a server of this test's namespace."""
    with served(create_app(client, auth=tokens())) as found:
        yield found
