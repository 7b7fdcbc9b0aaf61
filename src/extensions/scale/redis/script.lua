-- Admits a request to sliding windows, or removes an earlier admission from them.
-- KEYS: one list for each window, of the times of its admissions in milliseconds, with three
-- decimals, oldest first. In whole milliseconds a window would be up to one too short.
-- ARGV[1]: the length of a window in milliseconds.
-- ARGV[2]: 0 to admit a request, or the time of the admission to remove. A removal returns nothing.
-- ARGV[3], ARGV[4], ...: the limit of each window, in the order of KEYS.
-- Returns 1 if all windows had room and now hold the admission, else 0; the time of the admission;
-- and for each window its count and the milliseconds until it next has room.
local window_ms, refunded_at = tonumber(ARGV[1]), ARGV[2]
local function limit_of(i) return tonumber(ARGV[i + 2]) end

if refunded_at ~= '0' then
  for _, key in ipairs(KEYS) do redis.call('LREM', key, -1, refunded_at) end
  return
end

local seconds, microseconds = unpack(redis.call('TIME'))
local now = seconds * 1000 + microseconds / 1000
local admitted = 1
for i, key in ipairs(KEYS) do
  -- If the server's clock was set back, `now` stays at the newest admission until the clock reaches
  -- it. Expiries are stored as times of day, so a key would live too long: shorten it.
  now = math.max(now, tonumber(redis.call('LINDEX', key, -1) or 0))
  if redis.call('PTTL', key) > window_ms then redis.call('PEXPIRE', key, window_ms) end
  while tonumber(redis.call('LINDEX', key, 0) or now) + window_ms <= now do
    redis.call('LPOP', key)
  end
  if redis.call('LLEN', key) >= limit_of(i) then admitted = 0 end
end

local time, figures = string.format('%.3f', now), {}
for i, key in ipairs(KEYS) do
  -- A rejection writes, too: a server that takes no writes then fails for every request, and does
  -- not seem to recover at each rejection.
  redis.call('RPUSH', key, time)
  if admitted == 1 then redis.call('PEXPIRE', key, window_ms) else redis.call('RPOP', key) end
  local count = redis.call('LLEN', key)
  -- A full window next has room when only `limit - 1` admissions are left.
  local expiring = redis.call('LINDEX', key, math.max(0, count - limit_of(i))) or now
  figures[i] = {count, math.ceil(expiring + window_ms - now)}
end
return {admitted, time, figures}
