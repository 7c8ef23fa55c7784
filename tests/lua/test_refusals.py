"""Whatever is refused leaves no trace: the whole key space is compared before and after."""

import pytest

from holdfast.core.library import PREFIX, library
from native_door import Door, StoreMessage

LONG = "n" * 201
PUT = ("put", "", 0, "new", "q", 0, 5, 0)
MANY = [f"x{n}" for n in range(513)]
ACT = ("act", "", 0)

BAD = [
    ("tag", "add", "wait", ""), ("tag", "maybe", "wait", "t"), ("tag", "add"), ("tag", "add", "nobody", "t"), ("tag",),
    ("tag", "add", "wait", *[f"t{n}" for n in range(65)]), ("tag", "remove", "nobody", "t"),
    ("tags",), ("tags", -1, 0, 1), ("tags", 0, 0, 10_001), ("tagged", "", 0, 1), ("tagged", "t", "x", 1), ("tagged",),
    ("track", "", 0, 1, "nobody"), ("track", "", 0, 2, "wait"), ("track",), ("track", "", 0, 1, ""),
    ("log", "", 0, "nobody", "seen", ""), ("log", "", 0, "wait", "", ""), ("log", "", 0, "wait", "seen", "[1]"),
    ("log", "", 0, "wait", "seen", "7"), ("log", "", 0, "wait", "seen", '{"a":"' + "n" * 16_384 + '"}'), ("log",),
    ("report", "", 0, "w", "run", "T", "1.5", ""), ("report", "", 0, "w", "run", "T", "nan", ""), ("report", "", 0, "w", "run", "T", "x", ""),
    ("report", "", 0, "w", "run", "T", "0.5"), ("report", "", 0, "", "run", "T", "1", ""), ("report",),
    ("report", "", 0, "w", "run", "T", "1", "", *["l"] * 513),
    (*PUT, "j", "k"), (*PUT, "", "k", "{}"), (*PUT, LONG, "k", "{}"), (*PUT, "a\nb", "k", "{}"), (*PUT, "j", "", "{}"),
    (*PUT, "good", "k", "{}", "\x01", "k", "{}"),
    ("put", "", 0, "maybe", "q", 0, 5, 0, "j", "k", "{}"), ("put", "", 0, "new", "", 0, 5, 0, "j", "k", "{}"),
    ("put", "", 0, "new", LONG, 0, 5, 0, "j", "k", "{}"), ("put", "", 0, "new", "q", 4096, 5, 0, "j", "k", "{}"),
    ("put", "", 0, "new", "q", -4096, 5, 0, "j", "k", "{}"), ("put", "", 0, "new", "q", "1.5", 5, 0, "j", "k", "{}"),
    ("put", "", 0, "new", "q", "nan", 5, 0, "j", "k", "{}"), ("put", "", 0, "new", "q", 0, 1001, 0, "j", "k", "{}"),
    ("put", "", 0, "new", "q", 0, -1, 0, "j", "k", "{}"), ("put", "", 0, "new", "q", 0, 5, -1, "j", "k", "{}"),
    ("put", "", 0, "new", "q", 0, 5, "inf", "j", "k", "{}"), ("put", "", 0, "new", "q", 0, 5, 10**15, "j", "k", "{}"),
    ("put", "line", "x", "move", "q", 0, 5, 0, "j", "k", "{}"), ("put", "a\tb", 1, "move", "q", 0, 5, 0, "j", "k", "{}"),
    ("put", "", 0, "new", "q"), ("put",), ("put", "", 0, "only", "new-queue", 0, 5, 0, *["w", "k"]),
    ("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}", 1, "tag"), ("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}", "x"),
    ("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}", 1, "colour", "red"), ("put_x", "", 0, "maybe", "q", 0, 5, 0),
    ("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}", 65, *[w for n in range(65) for w in ("tag", f"t{n}")]),
    ("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}", 1, "depends", ""),
    ("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}", 1, "backoff", "linear:1:2:3"),
    ("put_x", "", 0, "new", "q", 0, 5, 0, "good", "k", "{}", 0, "j", "k", "{}", 1, "expires", -1),
    *[("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}", 1, *wish) for wish in (
        ("expires", 0), ("expires", "1.5"), ("expires", "soon"), ("limit", 0), ("limit", 10**15), ("limit", "nan"),
        ("keep", -1), ("keep", ""), ("tag", ""), ("tag", "a\nb"), ("tag", LONG), ("tag", b"\xff"), ("depends", LONG),
        ("throttle", ""), ("backoff", ""), ("backoff", "fixed:1:2"), ("backoff", "fixed:1:2:101"), ("", ""),
        ("backoff", "fixed:-1:2:3"), ("backoff", "fixed:2678400001:1:1"), ("backoff", "fixed:1:2:3:4"),
        ("backoff", "fixed:" + "9" * 400 + ":1:1"), ("backoff", "fixed:1e3:1:1"),
    )],
    ("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}"), ("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k"),
    ("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}", -1), ("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}", 2049),
    ("put_x", "", 0, "new", "q", 0, 5, 0, "", "k", "{}", 0), ("put_x", "", 0, "new", "q", 0, 5, 0, "j", "", "{}", 0),
    ("put_x", "", 0, "new", "q", 4096, 5, 0), ("put_x",), ("put_x", "", 0, "new", "", 0, 5, 0, "j", "k", "{}", 0),
    ("put_x", "line", -1, "new", "q", 0, 5, 0, "j", "k", "{}", 0),
    ("pop", "w", "", 0, 1, 0, "q"), ("pop", "w", "", 0, 513, 0, "q", 0), ("pop", "w", "", 0, -1, 0, "q", 0),
    ("pop", "w", "", 0, 1, -1, "q", 0), ("pop", "w", "", 0, 1, 86_400_001, "q", 0), ("pop", "w", "", 0, 1, 0, "q", 64),
    ("pop", "w", "", 0, 1, 0, "q", ""), ("pop", "w", "", 0, 1, 0, "q", "x"), ("pop", "", "", 0, 1, 0, "q", 0),
    ("pop", "w", "", 0, 1, 0, "", 0), ("pop", "w", LONG, 1, 1, 0, "q", 0), ("pop", "w", "l", 1.5, 1, 0, "q", 0), ("pop",),
    ("complete", "w", "run", "T", "", 0), ("complete", "w", "run", "T", "", "x", "r"),
    ("complete", "w", "run", "T", "", -5, "r"), ("complete", "w", "run", "T", "", "", "r"),
    ("complete", "w", "run", "T", "", "00", "r"), ("complete", "", "run", "T", "", 0, ""), ("complete",),
    ("complete", "w", "run", "T", "", 0, "", "two", "T", "", "0.5", "r"),
    ("find_work",), ("find_work", "", 0, 0, 1), ("find_work", "f", 3, 0, 1), ("find_work", "f", 0, -1, 1),
    ("find_work", "f", 0, 0, 0), ("find_work", "f", 0, 0, 1001), ("find_work", LONG, 0, 0, 1), ("find_work", "f", "x", 0, 1),
    ("complete_pop", "w", "", 0, 1, 0, 9, "q", 0), ("complete_pop", "w", "", 0, 1, 0, 1, "q", 64),
    ("complete_pop", "w", "", 0, 1, 0, 1, "q", 0, "run", "T", "", "x", "r"), ("complete_pop", "w", "", 0, 1, 0, "x"),
    ("complete_pop", "w", "", 0, 1, 0, 1, "q", 64, "run", "T", "", 0, ""),
    ("advance", "w", "", 0, "run", "T", ""), ("advance", "w", "q", -1, "run", "T", ""), ("advance", "w", "q", 0, "run"),
    ("heartbeat", -1, "w", "run", "T", ""), ("heartbeat", 0, "w", "run", "T"), ("heartbeat", 10**9, "w", "run", "T", ""),
    ("retry", "w", "x", "", "", "run", "T", ""), ("retry", "w", -2, "", "", "run", "T", ""), ("retry", "w", "-1.0", "", "", "run", "T", ""), ("retry", "w", 0, "a\nb", "", "run", "T", ""),
    ("retry", "w", 0, LONG, "m", "run", "T", ""), ("retry", "w", 0, "", "", "run", "T"),
    ("fail", "w", "", "m", "run", "T", ""), ("fail", "w", "G\n", "m", "run", "T", ""), ("fail", "w", "G", "m", "run", "T"),
    ("resume", "", 0, "w", "run", "T"), ("resume", "v", -1, "w", "run", "T"), ("resume", "v", 0, "w", "run"),
    ("release", "", 0, "gone", "", "", "w", "run", "T"), ("release", "", 0, "unknown", "", "", "w", "run", "T"),
    ("release", "", 0, "lost", "", "", "w", "run"), ("release", "", 0, "lost", LONG * 99, "", "w", "run", "T"),
    ("expire", "w", "run"), ("cancel", "", 0, ""), ("cancel", "", 0, *MANY), ("cancel", "", "x", "run"),
    ("cancel_by", "", 0, "w", ""), ("cancel_by", "", 0, "w", *MANY), ("cancel_by", "", "x", "w", "run"), ("cancel_by", "", 0, "a\nb", "run"),
    ("move", "", 0, "", 0, "run", "", ""), ("move", "", 0, "q", "x", "run", "", ""), ("move", "", 0, "q", 0, "", "", ""),
    ("move", "", 0, "q", 0, "run", "", 5000), ("move", "", 0, "q", 0, "run", "", "x"), ("move", "", 0, "q", 0, "nobody", "", ""),
    *[("move", "", 0, "q", 0, "run", "", "", *rest) for rest in (
        ("a\tb", "", 0), ("", 1001, 0), ("", "x", 0), ("", "", "x"), ("", "", 1, "tag"), ("", "", 1, "colour", "red"),
        ("", "", 1, "keep", 5), ("", "", 1, "depends", "run"), ("", "", 0, "tag", "red"), ("", "", 1, "throttle", ""),
    )],
    ("put", "", 0, "old", "q", 0, 5, 0, "j"), ("put_x", "", 0, "old", "q", 0, 5, 0, "j", "k", "{}", 1, "depends", ""),
    ("priority", 4096, "run"), ("priority", "", "run"), ("priority", 1, *MANY), ("priority", 1, ""),
    ("complete_x",), ("complete_x", "w", "run", "T", "", 0, "", "", 0), ("complete_x", "", "run", "T", "", 0, "", "", 0, 0),
    ("complete_x", "w", "", "T", "", 0, "", "", 0, 0), ("complete_x", "w", "run", "T", "", "x", "", "", 0, 0),
    ("complete_x", "w", "run", "T", "", 0, "", "", 5, 0), ("complete_x", "w", "run", "T", "", 0, "", "", 0, 1, "wait"),
    ("complete_x", "w", "run", "T", "", 5, "r", "q", 0, 0), ("complete_x", "w", "run", "T", "", 0, "", "a\nb", 0, 0),
    ("complete_x", "w", "run", "T", "", 0, "", "q", -1, 0), ("complete_x", "w", "run", "T", "", 0, "", "q", 0, 2, "wait"),
    ("complete_x", "w", "run", "T", "", 0, "", "q", 0, 1001, *[f"p{n}" for n in range(1001)]),
    ("complete_x", "w", "run", "T", "", 0, "", "q", 0, 0, "q", 0, 5, 0, "run", "k", "{}", 0),
    ("complete_x", "w", "run", "T", "", 0, "", "q", 0, 0, "q", 0, 5, 0, "a", "k", "{}"),
    ("complete_x", "w", "run", "T", "", 0, "", "", 0, 0, "q", 4096, 5, 0, "a", "k", "{}", 0),
    ("complete_x", "w", "run", "T", "", 0, "", "", 0, 0, "fresh", 0, 5, 0, "a", "k", "{}", 0, "", 0, 5, 0, "b", "k", "{}", 0),
    ("complete_x", "w", "run", "T", "", 0, "", "", 0, 0, "q", 0, 5, 0, "", "k", "{}", 0),
    ("complete_x", "w", "run", "T", "", 0, "", "", 0, 0, "q", 0, 5, 0, "a", "k", "{}", 1, "colour", "red"),
    ("flow_put", "", 0, "f", "l"), ("flow_put",), ("flow_put", "", 0, "", "l", "q", 0, 0, 0, "f-0", "k", "{}", 0),
    ("flow_put", "", 0, "f", "l", "q", 0, 0, 0, "g-0", "k", "{}", 0), ("flow_put", "", 0, "f", "l", "q", 0, 0, 0, "f-0", "k", "{}", 1),
    ("flow_put", "", 0, "f", "l", "q", 0, 0, 0, "f-0", "k", "{}", 1, "edge", "fail -1 0 nobody"),
    ("flow_put", "", 0, "f", "l", "q", 0, 0, 0, "f-0", "k", "{}", 1, "edge", "fail 1 9 parent"),
    ("flow_put", "", 0, "f", "l", "q", 0, 0, 0, "f-0", "k", "{}", 1, "unique_key", "a"),
    ("flow_get", LONG), ("flow_states", "nobody"), ("flow_states",), ("flow_steps", "nobody"), ("flow_results", "nobody", 0, 5), ("flow_results", "f", -1, 5), ("flow_results", "f", 0, 0),
    ("end_with_flow", "w", "run", 1, "", 0, "two", "e", "l", 1, 0, "q", 0, 0, 0, "e-0", "k", "{}", 0),
    ("flow_close", "", 0, "nobody"), ("flow_close", "", 0, ""), ("flow_add", "", 0, "nobody", 0, 0, "", "", 0, 0, "q", 0, 0, 0, "nobody-0", "k", "{}", 0),
    ("flow_add", "", 0, "f", -1, 0), ("flow_add", "", 0, "f", 0, 2), ("flow_add", "", 0, "f", 0, 0, "", "", 0, 0), ("flow_states", "nobody", 0, 5000),
    ("flow_put", "", 0, "f", "l", "q", 0, 0, 0, "f-0", "k", "{}", 1, "group", "fail some 1"),
    ("flow_put", "", 0, "f", "l", "q", 0, 0, 0, "f-0", "k", "{}", 0, "q", 0, 0, 0, "f-1", "k", "{}", 1, "group", "fail list 1"),
    ("flow_list", "x", 5), ("flow_list", "", 0), ("flow_forget", "", 0, LONG),
    ("depend", "", 0, "add", "child", "child"), ("depend", "", 0, "add", "parent", "child"), ("depend", "", 0, "add", "wait", "x"),
    ("depend", "", 0, "maybe", "child", "wait"), ("depend", "", 0, "add", "nobody", "wait"), ("depend", "", 0, "all", "wait"),
    ("depend", "", 0, "all", "child", "parent"), ("depend", "", 0, "add", "child", ""), ("depend", "", 0, "add", "child", LONG),
    ("depend", "", 0, "add", "", "wait"), ("depend", "", 0, "add", "child", *MANY), ("depend", "l", "x", "all", "child"), ("depend",),
    ("depend", "", 0, "remove", "child", "a\nb"), ("dependents", "", "", 5), ("dependents", "parent", "x", 5),
    ("dependents", "parent", "", 0), ("dependents", "parent", "", 513), ("dependents", "parent", "5", 5), ("dependents", "parent"),
    ("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}", 1001, *[w for n in range(1001) for w in ("depends", f"p{n}")]),
    ("cancel", "", 0, "parent"), ("cancel", "", 0, "wait", "parent", "two"), ("cancel", "", 0, "root", "parent"),
    ("timeout", "", 0, "run", "wait"), ("timeout", "", 0, "nobody"), ("timeout", "", 0, *MANY),
    ("await", *MANY), ("await", ""), ("counts", ""), ("peek", "q", 0, 513), ("peek", "q", -1, 5), ("peek", "", 0, 5),
    ("job_get", *MANY), ("jobs_complete", -1, 5), ("failed", "", 0, 5), ("failed", "G", "x", 5), ("stats", "q", "x"),
    ("pause", "", 0, 2, "", "", 0, "q"), ("pause", "", 0, "on", "", "", 0, "q"), ("pause", "", 0, 1, "", "", 0, ""),
    ("pause", "", 0, 1, "", "", "x", "q"), ("pause", "", 0, 1, LONG, "", 0, "q"), ("pause", "", 0, 1),
    ("pause", "", 0, 1, "", "y" * 4097, 0, "q"), ("pause", "", 0, 1, "", "", -1, "q"),
    ("queue_forget", "", 0, "q"), ("queue_forget", "", 0, "empty", ""), ("queue_forget", "", 0, *[f"q{n}" for n in range(9)]),
    ("identifiers_set", "a"), ("priorities_set", "a"), ("setting", "", 0, "colour", 1), ("setting", "", 0, "stats-days", 0),
    ("setting", "", 0), ("setting", "", 0, "stats-days", "x"), ("setting", "", 0, "keep-data"),
    ("audit", "", 0, "me", "", "", ""), ("audit", "", 0, "me", "did", "", "y" * 4097), ("audit", "", 0, "me", "did", ""),
    ("audit_list", "x", 5), ("audit_list", "", 129), ("audit_list",), ("watch", 0), ("watch", 60_001), ("watch",),
    ("worker_seen", ""), ("worker_seen",), ("worker_seen", "w", "a"), ("worker_seen", "w", "quiet", "1"),
    ("worker_seen", "w", "a", "y" * 4097), ("worker_seen", "w", "", "x"), ("worker_seen", "a\nb"),
    ("worker_seen", "w", *[word for n in range(33) for word in (f"f{n}", "x")]),
    ("worker_seen", "w", *[word for n in range(5) for word in (f"f{n}", "x" * 4000)]),
    ("workers", "", "", 65), ("workers", "x", "w", 5), ("workers", "nan", "w", 5), ("workers", "1"), ("workers",),
    ("worker_jobs", "w", "x", 5), ("worker_jobs", "w", "", 501), ("worker_jobs", "w", "", 0), ("worker_jobs", "w"),
    ("worker_jobs", "w", "1\nq\nnan\nj", 5), ("worker_jobs", LONG, "", 5),
    ("worker_quiet", "w", 2), ("worker_quiet", "", 1), ("worker_quiet", "w"), ("worker_forget", "", 0, ""),
    ("worker_ask", "w", "j", ""), ("worker_ask", "", "j", "q"), ("worker_ask", "w", LONG, "q"), ("worker_ask", "w", "j"),
    ("worker_answer", "", "here"), ("worker_answer", "q", "y" * 65_537), ("worker_answer", "q"),
    ("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}", 1, "trace", ""),
    ("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}", 1, "trace", "00-\n"),
    ("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}", 1, "trace", "x" * 1025),
    ("config_set", "heartbeat", "-1"), ("config_set", "heartbeat", "nan"), ("config_set", "q-heartbeat", "1e300"),
    ("config_set", "heartbeat", "86401"), ("config_set", "grace-period", "inf"), ("config_set", "", "x"),
    ("config_set", "heartbeat"), ("config_unset", "", 0, ""), ("config_get", LONG),
    ("throttle_set", "", 0, "mine", 1), ("throttle_set", "", 0, "mine", 1, -1), ("throttle_set", "", 0, "mine", 1, "x"),
    ("throttle_set", "", 0, "ql:q:q", -1, 0), ("throttle_set", "", 0, "ql:q:q", "x", 0), ("throttle_set", "", 0, "ql:q:", 1, 0),
    ("throttle_set", "", 0, "ql:q:" + LONG, 1, 0), ("throttle_set", "", 0, LONG, 1, 0), ("throttle_set", "", 0, "ql:q:a\nb", 1, 0),
    ("queue_set", "", 0, "q", "colour", 1), ("queue_set", "", 0, "", "max-losses", 1), ("queue_set", "", 0, "q", "max-losses", 255),
    ("queue_set", "", 0, "q", "max-waiting", 0), ("queue_set", "", 0, "q", "max-waiting"), ("queue_get", ""), ("queue_get", LONG),
    ("throttle_delete", "", 0, ""), ("throttle_delete", "", 0), ("throttle_release", "", 0, "", "run"),
    ("throttle_release", "", 0, "t", ""), ("throttle_release", "", 0, "t", *MANY), ("throttles", "x", 5), ("throttles", "0", 0),
    ("throttles", "", 5), ("throttles", "0", 513), ("throttle_set", "", 0, "ql:q:q", 2**32, 0), ("throttle_get", ""),
    ("put_x", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}", 1, "throttle", "ql:q:" + LONG), ("failures", "x", 5), ("failures", 0, 513),
    ("topic_put",), ("topic_put", "", 0, "", "in", "i", 0, "b"), ("topic_put", "", 0, "t", "on", "i", 0, "b"), ("topic_put", "", 0, "t", "in", "i", 0),
    ("topic_put", "", 0, "t", "in", "", 0, "b"), ("topic_put", "", 0, "t", "in", "a\nb", 0, "b"), ("topic_put", "", 0, "t", "in", "i", -1, "b"),
    ("topic_put", "", 0, "t", "in", "good", 0, "b", "i", "x", "b"), ("topic_put", "", 0, "t", "in", "i", 10**15, "b"), ("topic_put", "", 0, "t", "at", "i", "1.5", "b"),
    ("topic_put", "", 0, LONG, "in", "i", 0, "b"), ("topic_put", "l", "x", "t", "in", "i", 0, "b"),
    ("topic_put", "", 0, "t", "in", *[word for n in range(513) for word in (f"i{n}", 0, "b")]),
    ("topic_reserve",), ("topic_reserve", "", 0, "", 0, 1, "", 1), ("topic_reserve", "", 0, "t", 3, 1, "", 1), ("topic_reserve", "", 0, "t", 0, 513, "", 1),
    ("topic_reserve", "", 0, "t", 0, 1, "x", 1), ("topic_reserve", "", 0, "t", 0, 1, "", -1), ("topic_reserve", "", 0, "t", 0, 1, "", "x"),
    ("topic_reserve", "", 0, "t", 0, 1, "", 10**15), ("topic_reserve", "l", 1.5, "t", 0, 1, "", 1), ("topic_reserve", "", 0, "t", "", 1, "", 1),
    ("topic_pull",), ("topic_pull", "", 0, "t", 0, ""), ("topic_pull", "", 0, "t", 513, ""), ("topic_pull", "", 0, "", 1, ""), ("topic_pull", "", 0, "t", 1, "x"),
    ("topic_release",), ("topic_release", "", 0, "t", "over", 0, "i", ""), ("topic_release", "", 0, "t", "in", "x", "i", ""), ("topic_release", "", 0, "t", "in", 0, "i"),
    ("topic_release", "", 0, "t", "done", "", "i", "x"), ("topic_release", "", 0, "t", "done", "", "", ""), ("topic_release", "", 0, "", "done", "", "i", ""),
    ("topic_reschedule",), ("topic_reschedule", "", 0, "t", "done", 0, "i"), ("topic_reschedule", "", 0, "t", "in", -1, "i"),
    ("topic_reschedule", "", 0, "", "in", 1, "i"), ("topic_reschedule", "", 0, "t", "at", "x", "i"), ("topic_reschedule", "", 0, "t", "in", 1, ""),
    ("topic_reschedule", "", 0, "t", "in", 1, *MANY), ("topic_delete",), ("topic_delete", "", 0, "", "i"), ("topic_delete", "", 0, "t", ""), ("topic_delete", "", 0, "t", *MANY),
    ("topic_requeue",), ("topic_requeue", "", 0, "", "", 5), ("topic_requeue", "", 0, "t", "x", 5), ("topic_requeue", "", 0, "t", "", 0), ("topic_requeue", "", 0, "t", "", 1001),
    ("topic_get",), ("topic_get", "", "i"), ("topic_get", "t", ""), ("topic_get", "t", *MANY), ("topic_counts", ""), ("topic_counts", *MANY[:129]),
    ("list", "queued", "", "", "", 5), ("list", "topics", "", "x", "t", 5),
    ("explain",), ("explain", ""), ("explain", LONG),
    ("failure_groups", 0, 201), ("failure_groups", "", 5), ("unfail", "", 0, "", "G", 5), ("unfail", "", 0, "q", "", 5),
    ("unfail", "", 0, "q", "G", 0), ("unfail", "", 0, "q", "G", 257), ("list",), ("list", "jobs", "q", "", "", 5), ("list", "waiting", "", "", "", 5),
    ("list", "waiting", "q", "x", "j", 5), ("list", "waiting", "q", "", "", 513), ("clock", -1), ("clock", "noon"),
    ("recur", "", 0, "set", "", "r", "K", "{}", 1000, 0, 0, 0, 0, 0), ("recur", "", 0, "set", "q", "r" * 181, "K", "{}", 1000, 0, 0, 0, 0, 0),
    ("recur", "", 0, "set", "q", "r", "", "{}", 1000, 0, 0, 0, 0, 0), ("recur", "", 0, "set", "q", "r", "K", "{}", 0, 0, 0, 0, 0, 0),
    ("recur", "", 0, "set", "q", "r", "K", "{}", -5, 0, 0, 0, 0, 0), ("recur", "", 0, "set", "q", "r", "K", "{}", 1000, "x", 0, 0, 0, 0),
    ("recur", "", 0, "set", "q", "r", "K", "{}", 1000, 0, 4096, 0, 0, 0), ("recur", "", 0, "set", "q", "r", "K", "{}", 1000, 0, 0, 1001, 0, 0),
    ("recur", "", 0, "set", "q", "r", "K", "{}", 1000, 0, 0, 0, -1, 0), ("recur", "", 0, "set", "q", "r", "K", "{}", 1000, 0, 0, 0, 0, 1),
    ("recur", "", 0, "set", "q", "r", "K", "{}", 1000, 0, 0, 0, 0, 1, "tag", "\n"), ("recur", "", 0, "set", "q", "r", "K", "{}", 1000),
    ("recur", "", 0, "set", "q", "r", "K", "{}", 1000, 0, 0, 0, 0, 1, "depends", "run"), ("recur",),
    ("recur", "", 0, "odd", "q", "r", "K", "{}", 1000, 0, 0, 0, 0, 0),
    ("recur_get", ""), ("recur_get", *MANY), ("recur_update", "", 0, "again", "tags", "x"), ("recur_update", "", 0, "again", "priority"),
    ("recur_update", "", 0, "again", "klass", "L", "interval", 0), ("recur_update", "", 0, "again", "priority", 1, "count", 5),
    ("recur_update", "", 0, "nobody", "priority", 1), ("recur_update", "", 0, "again", "queue", "new", "backlog", "x"),
    ("recur_update", "", 0, "again", "throttle", ""), ("recur_tag", "add", "nobody", "x"), ("recur_tag", "put", "again", "x"),
    ("recur_tag", "add", "again", ""), ("recur_tag", "add", "again", *[f"t{n}" for n in range(65)]),
    ("minutes", "", 0), ("minutes", "q", -1), ("minutes", "q", "x"), ("tick", ""), ("tick", *MANY[:129]),
    ("recur_pause", "", 0, 2, "again"), ("recur_pause", "", 0, "x", "again"), ("recur_pause", "", 0, 1, ""), ("recur_pause", "", 0, 1),
    ("recur_pause", "", 0, 1, "nobody"), ("recur_pause", "", 0, 0, "run"), ("recur_run",), ("recur_run", "", 0, ""), ("recur_run", "", 0, "nobody"),
    ("recur_run", "", 0, "run"), ("recur_run", "", 0, "a\nb"), ("recur_run", "l", "x", "again"),
    ("recur_cancel", "", 0, ""), ("recur_cancel", "", 0, *MANY),
    ("recur_unplanned", "x"), ("recur_unplanned", 0, 1001), ("recur_extend", "", 0, ""), ("recur_extend", "", 0, "again", -1), ("recur_extend", "l", "x", "again"),
    *[("recur_extend", "", 0, "again", 0, *words) for words in (("z" * 101,), ("", "5:"), ("", "yyyy"))],
    ("call",), ("call", "", 0), ("call", "", 0, "queue.fly"), ("call", "l", "x", "job.get", "run"), ("call", "", 0, "queue.pop"),
    *[("call", "", 0, "queue.put", *words) for words in (
        ("w", "q", "", "k", "{}", 0), ("w", "", "j", "k", "{}", 0), ("w", "fresh", LONG, "k", "{}", 0), ("w", "fresh", "a\nb", "k", "{}", 0),
        ("w", "fresh", "j", "k", "{", 0), ("w", "fresh", "j", "k", "false", 0), ("w", "fresh", "j", "k", "{}", "nan"), ("w", "fresh", "j", "k", "{}"),
        ("w", "fresh", "j", "k", "{}", "inf"), ("w", "fresh", "j", "k", "{}", 10**13), ("w", "fresh", "j", "k", "{}", 0, "priority"),
        ("w", "fresh", "j", "k", "[" * 101 + "]" * 101, 0), ("w", "fresh", "j", "k", "{}", 0, "priority", 4096),
        ("w", "fresh", "j", "k", "{}", 0, "priority", "1.5"), ("w", "fresh", "j", "k", "{}", 0, "retries", 1001),
        ("w", "fresh", "j", "k", "{}", 0, "retries", -1), ("w", "fresh", "j", "k", "{}", 0, "tags", "[["),
        ("w", "fresh", "j", "k", "{}", 0, "throttles", '[""]'), ("w", "fresh", "j", "k", "{}", 0, "throttles", '{"a":1}'),
        ("w", "fresh", "j", "k", "{}", 0, "throttles", "[" + ",".join(f'"{n}"' for n in range(17)) + "]"),
        ("w", "fresh", "j", "k", "{}", 0, "tags", '["' + LONG + '"]'), ("w", "fresh", "j", "k", "{}", 0, "tags", '["a\\nb"]'),
        ("w", "fresh", "j", "k", "{}", 0, "tags", "[" + ",".join(f'"{n}"' for n in range(65)) + "]"),
        ("w", "fresh", "j", "k", "{}", 0, "depends", "[[]]"), ("w", "q", "run", "k", "{}", "soon"),
        ("w", "fresh", "j", "k", "{}", 0, "depends", '["j"]', "tags", '["t"]'),
    )],
    *[("call", "", 0, *words) for words in (
        ("queue.pop", "q", "w", 513), ("queue.pop", "q", "w", "1.5"), ("queue.pop", "q", "", 1), ("queue.pop", "", "w", 1),
        ("queue.pop", "q", "w"), ("queue.peek", "q", 0, 513), ("queue.peek", "q"), ("job.requeue", "w", "q", "nobody", "k", "{}", 0),
        ("job.complete", "run", "other", "q", "{}"), ("job.complete", "run", "w", "r", "{}"), ("job.complete", "wait", "w", "q", "{}"),
        ("job.complete", "run", "w", "q", "{"), ("job.complete", "nobody", "w", "q", "{}"), ("job.complete", "run", "w", "q"),
        ("job.complete", "run", "w", "q", "[" * 101 + "]" * 101),
        ("job.fail", "run", "w", "G"), ("job.fail", "run", "w", "", "m"), ("job.fail", "run", "w", "a\nb", "m"), ("job.fail", "run", "v", "G", "m"),
        ("job.fail", "run", "w", "G", "m" * 4097), ("job.fail", "run", "w", "G", "m", "{"), ("job.retry", "run", "q", "w", "soon"),
        ("job.retry", "run", "q", "v"), ("job.retry", "run", "q", "w", 10**13), ("job.heartbeat", "run", "v"), ("job.heartbeat", "run", "w", "{"),
        ("job.timeout", "wait"), ("job.timeout", "run", "wait"), ("job.timeout", *MANY[:129]), ("job.cancel", *MANY), ("job.cancel", ""),
        ("job.setPriority", "wait", 4096), ("job.setPriority", "wait", "x"), ("job.setPriority", "nobody", 1), ("job.track", "nobody"),
        ("job.track",), ("config.set", "heartbeat"), ("config.set", "heartbeat", "-1"), ("config.set", "", "x"), ("config.get",),
        ("config.set", LONG, "x"), ("throttle.set", "t"), ("throttle.set", "", 1), ("throttle.set", "t", -1), ("throttle.set", "t", 1, "x"),
        ("throttle.set", "ql:q:" + LONG, 1), ("throttle.set", "t", 2**32), ("throttle.release",), ("queue.throttle.set", "q", "x"),
        ("queue.pause",), ("queue.pause", ""), ("queue.stats", "q"), ("queue.jobsByState", "sleeping", "q"), ("jobs.completed", "x"),
        ("job.completeAndRequeue", "run", "w", "q", "{}", "a\nb"), ("job.completeAndRequeue", "run", "w", "q", "{", "fresh"),
        ("job.completeAndRequeue", "run", "w", "q", "{}", "fresh", "delay", "soon"), ("job.completeAndRequeue", "run", "v", "q", "{}", "fresh"),
        ("job.completeAndRequeue", "run", "w", "q", "{}", "fresh", "delay", 10**13), ("job.completeAndRequeue", "run", "w", "q", "{}", "fresh", "depends", "7"),
        ("job.completeAndRequeue", "run", "w", "q", "{}", "fresh", "depends", '["run"]'), ("job.completeAndRequeue", "run", "w", "q", "{}", "next", "a\nb"),
        ("job.completeAndRequeue", "run", "w", "q", "{}", "next", "fresh", "depends", '["' + LONG + '"]'),
        ("job.log", "nobody", "said"), ("job.log", "wait"), ("job.log", "wait", ""), ("job.log", "wait", "said", "[1]"), ("job.log", "wait", "said", "7"),
        ("job.log", "wait", "said", '{"a":"' + "n" * 16_384 + '"}'), ("job.addTag", "nobody", "t"), ("job.addTag",), ("job.addTag", "wait", ""),
        ("job.addTag", "wait", LONG), ("job.addTag", "wait", *[f"t{n}" for n in range(65)]), ("job.removeTag", "nobody", "t"),
        ("job.addDependency", "wait", "two"), ("job.addDependency", "child", "child"), ("job.addDependency", "parent", "child"),
        ("job.addDependency", "child", ""), ("job.removeDependency", "wait", "all"), ("job.removeDependency", "nobody", "all"),
        ("job.cancel", "parent"), ("job.untrack",), ("jobs.tagged",), ("jobs.tagged", "t", "x"), ("tags.top", "x"),
        ("queue.put", "w", "fresh", "j", "k", "{}", 0, "depends", '["j"]'), ("queue.put", "w", "q", "parent", "k", "{}", 0, "depends", '["child"]'),
        *[("queue.recurAtInterval", *words) for words in (
            ("", "r", "k", "{}", 60, 0), ("fresh", "", "k", "{}", 60, 0), ("fresh", "r" * 181, "k", "{}", 60, 0), ("fresh", "r", "k", "{", 60, 0),
            ("fresh", "r", "k", "{}", 0, 0), ("fresh", "r", "k", "{}", -1, 0), ("fresh", "r", "k", "{}", "x", 0), ("fresh", "r", "k", "{}", 60),
            ("fresh", "r", "k", "{}", 10**13, 0), ("fresh", "r", "k", "{}", 60, 0, "priority"), ("fresh", "r", "k", "{}", 60, 0, "priority", 4096),
            ("fresh", "r", "k", "{}", 60, 0, "backlog", -1), ("fresh", "r", "k", "{}", 60, 0, "tags", '{"a":1}'), ("fresh", "r", "k", "{}", "1e-9", 0), ("fresh", "r", "k", "[" * 101 + "]" * 101, 60, 0),
        )],
        ("recurringJob.update", "nobody", "priority", 1), ("recurringJob.update", "again", "tags", "[]"), ("recurringJob.update", "again", "interval", 0),
        ("recurringJob.update", "again", "priority"), ("recurringJob.update", "again", "priority", 1, "count", 2), ("recurringJob.update",),
        ("recurringJob.update", "again", "klass", "L", "priority", 4096), ("recurringJob.update", "again", "queue", "a\nb"),
        ("recurringJob.addTag", "nobody", "t"), ("recurringJob.addTag", "again", ""), ("recurringJob.addTag", "again", *[f"t{n}" for n in range(65)]),
        ("recurringJob.removeTag", "nobody", "t"), ("recurringJob.cancel",), ("recurringJob.cancel", ""), ("recurringJob.get",),
        ("queue.unfail", "q"), ("queue.unfail", "q", "G", 0), ("queue.unfail", "q", "G", 201), ("queue.unfail", "", "G"), ("queue.unfail", "q", ""),
        ("queue.forget",), ("queue.forget", ""), ("worker.forget",), ("worker.forget", ""), ("worker.forget", *MANY),
        ("queueIdentifierPatterns.setAll", "a"), ("queueIdentifierPatterns.setAll", "a", "7"), ("queueIdentifierPatterns.setAll", "a", "["),
        ("queuePriorityPatterns.setAll", "7"), ("queuePriorityPatterns.setAll", "["), ("queuePriorityPatterns.setAll", '{"pattern":' + "[" * 66_000),
        ("queueIdentifierPatterns.setAll", "", "[]"), ("queueIdentifierPatterns.setAll", "a", '["' + "x" * 66_000 + '"]'),
        ("jobs.completed", "0.5"), ("jobs.tagged", "t", 0, "0.5"), ("queue.jobsByState", "running", "q", "0.5"), ("tags.top", 0, "0.5"), ("tags.top", 0, "1e308"),
        ("jobs.failedByGroup", "G", "0.5"), ("queue.peek", "q", "0.5", 5),
        ("job.get",), ("job.get", "y" * 257), ("jobs.failedByGroup", "G", "x"),
        ("job.addTag",), ("job.addTag", "nobody", "x"), ("job.addTag", "wait", ""), ("job.addTag", "wait", *[f"t{n}" for n in range(65)]),
        ("job.removeTag", "nobody", "x"), ("jobs.tagged",), ("jobs.tagged", "t", "x"), ("tags.top", 0, "x"),
        ("job.log", "wait"), ("job.log", "nobody", "m"), ("job.log", "wait", "m", "[]"), ("job.log", "wait", "m", "{"),
        ("job.addDependency",), ("job.addDependency", "wait", "run"), ("job.removeDependency", "nobody", "all"), ("job.untrack", "nobody"),
        ("job.completeAndRequeue", "run", "w", "q", "{}", "r", "delay", "x"), ("job.completeAndRequeue", "run", "w", "q", "{}", ""),
        ("job.completeAndRequeue", "run", "v", "q", "{}", "r"), ("job.completeAndRequeue", "run", "w", "q", "{}", "r", "depends", '["run"]'),
    )],
    # What only operators call; more of it in the stories of scan, act and operations.
    ("scan",), ("scan", "workers", "", "", "", 5, ""), ("scan", "waiting", "q", "x", "j", 5, ""), ("scan", "waiting", "q", "", "", 513, ""),
    ("scan", "completed", "", "1.5", "run", 5, ""), ("scan", "waiting", "q", "", "", 5),
    ("act",), (*ACT, "vanish", "", "", "", "", 0, "", 0, 0), (*ACT, "cancel", "", "", "", "", 0, "", 0, 0, "wait"),
    (*ACT, "cancel", "", "", "", "", 0, "", 0, 0, "wait", "x"), (*ACT, "cancel", "", "", "", "", 0, "", 0, 0, "wait", "", "", ""),
    (*ACT, "priority", "", "", "", "", 0, "", 0, 0, "wait", "5", "run", "x"), (*ACT, "cancel", "", "", "nothing", "w", 0, "", 0, 0, "wait", ""),
    (*ACT, "cancel", "", "", "", "", 0, "", 0, 0, *[word for jid in MANY[:257] for word in (jid, "")]),
    ("operation_set",), ("operation_set", "", 0, "o", "", 1, "", "start"), ("operation_set", "", 0, "o", "w", 0, "", "start"),
    ("operation_set", "", 0, "o", "w", 1, "", "take"), ("operation_set", "", 0, "o", "", 0, "done", "finish"),
    ("operations",), ("operations", 0, 65), ("operation_get",), ("operation_get", "", 0, 1), ("operation_get", "o", 0, 65),
    ("audited",), ("audited", "", 0, "me", "does", "it", "", "put", "", 0, "new", "q", 0, 5, 0, "j", "k", "{}"),
    ("audited", "", 0, "me", "does", "it", "", "timeout", "", 0, "wait"), ("audited", "", 0, "", "does", "it", "", "cancel", "", 0, "wait"),
    ("audited", "l", "x", "me", "does", "it", "", "cancel", "", 0, "wait"),
    # Numbers that Lua can read and the store cannot.
    *[("put", "", 0, "new", "q", 0, 5, odd, "j", "k", "{}") for odd in ("0x10", "1e3", "007", "-0", " 1", "1 ", "+1", "1.0")],
    ("complete", "w", "run", "T", "", "0x10", "r"), ("complete", "w", "run", "T", "", "007", "r"),
    ("complete_pop", "w", "", 0, 1, 0, 1, "q", 0, "run", "T", "", "0x10", "r"), ("tagged", "t", "-0", 5), ("tags", 1, 0, "-0"),
    ("report", "w", "run", "T", "0x1", ""), ("report", "w", "run", "T", " 1", ""), ("workers", "nan\n", "x", 5),
    ("workers", "0x10", "x", 5), ("worker_jobs", "w", "1 \nq\n\n", 5), ("worker_jobs", "w", "1\nq\n0x1\nj", 5),
    ("throttles", 2**64, 5), ("failures", 2**64, 5), ("failure_groups", 2**64, 5), ("audit_list", "0-0", 5),
    ("audit_list", f"{2**64}-1", 5), ("audit_list", f"1-{2**64}", 5), ("list", "completed", "", "1e300", "run", 5),
    ("list", "completed", "", "1.5", "run", 5), ("list", "waiting", "q", "1e999", "run", 5),
]  # fmt: skip


