-- text: what bytes must be to be shown to people, which is UTF-8.
local M = {}

local PRINTABLE = "^[\32-\126]+$"
local LONGEST_LINE = 4096 -- bytes; of a longer last line its end is taken

local function is_tail(c) return c ~= nil and c >= 128 and c <= 191 end

-- How many bytes follow the first byte `c` of a letter beyond ASCII, and between
-- what the next one lies: no control characters, surrogates and detours.
local function letter(c)
  if c < 194 or c > 244 then return nil end
  local count = c < 224 and 1 or c < 240 and 2 or 3
  local least = (c == 194 or c == 224) and 160 or c == 240 and 144 or 128
  return count, least, c == 237 and 159 or c == 244 and 143 or 191
end

local function are_letters(text)
  local i, last = 1, #text
  while i <= last do
    local c, second = byte(text, i, i + 1)
    local count = 0
    if c < 32 or c == 127 then return false end
    if c > 127 then
      local least, most
      count, least, most = letter(c)
      if not count or not second or second < least or second > most then return false end
      for k = i + 2, i + count do
        if not is_tail(byte(text, k)) then return false end
      end
    end
    i = i + count + 1
  end
  return true
end

local MOST = 1e300 -- as many seconds are finite in ms, too

-- The number a text stands for, nil if it is none or not a finite one.
function M.number(text)
  local value = tonumber(text or nil)
  if value and value < MOST and value > -MOST then return value end
end

-- Whether this is a number as the store writes the scores of its sets.
function M.is_score(text)
  return text and find(text, "^-?[%d.]+e?[-+]?%d*$") and M.number(text) and true or false
end

-- Whether this is UTF-8 without control characters, and not empty.
function M.is_clean(text) return find(text, PRINTABLE) or text ~= "" and are_letters(text) end

-- The first `most` bytes, less what would be half a letter.
function M.cut(text, most)
  if #text <= most then return text end
  while most > 0 and is_tail(byte(text, most + 1)) do most = most - 1 end
  return sub(text, 1, most)
end

-- The line behind the last frame of a traceback, nil for other texts. The pattern is anchored:
-- otherwise it would be tried at each byte of a text without frames, in quadratic time.
local function behind_frames(text)
  local _, stop = find(text, '^.*\n  File "')
  stop = stop and find(text, "\n", stop, true)
  while stop and sub(text, stop + 1, stop + 2) == "  " do stop = find(text, "\n", stop + 1, true) end
  if stop and stop < #text then return sub(text, stop + 1, (find(text, "\n", stop + 1, true) or #text + 1) - 1) end
end

-- The line that names the error, cut to `most` bytes: of a traceback that behind its last frame,
-- of another text the last one that is not empty.
function M.error_line(text, most)
  local line = behind_frames(text)
  if line then return M.cut(line, most) end
  local stop = #text
  while stop > 0 and byte(text, stop) <= 32 do stop = stop - 1 end
  local start, first = stop, stop > LONGEST_LINE and stop - LONGEST_LINE or 0
  while start > first and byte(text, start) ~= 10 do start = start - 1 end
  while start < stop and is_tail(byte(text, start + 1)) do start = start + 1 end
  return M.cut(sub(text, start + 1, stop), most)
end

return M
