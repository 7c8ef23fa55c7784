"""The pages of people who are not logged in: a form for a token, and a sentence in place of a page. They need no store and no user."""

from typing import Final

from markupsafe import Markup
from starlette.responses import HTMLResponse
from starlette.types import Scope

_PAGE: Final = Markup("""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>holdfast | {title}</title><meta name="color-scheme" content="light dark"><meta name="holdfast">
<link rel="icon" href="{files}/icon.svg" type="image/svg+xml"><script src="{files}/boot.js"></script><link rel="stylesheet" href="{files}/app.css"></head>
<body><main class="lone front"><img src="{files}/icon.svg" alt="" width="48" height="48"><h1>{title}</h1>{inside}</main></body></html>
""")
_FORM: Final = Markup("""<form method="post" class="stack card"><label class="field">Token
<input name="token" type="password" autocomplete="current-password" required autofocus{invalid}></label>{error}
<button class="btn main">Log in</button></form>""")


def front_page(scope: Scope, status: int, title: str, inside: str) -> HTMLResponse:
    """Return a page that has only a title and a sentence; `inside` is escaped unless it is markup."""
    # A file is served under any hash; under one that is not its own browsers ask each time whether it has changed.
    files = f"{scope.get('root_path', '').rstrip('/')}/static/0"
    body = inside if isinstance(inside, Markup) else Markup("<p>{}</p>").format(inside)
    return HTMLResponse(_PAGE.format(title=title, files=files, inside=body), status)


def login_page(scope: Scope, error: str = "") -> HTMLResponse:
    """Return the form for a token; with what was wrong with the one that was sent, as 401."""
    shown = Markup('<p class="error" role="alert" id="error">{}</p>').format(error) if error else ""
    invalid = Markup(' aria-invalid="true" aria-describedby="error"') if error else ""
    return front_page(scope, 401 if error else 200, "Log in", _FORM.format(error=shown, invalid=invalid))
