-- KEYS are windows, lists of admission times in milliseconds; ARGV is how long a window is, a time or
-- 0, and of each window its limit. A time: one admission of that time counts no longer. 0: answers
-- with whether all have room, the time of the admission, and of each window its count and in how
-- many milliseconds it next gets room.
if ARGV[2] ~= '0' then
  for _, key in ipairs(KEYS) do redis.call('LREM', key, -1, ARGV[2]) end
  return
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local length, admitted, figures = tonumber(ARGV[1]), 1, {}
for i, key in ipairs(KEYS) do
  -- A server's clock may be set back, and then so is when a key expires.
  now = math.max(now, tonumber(redis.call('LINDEX', key, -1) or 0))
  while tonumber(redis.call('LINDEX', key, 0) or now) + length <= now do
    redis.call('LPOP', key)
  end
  if redis.call('PTTL', key) > length then redis.call('PEXPIRE', key, length) end
  if redis.call('LLEN', key) >= tonumber(ARGV[i + 2]) then admitted = 0 end
end
for i, key in ipairs(KEYS) do
  if admitted == 1 then
    redis.call('RPUSH', key, now)
    redis.call('PEXPIRE', key, length)
  end
  local count = redis.call('LLEN', key)
  local first = redis.call('LINDEX', key, math.max(0, count - ARGV[i + 2])) or now
  figures[i] = {count, first + length - now}
end
return {admitted, now, figures}
