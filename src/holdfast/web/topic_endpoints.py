"""The endpoints of topics: `POST /schedule/<topic>` and others. The part `topics` of the application."""

from starlette.routing import BaseRoute

from holdfast.web.auth import Authentication
from holdfast.web.namespaces import Namespaces
from holdfast.web.options import Options


def topic_routes(namespaces: Namespaces, options: Options, auth: Authentication) -> list[BaseRoute]:
    """Return the routes of the topic endpoints.

    A request is that of `auth.user(request)`, and for the client `namespaces.chosen(user, <header Holdfast-Namespace>)`.
    """
    _ = namespaces, options, auth
    return []
