"""The web application: pages for operators, the same as JSON under `/api/v1`, and the live stream. Extra `web`.

from holdfast.web import create_app
ui = create_app(client)        # an ASGI application: run it with uvicorn, or mount it
ui = create_wsgi_app(client)   # the same for Flask, and Django under WSGI
"""

from holdfast.web.app import create_app, create_wsgi_app
from holdfast.web.users import User

__all__ = ["User", "create_app", "create_wsgi_app"]
