"""Find failure groups through the JSON API and retry each one: one job first, then the others if it succeeded.

HOLDFAST_WEB=http://127.0.0.1:5678 HOLDFAST_TOKEN=… python night_repairs.py
"""

import os
import time

import httpx

headers = {"Authorization": f"Bearer {os.environ['HOLDFAST_TOKEN']}"}
api = httpx.Client(base_url=os.environ["HOLDFAST_WEB"] + "/api/v1", headers=headers, timeout=30)


def call(method: str, path: str, fields: dict[str, object] | None = None) -> dict:
    return api.request(method, path, json=fields).raise_for_status().json()


for row in call("GET", "/failed")["found"]["page"]["rows"]:
    name, count = row["group"]["name"], row["group"]["count"]
    jid = call("POST", "/failed/probe", {"name": name})["result"]["jid"]
    state, until = "waiting", time.monotonic() + 60
    while state not in ("complete", "failed") and time.monotonic() < until:
        time.sleep(1)
        state = call("GET", f"/jobs/{jid}")["detail"]["facts"]["state"]
    print(f"{name}: the probe is {state}")
    if state == "complete" and count > 1:
        print(call("POST", "/failed/retry", {"name": [name]})["text"])
