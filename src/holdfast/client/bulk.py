"""Many puts in few calls: `queue.put_many`, and `with client.batch():`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Unpack, cast

from holdfast.client.descriptors import AnyClient, StepMethod, put_together
from holdfast.client.put_options import NOTHING, make_put, put_of_item
from holdfast.code.put_options import PutOptions, UniqueOptions
from holdfast.code.steps import Steps
from holdfast.code.tracing import is_traced
from holdfast.codecs import encode_data
from holdfast.commands.base import NotedJid
from holdfast.commands.jobs import Put, PutMany
from holdfast.commands.options import PutWithOptions
from holdfast.errors import HoldfastError
from holdfast.ids import mint_jid
from holdfast.settings import MAX_BATCH, Settings, check_list, check_name
from holdfast.text import counted
from holdfast.wire.gather import MAX_BYTES

OnePut = Put | PutWithOptions
ONE_PUT: Final = (Put, PutWithOptions)


def noted_jid(put: OnePut) -> str:
    """Return the jid of a put that is sent later; with a unique key, one that then notes which job holds that key."""
    has_key = isinstance(put, PutWithOptions) and bool(put.job.options.unique_key)
    return NotedJid(put.jid) if has_key and not isinstance(put.jid, NotedJid) else put.jid


def _note(jid: str, result: object) -> None:
    """Note the result of a put in its jid."""
    if not isinstance(jid, NotedJid) or not isinstance(result, str):
        return
    if result != jid:
        jid.standing, jid.is_new = str(result), False
    elif jid.is_new is None:
        jid.is_new = True


class Batch:
    """The puts of one thread that are not sent yet, and the refusals so far."""

    def __init__(self, send: Callable[[Sequence[OnePut]], list[object]]) -> None:
        self._send = send
        self._puts: list[OnePut] = []
        self._jids: list[str] = []
        self.refused: dict[str, HoldfastError] = {}

    def add(self, put: OnePut) -> str:
        """Add one put and return its jid."""
        jid = noted_jid(put)
        self._puts.append(put)
        self._jids.append(jid)
        if len(self._puts) >= MAX_BATCH:
            self.send()
        return jid

    def send(self) -> None:
        """Send the puts that were added."""
        puts, self._puts = self._puts, []
        jids, self._jids = self._jids, []
        if not puts:
            return
        for jid, result in zip(jids, self._send(puts), strict=True):
            _note(jid, result)
            if isinstance(result, HoldfastError):
                self.refused[jid] = result

    def check(self) -> None:
        """Raise the first refusal, if there is one; `refused` has all of them by jid."""
        for error in self.refused.values():
            error.add_note(
                f"{counted(len(self.refused), 'job of this batch was', 'jobs of this batch were')} not put; the others were"
            )
            raise error


Step = list[Put | PutWithOptions | PutMany]


def steps_of(
    settings: Settings, queue: str, items: Iterable[object], shared: Mapping[str, object]
) -> Iterator[Step]:
    """Yield the commands for the items of `put_many`. Raises UsageError before the step with the bad item is sent.

    Consecutive pairs of a klass by name and its data share one command, and none gets one of its own, because this path
    puts millions of jobs.
    """
    # Each item may have a key of its own, to which such options belong.
    trial = {name: value for name, value in shared.items() if name not in UniqueOptions.__annotations__}
    like = make_put(settings, queue, "any", NOTHING, trial, is_trial=True)
    # Each traced job has a trace of its own.
    plain = type(like) is Put and len(trial) == len(shared) and shared.get("jid") is None and not is_traced()
    step: Step = []
    run: list[str | bytes] | None = None
    count, size, checked = 0, 0, ""
    for item in check_list("jobs", items):
        if plain and _is_plain_pair(item):
            klass, data = cast("tuple[str, object]", item)
            if klass != checked:
                checked = check_name("klass", klass)
            body = encode_data(data, settings.max_data)
            if run is None:
                run = []
                paid, delay = like.retries, like.delay_ms
                step.append(PutMany(queue, run, like.priority, paid, delay, like.mode, like.max_losses))
            run += (mint_jid(), klass, body)
            size += len(body)
        else:
            put, run = put_of_item(settings, queue, item, shared), None
            step.append(put)
            size += len(put.data)
        count += 1
        if count == MAX_BATCH or size > MAX_BYTES:
            yield step
            step, run, count, size = [], None, 0, 0
    if step:
        yield step


def _is_plain_pair(item: object) -> bool:
    return type(item) is tuple and len(cast("Any", item)) == 2 and type(cast("Any", item)[0]) is str


def note_results(
    step: Step, results: Sequence[object], jids: list[str], refused: list[HoldfastError]
) -> None:
    """Add the jids of one step, in the order of its items, and its refusals."""
    for command, result in zip(step, results, strict=True):
        if isinstance(command, PutMany):
            jids += cast("Any", command).jobs[::3]
        else:
            # If another job holds the unique key, the result of the put is the jid of that job.
            jids.append(result if isinstance(result, str) else command.jid)
        each = cast("list[object]", result) if isinstance(result, list) else [result]
        refused += [one for one in each if isinstance(one, HoldfastError)]


class QueueBulk:
    """The method of a queue that puts many jobs."""

    _client: AnyClient
    name: str

    @StepMethod
    def put_many(self, jobs: Iterable[object], **options: Unpack[PutOptions]) -> Steps[list[str]]:
        """Put many jobs, 512 a call, and return their jids in order.

        Each is a (klass, data) pair, or a mapping with `klass`, `data` and options of its own; `options` hold for all
        others. The first refusal is raised when all were sent. Core: verbs/put.lua.
        """
        jids: list[str] = []
        refused: list[HoldfastError] = []
        for step in steps_of(self._client.settings, self.name, jobs, options):
            note_results(step, (yield put_together(self._client, step)), jids, refused)
        if refused:
            refused[0].add_note(
                f"{len(refused):,} of {counted(len(jids), 'job')} {'was' if len(refused) == 1 else 'were'} not put; the others were"
            )
            raise refused[0]
        return jids
