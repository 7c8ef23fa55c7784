"""Seeded mistakes in what only some jobs use: tags, dependencies, options, recurring jobs, failures, follow-ups."""

from mistakes import Mistake

MISTAKES_OF_FEATURES = [
    Mistake("a dependent is released too early", "if (tonumber(found[2]) or 0) > 1 then", "if (tonumber(found[2]) or 0) > 2 then"),
    Mistake("a release forgets the delay", "      if due then\n        schedule(at, jid, r, due)", "      if false then\n        schedule(at, jid, r, due)"),
    Mistake("an earlier delay is remembered", "elseif r.state == state.DEPENDS then\n    call(\"HDEL\"", "elseif false then\n    call(\"HDEL\""),
    Mistake("a circle is not seen", "if leads_to(at, walk, jid, parents) then", "if false then"),
    Mistake("a cancel leaves jobs waiting", "if not given[child] and dependency.waits_for(at, child, jid) then", "if false then"),
    Mistake("new parents do not replace the old ones", "  drop(at, jid, r, gone, #kept)\n", ""),
    Mistake("a cancelled job stays in the lists of its parents", "  dependency.leave(at, jid, r, given)\n", ""),
    Mistake("a cancel leaves the index of tags", "  tag.forget(at, jid, r)\n", ""),
    Mistake("a purge leaves the index of tags", "  tag.forget_groups(at, groups)\n", ""),
    Mistake("replaced tags stay in the index", "  for _, tag in ipairs(M.of(at, jid, r)) do leave(at, jid, tag) end\n  for i", "  for i"),
    Mistake("a deadline is ignored", "return moment ~= nil and moment <= at.now", "return false"),
    Mistake("a deadline binds a job that has started", "  r.flags = record.without(r.flags, FLAG.EXPIRING)\n  return ends", "  return ends"),
    Mistake("a run may take longer than its limit", "return limit and r.popped + limit < ends and r.popped + limit or ends", "return ends"),
    Mistake("backoff does not grow", "local pause = first * 2 ^ doublings", "local pause = first"),
    Mistake("a template puts a job twice", '  call("ZADD", queue.recurring, when / at.bounds.unit, jid)\n', ""),
    Mistake("the backlog is off by one", "ceil(missed - t.backlog)", "ceil(missed - t.backlog - 1)"),
    Mistake("a new template begins to count anew", "old and old.count or 0, at.now", "0, at.now"),
    Mistake("a template takes over a job", 'if call("EXISTS", at.keys.job .. name) == 0 then return name end', "return name"),
    Mistake("a new interval does not count from the last occurrence", "when = when + changes.interval - t.interval", "when = at.now + changes.interval"),
    Mistake("unfail forgets the counter of the day", 'stats.uncount(queue, noted[3], "failed")', 'stats.uncount(queue, at.now, "failed")'),
    Mistake("unfail takes the newest", 'call("ZRANGE", at.keys.group .. group, 0, count - 1)', 'call("ZRANGE", at.keys.group .. group, 0, count - 1, "REV")'),
    Mistake("unfail does not renew the retries", "r.queue, r.remaining, r.losses = queue.name, r.retries, 0", "r.queue = queue.name"),
    Mistake("follow-ups take over jobs", 'put_one.run(at, to, "new", one.jid', 'put_one.run(at, to, "move", one.jid'),
    Mistake("a job does not wait for its follow-ups", "  ties.add(at, jid, r, how.parents, {})\n", ""),
    Mistake("a pause does not end", "flags = pausing.over(at, queue, flags)", "if flags % 2 == queues.PAUSED then return 0, queues.NEVER end"),
]  # fmt: skip
