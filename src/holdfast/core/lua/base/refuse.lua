-- refuse: refusals. One comes before the first write.
local M = {}

-- Ends the whole call: the caller gets `HF_<code> <detail>`, and nothing changed.
function M.call(code, detail)
  error({ err = "HF_" .. code .. " " .. detail })
end

-- Ends the whole call for what refuses one job of it.
function M.for_all(text) error({ err = text }) end

-- Refuses one job of a batch; the text travels as a value of the reply.
function M.job(code, detail)
  return "HF_" .. code .. " " .. detail
end

return M
