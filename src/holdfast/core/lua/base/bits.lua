-- bits: flags in one number.
local M = {}

function M.has(flags, flag) return flags % (flag + flag) >= flag end

function M.with(flags, flag)
  if M.has(flags, flag) then return flags end
  return flags + flag
end

function M.without(flags, flag)
  if M.has(flags, flag) then return flags - flag end
  return flags
end

function M.set(flags, flag, on) return (on and M.with or M.without)(flags, flag) end

return M
