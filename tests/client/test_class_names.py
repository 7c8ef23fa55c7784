"""python-api.md 6: under which name a class is stored, what a stored name leads to, and edited code; for both clients."""

import os
import sys
from pathlib import Path

import pytest

from holdfast import UsageError

SHOP = """
class Parcel:
    version = {version}
    @staticmethod
    def process(job):
        job["version"] = {version}
        return job.complete()
    class Label:
        pass
def process(job):
    return job.complete()
"""


class Parcel:
    class Label: ...


def local_class():
    class Local: ...

    return Local


@pytest.fixture
def shop(tmp_path, monkeypatch, namespace):
    name = "shop_" + namespace.replace("-", "_")
    file = tmp_path / f"{name}.py"
    file.write_text(SHOP.format(version=1))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield file
    sys.modules.pop(name, None)


def save(file: Path, source: str) -> None:
    """Save a module so that its time differs, whatever the file system's clock."""
    before = file.stat().st_mtime_ns
    file.write_text(source)
    os.utime(file, ns=(before + 1_000_000, before + 1_000_000))


def put_and_pop(do, klass):
    do(lambda: do.client.queues["q"].put(klass, {}))
    return do(lambda: do.client.queues["q"].pop())


@pytest.mark.parametrize(
    ("klass", "name"),
    [
        (Parcel, f"{__name__}.Parcel"),
        (Parcel.Label, f"{__name__}.Parcel.Label"),
        (local_class(), f"{__name__}.Local"),
        (os.path, os.path.__name__),
        ("written.down.as.it.Is", "written.down.as.it.Is"),
    ],
)
def test_a_class_or_module_is_stored_under_its_name_and_text_as_it_is(do, klass, name):
    assert put_and_pop(do, klass).klass_name == name
    assert do.client.queues["q"].class_string(klass) == name


def test_what_has_no_name_is_refused_before_anything_is_sent(do):
    for klass in (7, lambda job: None, None):
        with pytest.raises(UsageError):
            do(lambda klass=klass: do.client.queues["q"].put(klass, {}))
    assert do(lambda: do.client.queues["q"].length()) == 0


def test_a_stored_name_leads_to_the_class_the_nested_class_or_the_module(do, shop):
    assert put_and_pop(do, f"{shop.stem}.Parcel").klass is sys.modules[shop.stem].Parcel
    assert put_and_pop(do, f"{shop.stem}.Parcel.Label").klass is sys.modules[shop.stem].Parcel.Label
    assert put_and_pop(do, shop.stem).klass is sys.modules[shop.stem]


def test_the_functions_of_a_module_act_as_methods(do, shop):
    job = put_and_pop(do, shop.stem)
    do(lambda: job.process())
    assert do(lambda: do.client.jobs[job.jid]).state == "complete"


def test_each_fetched_job_imports_afresh_at_the_first_look_and_keeps_what_it_found(do, shop):
    first = put_and_pop(do, f"{shop.stem}.Parcel")
    assert first.klass.version == 1
    save(shop, SHOP.format(version=2))
    assert first.klass.version == 1
    assert put_and_pop(do, f"{shop.stem}.Parcel").klass.version == 2


def test_a_save_that_cannot_be_loaded_fails_the_jobs_until_the_next_save(do, shop):
    name = f"{shop.stem}.Parcel"
    do(put_and_pop(do, name).process)
    save(shop, "class Parcel(:\n")
    for _ in range(2):
        broken = put_and_pop(do, name)
        do(lambda job=broken: job.process())
        failure = do(lambda job=broken: do.client.jobs[job.jid]).failure
        assert failure["group"] == "q-SyntaxError"
        assert failure["message"].startswith(f"Failed to import {name}")
    save(shop, SHOP.format(version=3))
    mended = put_and_pop(do, name)
    do(lambda: mended.process())
    assert do(lambda: do.client.jobs[mended.jid])["version"] == 3