@pytest.fixture
def busy(door: Door) -> Door:
    """A root in which every call would find something to spoil."""
    door("throttle_set", "", 0, "ql:q:limited", 1, 0)
    door.put("q", "run", "two", "wait")
    door.put("q", "later", delay=5000)
    door("recur", "", 0, "set", "q", "again", "K", "{}", 1000, 9000, 0, 0, 0, 0)
    door.pop("w", "q", n=2, mode=1)
    door.put("q", "root")
    door.put_waiting("parent", "root")
    door.put_waiting("child", "parent")
    return door


@pytest.mark.parametrize("verb", sorted({call[0] for call in BAD}))
def test_a_refused_call_leaves_no_trace(verb, busy: Door):
    """All of a verb meet one root: what one of them left would show in the end."""
    token = busy.job("run").token
    before = busy.dump()
    for call in BAD:
        if call[0] == verb:
            with pytest.raises(StoreMessage, match=r"^HF_"):
                busy(*[token if word == "T" else word for word in call])
    assert busy.dump() == before


def test_refusals_of_single_jobs_leave_no_trace(busy: Door):
    before = busy.dump()
    assert busy("put", "", 0, "only", "fresh", 0, 5, 0, "wait", "other", "{}")[0] == 0
    assert busy("complete", "w", "run", 1, "", 0, "", "x", 1, "", 0, "", "wait", 0, "", 0, "")[0] == 0
    assert busy("advance", "v", "fresh", 0, "run", 1, "")[0] == 0
    assert busy("fail", "w", "G", "m", "wait", 0, "")[0] == 0
    assert busy("retry", "w", 0, "", "", "run", "x", "")[0].startswith(b"HF_LEASE_LOST")
    assert busy("heartbeat", 0, "w", "run", 1, "x", "w", "wait", 0, "") == [0, 0]
    assert busy("expire", "w", "run", 1, "w", "wait", 0) == 0
    assert busy("release", "", 0, "preempted", "", "", "w", "run", 1, "w", "wait", 0) == 0
    assert busy("cancel", "", 0, "nobody") == [0]
    assert busy("priority", 5, "nobody") == [0]
    assert busy("await", "nobody") == [b"gone", None]
    assert busy.put_waiting("self", "self")[0] == 0
    assert busy.put_waiting("parent", "child", mode="move")[0] == 0
    assert busy.pop("w", "nothing") == []
    assert busy.dump() == before


def test_empty_batches_do_nothing(busy: Door):
    before = busy.dump()
    assert busy(*PUT) == [0]
    assert busy("complete", "w") == [0]
    assert busy("heartbeat", 0) == []
    assert busy("resume", "v", 0) == []
    assert busy("pop", "w", "", 0, 5, 0) == [-1]
    assert busy("cancel", "", 0) == []
    assert busy("timeout", "", 0) == 0
    assert busy.dump() == before


def test_every_verb_that_takes_words_was_called_wrongly() -> None:
    wordless = {"queues", "tracked", "sweep", "info", "describe", "patterns", "settings"}
    verbs = {name.removeprefix(PREFIX) for name in library().functions}
    assert {call[0] for call in BAD} == verbs - wordless
