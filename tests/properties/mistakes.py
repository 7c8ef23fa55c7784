"""Seeded mistakes: what a wrong core could do, as replacements in the text of the library.

A replacement that no longer fits the text fails its test, so that none of them can rot unseen.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Mistake:
    name: str
    right: str
    wrong: str

    def made_in(self, text: str) -> str:
        """How lines are indented does not matter: the library may leave that out."""
        lines = [re.escape(line.strip()) for line in self.right.split("\n")]
        pattern = r"\n[ ]*".join(lines)
        assert re.search(pattern, text), f"no longer in the core: {self.right}"
        return re.sub(pattern, lambda _: self.wrong, text)


MISTAKES = [
    Mistake("the token of a lease is not compared", "r.token == token and r.worker == worker", "r.worker == worker"),
    Mistake("completing does not compare the token", "popped ~= token or holder ~= worker", "holder ~= worker"),
    Mistake("completing does not compare the worker", "popped ~= token or holder ~= worker", "popped ~= token"),
    Mistake("a token does not grow", "ctx.record.since(r), r.token + 1\n", "ctx.record.since(r), ctx.now\n"),
    Mistake("a lost lease costs no retry", "r.remaining, r.losses = r.remaining - 1,", "r.remaining, r.losses = r.remaining,"),
    Mistake("a lost lease is not counted", "r.losses < 255 and r.losses + 1 or 255", "r.losses"),
    Mistake("grace is not given", "and grace > 0 then", "and grace > 1e9 then"),
    Mistake("a second loss gets no grace", "  r.flags = record.without(r.flags, FLAG.NOTICED)\n  local ends", "  local ends"),
    Mistake("a heartbeat does not end the grace period", "if noticed then r.flags = r.flags - FLAG.NOTICED end", ""),
    Mistake("used up retries do not fail a lost job", "if r.remaining >= 0 and not too_often then", "if r.remaining >= -9 and not too_often then"),
    Mistake("a dead child's jobs get grace", "then loss.notice(ctx, queue, jid, r) end\n      job.write", "then end\n      job.write"),
    Mistake("a preemption keeps the lease", "local queue = lease.release(ctx, jid, r)\n  history.add(ctx, jid, r, history.PREEMPTED", "local queue = keys.of_queue(ctx, r.queue)\n  history.add(ctx, jid, r, history.PREEMPTED"),
    Mistake("a loss of a job with budgets of its own costs a retry", "local by_retry = not record.has(r.flags, BUDGETED)", "local by_retry = true"),
    Mistake("a new life has the losses of the last one", "r.remaining, r.queued, r.losses = r.retries, ctx.now, 0", "r.remaining, r.queued = r.retries, ctx.now"),
    Mistake("priority is reversed", "- priority * CLASS", "+ priority * CLASS"),
    Mistake("a timed out job has to queue again", "return sequence - URGENT, jid", "return sequence, jid"),
    Mistake("a scheduled job starts early", 'queue.scheduled, "-inf", ctx.now, "BYSCORE"', 'queue.scheduled, "-inf", ctx.now + 5000, "BYSCORE"'),
    Mistake("a paused queue hands out jobs", "if opens then\nif ctx.index and mode == M.FOUND then ctx.index.leave_out(ctx, queue, opens) end\nreturn 0, opens\nend", ""),
    Mistake("the replay record is dropped", "if last < number then return nil end", "if last <= number then return nil end"),
    Mistake("a straggler is let in", "if last > number then refuse.call", "if last > number + 1000 then refuse.call"),
    Mistake("a repeated pop shows leases that ended", "if r and lease.is_held(r, grant.worker, tonumber(token) or popped) then", "if r then"),
    Mistake("a repeated put resets a running job", "if MOVES[mode] then\n    put_again", 'if mode ~= "only" then\n    put_again'),
    Mistake("putting over another job is not refused", "job.body(ctx, jid, r) ~= body", "false"),
    Mistake("a slot is not handed on", "  waiting.offer(ctx, queue.own)\n  queues.wake", "  queues.wake"),
    Mistake("a pop does not look at the limit", "if room < want then want = room end", ""),
    Mistake("a retry does not cost one", "r.remaining = r.remaining - 1\n", ""),
    Mistake("advancing does not renew the retries", "r.queue, r.queued, r.remaining, r.losses = next_queue.name, ctx.now, r.retries, 0", "r.queue, r.queued = next_queue.name, ctx.now"),
    Mistake("a failed job stays in its group", 'call("ZREM", key, ...) >= 1 and call("EXISTS", key) == 0', 'call("EXISTS", key) == 0'),
    Mistake("a completed job can be cancelled", "r and r.state ~= state.COMPLETE and r or nil", "r or nil"),
    Mistake("a job that is put again is still listed as complete", "    ctx.completed.remove(ctx, jid)\n", "\n"),
    Mistake("a wait counts from the put, however often it was popped", "return r.ended > since and r.ended or since", "return r.queued"),
    Mistake("the wait of a retried job counts from its last pop", "return r.ended > since and r.ended or since", "return since"),
    Mistake("the wait of a delayed retry counts from when a worker looked", "ctx.record.ready(r, since and since[i] or ctx.now)", "ctx.record.ready(r, ctx.now)"),
    Mistake("the wait of a lost job has its run in it", "return lapsed > since and lapsed or since", "return since"),
    Mistake("a long body is left behind", 'if record.has(r.flags, FLAG.SPILLED) then call("UNLINK", ctx.keys.body .. jid) end', ""),
]  # fmt: skip
