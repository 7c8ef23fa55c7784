"""The gateway: `POST /v1/<verb>` for programs in any language. The part `gateway` of the application."""

from holdfast.web.gateway.endpoint import Gateway

__all__ = ["Gateway"]
