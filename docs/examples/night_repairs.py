"""Look for failure groups over the JSON API, and retry each one: first one job, then the rest if that succeeded.

HOLDFAST_WEB=http://127.0.0.1:5678 HOLDFAST_TOKEN=… python night_repairs.py
"""

import os
import time

import httpx

api = httpx.Client(
    base_url=os.environ["HOLDFAST_WEB"] + "/api/v1",
    headers={"Authorization": f"Bearer {os.environ['HOLDFAST_TOKEN']}"},
    timeout=30,
)


def call(verb: str, **fields: object) -> dict:
    found = api.post(f"/jobs/{verb}", json=fields)
    found.raise_for_status()
    return found.json()


for group in api.get("/failed").raise_for_status().json()["groups"]["rows"]:
    probe = group["newest"]
    call("retry", jid=[probe])
    state, until = "waiting", time.monotonic() + 60
    while state not in ("complete", "failed") and time.monotonic() < until:
        time.sleep(1)
        state = api.get(f"/jobs/{probe}").json()["facts"]["state"]
    print(group["name"], "probe:", state)
    if state == "complete":
        print(call("retry", q=f'state:failed group:"{group["name"]}"')["text"])
