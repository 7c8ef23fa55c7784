"""Many puts in few calls: `queue.put_many`, and `with client.batch():`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from holdfast.client.put_options import NOTHING, make_put, put_of_item
from holdfast.code.tracing import is_traced
from holdfast.codecs import encode_data
from holdfast.commands.jobs import Put, PutMany
from holdfast.commands.options import PutWithOptions
from holdfast.errors import HoldfastError
from holdfast.ids import mint_jid
from holdfast.settings import MAX_BATCH, Settings, check_list, check_name
from holdfast.wire.gather import MAX_BYTES

OnePut = Put | PutWithOptions
ONE_PUT: Final = (Put, PutWithOptions)


class Batch:
    """The puts of one thread that have not left yet, and what was refused so far."""

    def __init__(self, send: Callable[[Sequence[OnePut]], list[Any]]) -> None:
        self._send = send
        self._puts: list[OnePut] = []
        self.refused: dict[str, HoldfastError] = {}

    def add(self, put: OnePut) -> str:
        """Collect one put; answers its jid."""
        self._puts.append(put)
        if len(self._puts) >= MAX_BATCH:
            self.send()
        return put.jid

    def send(self) -> None:
        """Send what was collected."""
        puts, self._puts = self._puts, []
        if not puts:
            return
        for put, answer in zip(puts, self._send(puts), strict=True):
            if isinstance(answer, HoldfastError):
                self.refused[put.jid] = answer

    def check(self) -> None:
        """Raise the first refusal, if there was one; `refused` holds them all by jid."""
        for error in self.refused.values():
            error.add_note(f"{len(self.refused)} jobs of this batch were not put; the others were")
            raise error


Step = list[Put | PutWithOptions | PutMany]


def steps_of(
    settings: Settings, queue: str, items: Iterable[object], shared: Mapping[str, Any]
) -> Iterator[Step]:
    """The commands for the items of `put_many`. Raises UsageError before the step with the bad item leaves.

    Pairs of a klass by name and its data share one command as long as they stand together, without a
    command of each: this is the path of millions.
    """
    like = make_put(settings, queue, "any", NOTHING, shared, is_trial=True)
    # Each job that is traced carries a trace of its own.
    plain = type(like) is Put and shared.get("jid") is None and not is_traced()
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


def note_answers(step: Step, answers: Sequence[Any], jids: list[str], refused: list[HoldfastError]) -> None:
    """Add the jids of one step, in the order of its items, and what was refused."""
    for command, answer in zip(step, answers, strict=True):
        if isinstance(command, PutMany):
            jids += cast("Any", command).jobs[::3]
        else:
            jids.append(command.jid)
        said = cast("list[object]", answer) if isinstance(answer, list) else [answer]
        refused += [one for one in said if isinstance(one, HoldfastError)]


def first_of(refused: Sequence[HoldfastError], asked: int) -> HoldfastError:
    """The first refusal of many, saying how many there were."""
    error = refused[0]
    error.add_note(f"{len(refused)} of {asked} jobs were not put; the others were")
    return error
