"""The middleware that ships with holdfast; `holdfast.middleware` names it for everybody."""
