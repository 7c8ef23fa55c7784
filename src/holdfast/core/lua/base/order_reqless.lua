-- order_reqless: the order of ready jobs where the caller passes the time: by priority, then by
-- the time a job became ready, then by the order in which jobs were made ready.
--
-- Score 0; the member begins with 22 bytes whose byte order is the order: 8 of
-- priority, 8 of eligibility time, 6 of sequence. The jid follows.
local M = {}

local FORM = ">I4I4I4I4I6"
local SIGN = 2147483648 -- 2^31
local ONES = 4294967295 -- 2^32 - 1
local URGENT = 1 / 0
local WIDTH = 22
M.START = 0 -- where sequences begin
-- The place of a job that is in no ready set.
M.NOWHERE = "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

-- The two halves of a double, turned so that they compare as unsigned numbers.
local function halves(x)
  if x == 0 then return SIGN, 0 end -- both zeros
  local high, low = unpack_bytes(">I4I4", pack(">d", x))
  if x > 0 then return high + SIGN, low end
  return ONES - high, ONES - low
end

local function bytes(priority, eligible, sequence)
  local a, b = halves(-priority)
  local c, d = halves(eligible)
  return pack(FORM, a, b, c, d, sequence)
end

function M.jid(member) return sub(member, WIDTH + 1) end

function M.member(r, jid) return r.place .. jid end

-- Where a job goes that is ready since `eligible`; the record remembers it.
-- Returns score and member, as the next two do.
function M.place(r, sequence, eligible, jid)
  r.place = bytes(r.priority, eligible, sequence)
  return 0, r.place .. jid
end

-- Ahead of its whole class.
function M.ahead(r, _, priority, jid)
  local sequence = unpack_bytes(">I6", r.place, 17)
  r.place = bytes(priority, 0, sequence)
  return 0, r.place .. jid
end

-- Ahead of every class.
function M.urgent(r, sequence, jid)
  r.place = bytes(URGENT, 0, sequence)
  return 0, r.place .. jid
end

-- What a running job remembers of its place: here the record keeps all of it.
function M.sequence() return 0 end

-- How failures are ranked: by call, for two of one moment have an order too.
function M.failure(ctx) return call("INCR", ctx.keys.failure_calls) end

M.STEP = 0

-- How a job is ranked among those pending: by time, then by jid.
function M.pending(ctx) return ctx.now end

return M
