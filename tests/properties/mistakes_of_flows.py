"""Seeded mistakes in flows, which the model of flows has to find: see `test_flow_model.py`."""

from mistakes import Mistake

MISTAKES_OF_FLOWS = [
    Mistake("a parent that has ended is still counted as open", 'call("HDEL", key, field)\n    call("HINCRBY", key, "n", -1)', 'call("HDEL", key, field)'),
    Mistake("a member is counted twice", 'group[count] = call("HINCRBY", key, count, 1)', 'group[count] = call("HINCRBY", key, count, 2)'),
    Mistake("a rescue is released when its job is complete", "if edge and edge.policy == dependency.RESCUE and not ended.group and not ended.is_kept then", "if false then"),
    Mistake("a retry makes a job ready whose parents are open", "    if dependency.is_open(r) then\n      dependency.hold_back", "    if false then\n      dependency.hold_back"),
    Mistake("a cancelled job does not fail what needs it", "  local find = r.state == state.COMPLETE", "  if ended.is_cancelled then return end\n  local find = r.state == state.COMPLETE"),
    Mistake("the outcome of a cancelled job is no failure", 'if ended.group then\n    return format(\'{"ok":false', 'if ended.group and not ended.is_cancelled then\n    return format(\'{"ok":false'),
    Mistake("a group ends before it is closed", "  if group.is_open then return false end\n", ""),
    Mistake("what is behind a skipped job is not skipped", "      M.skip(ctx, one.jid, one.why)\n", "      local _\n"),
    Mistake("a failure for a parent fails nothing else", 'failure.add(ctx, queue, jid, r, history.FAILED, group, message, "")\n  announce(ctx, jid, r, { group = group, message = message })', 'failure.add(ctx, queue, jid, r, history.FAILED, group, message, "")'),
    Mistake("a member that is retried still counts as failed", 'call("HINCRBY", key, "failed", -1)', "local _"),
    Mistake("a completed member that is put again counts again", "    r.flags = record.without(r.flags, record.FLAG.FLOW)", "    local _"),
    Mistake("results stand in the order in which they came", "  table.sort(list, function(one, other) return one.from < other.from end)\n", ""),
    Mistake("a released job stays among the failed ones", "  if r.state == state.FAILED then\n    failure.remove(ctx, jid, r)\n    failure.clear(ctx, jid, r)\n  elseif r.state ~= state.DEPENDS", "  if r.state ~= state.DEPENDS and r.state ~= state.FAILED"),
    Mistake("a cancel does not see what another one changed", "    if r and MAY_CHANGE[r.state] then r = open(ctx, jid) end\n", ""),
    Mistake("jobs that were added before are counted again", "members.add(ctx, flow, #new / group.stride, is_repeat, adder)", "members.add(ctx, flow, #jobs / group.stride, is_repeat, adder)"),
    Mistake("a member is counted by its first job", "for i = group.stride, #new, group.stride do", "for i = 1, #new, group.stride do"),
    Mistake("a job that ends with several has one result", "policy = dependency.FAIL, from = i - 1, length = 0", "policy = dependency.FAIL, from = 0, length = 0"),
    Mistake("what is closed by a retry is not written", "      if closed then job.write(ctx, jid, closed) end\n", ""),
    Mistake("a batch does not see what else it ended", "local group = members.read(ctx, flow) -- others of this call may have ended off the straight way", "local group = counting[flow]"),
    Mistake("a group that has to wait is failed", "local is_decided = ended.is_cancelled or group.policy == dependency.FAIL", "local is_decided = true"),
]  # fmt: skip
