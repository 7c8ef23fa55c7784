"""Section 2.2 of the Python API: scripts of one's own over the core's library, and the words of errors."""

import pytest

import holdfast
from holdfast import Client, ConnectionLost, HoldfastError, UsageError
from holdfast.core.texts import lib
from holdfast.errors import StoreErrorText
from holdfast.testing import ScratchStore
from holdfast.wire.plans import ErrorReply, Step


def made(do, source: str, name: str = "mine") -> holdfast.LuaPlugin:
    return holdfast.LuaPlugin(name, do.client, source)


def test_the_example_of_the_page_works_as_written(url: str, namespace: str) -> None:
    client = Client(url, namespace=namespace)
    plugin = holdfast.LuaPlugin("double-beat", client, "return Holdfast.config.get(ARGV[1]) * ARGV[2]")
    assert plugin.call("heartbeat", 2) == 60
    assert repr(plugin) == f"<LuaPlugin double-beat of {client!r}>"


def test_a_plugin_sees_the_configuration_and_the_jobs_of_its_namespace(do):
    jid = do(lambda: do.client.queues["mail"].put("app.Welcome", {"id": 7}, tags=["a"]))
    source = """
      -- what is stripped does not matter: error("no")
      local job = Holdfast.job.get(ARGV[1])
      if job == nil then return false end
      return { job.klass, job.state, job.data, { job.queue, #job.tags }, KEYS[1], 2.7, true, false }
    """
    plugin = made(do, source)
    assert do(lambda: plugin.call(jid)) == [
        "app.Welcome", "waiting", '{"id":7}', ["mail", 1], do.client.root, 2, 1, None,
    ]  # fmt: skip
    assert do(lambda: plugin.call("nobody")) is None


def test_a_plugin_writes_in_one_step_and_takes_bytes_and_numbers(do):
    plugin = made(do, "redis.call('SET', KEYS[1] .. 'mine', ARGV[1]) return { ARGV[1], ARGV[2] + ARGV[3] }")
    assert do(lambda: plugin.call(b"a\x00b", 1, 2.5)) == ["a\x00b", 3]


def test_comment_lines_are_stripped_and_nothing_else_is(do):
    plugin = made(do, "-- one\n  -- two\nlocal text = 'a -- b'\n--[[ three\n]] return text -- four")
    assert do(plugin.call) == "a -- b"
    assert "\n-- one" not in plugin._script.text
    assert "-- two" not in plugin._script.text
    assert "\n--" not in lib()


def scripts_called(store: ScratchStore) -> list[str]:
    lines = store.ask("INFO", "commandstats").splitlines()
    return [line.partition(":")[0] + " " + line.partition("calls=")[2].partition(",")[0] for line in lines]


def test_a_plugin_is_loaded_once_and_loaded_again_when_the_store_forgot_it() -> None:
    with ScratchStore() as store, Client(store.url) as client:
        plugin = holdfast.LuaPlugin("p", client, "return ARGV[1]")
        assert [plugin.call("a"), plugin.call("b"), plugin.call("c")] == ["a", "b", "c"]
        assert "cmdstat_script|load 1" in scripts_called(store)
        client.link.send(Step([("SCRIPT", "FLUSH"), ("FUNCTION", "FLUSH")]))
        assert plugin.call("d") == "d"
        assert "cmdstat_script|load 2" in scripts_called(store)
        assert "cmdstat_eval 1" not in scripts_called(store)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("error('too odd')", "mine: the store replied: too odd"),
        ("return redis.error_reply('ODD thing')", "mine: the store replied: ODD thing"),
        ("return Holdfast.job.get()", "mine: the store replied: no jid provided"),
        ("return redis.call('LPUSH', KEYS[1], 1)", "WRONGTYPE Operation against a key"),
        ("this is no Lua", "Error compiling script"),
    ],
)
def test_what_a_plugin_throws_names_the_plugin_and_not_a_line_of_the_library(do, source, said):
    plugin = made(do, source)
    with pytest.raises(HoldfastError) as thrown:
        do(plugin.call)
    assert str(thrown.value).startswith("mine: ")
    assert said in str(thrown.value)
    assert "on @user_script" not in str(thrown.value)


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("local seven = 7\nerror('too odd')", "too odd (line 2 of its source)"),
        ("-- told\nlocal nothing\nreturn nothing.there", "(a nil value) (line 3 of its source)"),
        ("this is no Lua", "(line 1 of its source)"),
        ("\n\nreturn Holdfast.job.get()", "no jid provided"),
    ],
)
def test_what_a_plugin_throws_tells_the_line_of_its_own_source_where_it_is_known(do, source, place):
    plugin = made(do, source)
    with pytest.raises(HoldfastError) as thrown:
        do(plugin.call)
    assert str(thrown.value).endswith(place)
    assert "user_script" not in str(thrown.value)


def test_the_store_s_own_words_stay_as_the_cause(do):
    plugin = made(do, "error('too odd')")
    with pytest.raises(HoldfastError) as thrown:
        do(plugin.call)
    assert isinstance(thrown.value.__cause__, StoreErrorText)
    assert "user_script:" in str(thrown.value.__cause__)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("user_script:7: too odd script: 82903a04, on @user_script:1.", "too odd"),
        ("user_function:7: too odd script: hf1_put, on @user_function:7.", "too odd"),
        ("nouns.job.job:7: too odd script: on @nouns.job.job:7.", "too odd"),
        ("WRONGTYPE no script: on @user_script:1.", "WRONGTYPE no"),
        ("HF_NO_ROOT hf:{a}: script: 89372d51, on @user_script:544.", "HF_NO_ROOT hf:{a}:"),
        ("mail:7: is no place", "mail:7: is no place"),
        ("two\nlines script: on @user_script:1.", "two\nlines"),
    ],
)
def test_the_place_in_a_script_is_no_part_of_the_sentence(text: str, sentence: str) -> None:
    assert ErrorReply(text).sentence == sentence


def test_a_call_that_could_not_even_be_written_is_made_again() -> None:
    with ScratchStore() as store, Client(store.url) as client:
        plugin = holdfast.LuaPlugin("p", client, "return redis.call('INCR', KEYS[1] .. 'told')")
        assert plugin.call() == 1
        store.restart()
        assert plugin.call() == 1


def test_nobody_listening_means_that_nothing_ran(tmp_path) -> None:
    client = Client(f"unix://{tmp_path}/none", deadline=0.1)
    with pytest.raises(ConnectionLost, match=r"script: no connection .*; nothing was sent") as lost:
        holdfast.LuaPlugin("p", client, "return 7").call()
    assert not lost.value.may_have_happened


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("", None, "return 1"), "name"),
        (("p", object(), "return 1"), "client must be a Client or an AsyncClient, not object"),
        (("p", None, 7), "source must be text"),
    ],
)
def test_a_plugin_that_cannot_be_is_a_usage_error(client: Client, words: tuple, why: str) -> None:
    name, other, source = words
    with pytest.raises(UsageError, match=why):
        holdfast.LuaPlugin(name, other or client, source)


def test_an_argument_that_cannot_travel_is_refused_before_anything_is_sent(do):
    for odd in (None, True, float("nan"), ["a"]):
        with pytest.raises(UsageError):
            do(lambda odd=odd: made(do, "return 1").call(odd))
    assert not do.client.shard.met
