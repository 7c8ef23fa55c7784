-- earlier_data: the data with which earlier attempts of a job began, where they are kept.
--
-- Extra field `v`: a flat list of attempt and data, oldest first. A root keeps them if its
-- flag KEEPING is up (setting `keep-data`); then an attempt that changes its data pays.
local text = require("base.text")
local extra = require("nouns.job.extra")
local M = {}

local MOST, LONGEST = 20, 4096 -- attempts, bytes of data of each

-- The data of this attempt are going to be other ones: `was` is what it began with. Write
-- the record afterwards.
function M.keep(ctx, jid, r, was)
  local packed = extra.get(ctx, jid, r, "v")
  local kept = packed and mp_unpack(packed) or {}
  if kept[#kept - 1] == r.attempts then return end
  local first, found = #kept >= 2 * MOST and 3 or 1, {}
  for i = first, #kept do found[#found + 1] = kept[i] end
  found[#found + 1], found[#found + 2] = r.attempts, text.cut(was, LONGEST)
  extra.set(ctx, jid, r, "v", mp_pack(found))
end

return M
