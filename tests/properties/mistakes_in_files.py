"""More seeded mistakes: lines of the worker, the client, the wire and the core, each with the test that finds it.

Those tests are in `make test`; that they find the mistakes is checked by `make test-all`, because each takes a run of pytest
over a changed copy of the package.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

import holdfast

SOURCE = Path(holdfast.__file__).parent


@dataclass(frozen=True)
class FileMistake:
    """A mistake: the text `right` occurs once in the files of this `kind`, and is replaced by `wrong`."""

    name: str
    kind: str
    right: str
    wrong: str
    found_by: str

    def places(self) -> list[Path]:
        """Return the files with the right text, each once for each occurrence."""
        files = sorted(SOURCE.rglob(f"*.{self.kind}"))
        return [file for file in files for _ in range(file.read_text(encoding="utf-8").count(self.right))]

    def make_in(self, folder: Path) -> None:
        """Copy the package into `folder`, with the mistake."""
        shutil.copytree(SOURCE, folder / SOURCE.name, ignore=shutil.ignore_patterns("__pycache__"))
        [place] = self.places()
        text = place.read_text(encoding="utf-8").replace(self.right, self.wrong)
        (folder / SOURCE.name / place.relative_to(SOURCE)).write_text(text, encoding="utf-8")


PARTS, REPEAT, BULK = (
    "worker/test_parts.py::test_",
    "wire/test_repeat.py::test_",
    "client/test_bulk.py::test_",
)
TOPIC, BUDGET = "lua/test_topic_story.py::test_", "lua/test_budget_story.py::test_"
ENDING, LISTING = "lua/test_ending_story.py::test_", "lua/test_listing_story.py::test_"
ALLOWANCE, BACKOFF = "lua/test_allowance_story.py::test_", "lua/test_backoff_story.py::test_"
HISTORY, ORDER, WORKER = (f"lua/test_{name}_story.py::test_" for name in ("history", "order", "worker"))

MISTAKES_IN_PYTHON = [FileMistake(name, "py", right, wrong, test) for name, right, wrong, test in (
    ("leases are renewed too seldom", "(lease.lease / 3 for lease in alive", "(lease.lease for lease in alive",
     PARTS + "a_keeper_looks_less_often_again_when_the_short_lease_has_ended"),
    ("too many leases are renewed in one call", "[alive[at : at + MAX_BATCH] for at in", "[alive[at : at + 2 * MAX_BATCH] for at in",
     PARTS + "all_leases_are_renewed_in_calls_of_at_most_512"),
    ("a lost lease is not noticed", "            if end <= 0:\n", "            if end < 0:\n",
     PARTS + "a_keeper_learns_what_was_lost_and_asks_for_it_no_more"),
    ("a job that was cancelled is called lost", "lease.lost = LOST if end == 0 else GONE", "lease.lost = LOST",
     PARTS + "a_keeper_learns_what_was_lost_and_asks_for_it_no_more"),
    ("a report takes the number of the call that takes jobs", "exchange_all(self._shard, [*others, take], self.sequence)",
     "exchange_all(self._shard, [*others, take])", PARTS + "the_calls_that_take_jobs_have_a_sequence_of_their_own"),
    ("a job is retried once too often", "function is None or facts.remaining <= 0 or", "function is None or facts.remaining < 0 or",
     PARTS + "an_exception_is_retried_while_retries_are_left_and_given"),
    ("a busy store is not waited for", "return reply.code in _TEMPORARY", "return False",
     REPEAT + "not_now_is_repeated_until_it_is"),
    ("pauses between two tries do not grow", "self._pause = min(self._pause * 2, LONGEST_PAUSE)", "self._pause = FIRST_PAUSE",
     REPEAT + "pauses_grow_and_end_at_the_deadline_with_an_error_that_says_it_may_have_happened"),
    ("a call carries more jobs than it may", "batch is None or batch.room == 0 or", "batch is None or",
     "client/test_async.py::test_a_call_carries_at_most_512_jobs_and_about_a_mebibyte"),
    ("a step of many puts has no end in bytes", "if count == MAX_BATCH or size > MAX_BYTES:", "if count == MAX_BATCH:",
     BULK + "a_step_ends_when_it_is_longer_than_a_mebibyte"),
    ("jids of many puts are mixed up with klasses", '.jobs[::3]\n        else', '.jobs[1::3]\n        else',
     BULK + "answers_are_noted_in_the_order_of_the_items"),
    ("options are not checked where there are no items", 'like = make_put(settings, queue, "any", NOTHING, trial, is_trial=True)',
     'like = make_put(settings, queue, "any", NOTHING, {}, is_trial=True)',
     BULK + "options_are_checked_even_when_there_are_no_items"),
)]  # fmt: skip

INDEX = "lua/test_index_story.py::test_"
MISTAKES_IN_LUA = [FileMistake(name, "lua", right, wrong, test) for name, right, wrong, test in (
    ("a preempted job has to queue again", "  if r.ended >= START then r.ended = r.ended - START end\n", "",
     "lua/test_release_story.py::test_a_preempted_job_goes_before_older_ones_of_the_class_to_which_it_fell"),
    ("a resumed template makes up what it missed",
     "    when = when + over * t.interval\n", "",
     "lua/test_recurring_pause_story.py::test_a_paused_template_puts_nothing_and_leaves_out_what_it_missed"),
    ("a call that comes after the question about it takes jobs", 'if line == "" or (got == 0 and want > 0) then', 'if line == "" or got == 0 then',
     "lua/test_replay_story.py::test_a_call_that_comes_after_the_question_about_it_takes_nothing"),
    ("a message takes the place of one with its id", "  if M.place(topic, id) then return false end\n", "",
     TOPIC + "an_id_that_is_queued_or_reserved_is_not_put_again"),
    ("what is reserved stays queued", 'call("ZADD", topic.reserved, deadline, id)\n  call("ZREM", topic.queued, id)', 'call("ZADD", topic.reserved, deadline, id)',
     TOPIC + "a_topic_is_listed_with_its_counts_while_it_holds_messages"),
    ("who comes too late ends another reservation", "if ends and (not deadline or deadline == ends) then return ends end", "if ends then return ends end",
     TOPIC + "who_comes_too_late_ends_nobody_elses_reservation"),
    ("what is reserved may be ready at another time", '  if not call("ZSCORE", topic.queued, id) then return false end\n  call("ZADD", topic.queued, ready, id)',
     '  call("ZADD", topic.queued, ready, id)', TOPIC + "a_queued_message_may_be_ready_at_another_time"),
    ("a topic without messages stays listed", "if topic.size > 0 then return end", "if topic.size >= 0 then return end",
     TOPIC + "a_topic_is_listed_with_its_counts_while_it_holds_messages"),
    ("one loss fewer is allowed", "if r.losses <= most then return nil end", "if r.losses < most then return nil end",
     BUDGET + "the_lower_of_the_job_s_and_the_queue_s_bound_holds"),
    ("the queue's bound on losses is overlooked", "return of_queue and of_queue < own and of_queue or own", "return own",
     BUDGET + "the_lower_of_the_job_s_and_the_queue_s_bound_holds"),
    ("a lease that ended is called a crash", '(what == history.LOST and "-Lost" or "-Crashed")', '"-Crashed"',
     BUDGET + "leases_that_end_without_a_word_are_losses"),
    ("a jid named twice ends twice", "local bytes = settled[jid] or found[i]", "local bytes = found[i]",
     ENDING + "a_jid_twice_in_a_batch_is_done_only_if_one_token_was_right"),
    ("a completion sent again is refused", '  if r and r.state == state.COMPLETE and r.token == token and r.worker == worker then return "again" end\n', "",
     ENDING + "completing_again_is_again_and_a_stranger_is_refused"),
    ("what is scheduled does not count", 'return most - call("ZCARD", queue.waiting) - call("ZCARD", queue.scheduled)', 'return most - call("ZCARD", queue.waiting)',
     ALLOWANCE + "whatever_does_not_run_yet_counts"),
    ("a class job may be lost once less", "local too_often = most and r.losses > most", "local too_often = most and r.losses >= most",
     ALLOWANCE + "a_job_that_kills_its_workers_is_stopped_sooner_than_its_retries_say"),
    ("a history keeps one line more", "while from > 2 and #lines - from + 2 < most do", "while from > 2 and #lines - from + 2 <= most do",
     HISTORY + "the_first_line_and_the_newest_stay"),
    ("a page leaves one out", "if not down and rank + there > first then first = rank + there end", "if not down and rank + there > first then first = rank + there + 1 end",
     LISTING + "a_set_is_read_in_its_order_whatever_the_page"),
    ("a name that begins another comes behind it", "  return #a > #b\n", "  return #a < #b\n",
     LISTING + "a_name_that_begins_another_comes_before_it"),
    ("a changed priority sends a job to the end of its class", "  if sequence >= START then sequence = sequence - START end\n", "",
     ORDER + "a_changed_priority_puts_a_waiting_job_ahead_of_its_class"),
    ("a backoff grows beyond its cap", "math.min(pause, most)", "pause",
     BACKOFF + "an_exponential_backoff_doubles_up_to_its_cap"),
    ("jitter is the same for all jobs", "pause * (1 + spread(jid, try) * jitter / 100)", "pause * (1 - jitter / 100)",
     BACKOFF + "jitter_spreads_jobs_within_its_share_and_never_above_the_cap"),
    ("a worker that reports is quiet no more", "    if quiet then facts[#facts + 1], facts[#facts + 2] = QUIET, quiet end\n", "",
     WORKER + "a_worker_that_is_told_to_be_quiet_learns_it_with_its_next_sign_of_life"),
    ("a queue that a cancel empties stays in the index", "if ctx.index and not running then ctx.index.left(ctx, queue) end", "",
     INDEX + "a_queue_is_left_out_when_its_last_job_leaves_without_a_pop"),
    ("a queue that a move empties stays in the index", "if ctx.index and from.name ~= name then ctx.index.left(ctx, from) end", "",
     INDEX + "a_queue_is_left_out_when_its_last_job_leaves_without_a_pop"),
    ("a queue that leaves the index forgets what is due", '    run(ctx, "ZADD", ctx.keys.timer, "LT", due, queue.name)\n', "",
     INDEX + "what_is_due_in_a_queue_that_was_paused_is_found_when_its_last_job_has_left"),
)]  # fmt: skip

MISTAKES_IN_FILES = [*MISTAKES_IN_PYTHON, *MISTAKES_IN_LUA]
