-- Decides about requests of one account: by what all gateways have spent and hold of its budgets,
-- and by its tokens of the last minute.
-- KEYS: for each task, a hash for each budget; then for each token limit a list of admissions, and
-- a hash of their tokens, with their sum under '*'.
-- A budget's hash has one row for each gateway: the name of the period, the amounts spent and held
-- in it, when the hold expires, when the row was created, and how often it was written. By the last
-- two its gateway notices that the store has lost the row or has an old one.
-- ARGV[1]: JSON with `gateway`, `window` and `lease` in milliseconds, and `tasks`. A task has:
--   `token`: the name of its admission; `tokens`: how many it counts
--   `offers`, best first: pairs of the amount that must be free, and of the amount to hold
--   `budgets`: `period` and `amount`; `spent`, `held` and `writes` as the gateway knows its row
--   `limits`: the limits of tokens per minute
-- A task without offers corrects the tokens of its admission. An amount is a pair of whole units
-- and pico-units, which doubles count exactly.
local UNIT = 1000000000000
local DAY_MS = 86400000
local input = cjson.decode(ARGV[1])
local clock = redis.call('TIME')
local time = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function plus(a, b)
  local picos = a[2] + b[2]
  local carry = math.floor(picos / UNIT)
  return {a[1] + b[1] + carry, picos - carry * UNIT}
end
local function exceeds(a, b) return a[1] > b[1] or (a[1] == b[1] and a[2] > b[2]) end
local function whole(number) return string.format('%.0f', number) end

-- This gateway's rows by their keys. `allSpent` and `allHeld` are the sums of all gateways.
local rows = {}

local function rowOf(key, budget)
  if rows[key] then return rows[key] end
  local row = {
    period = budget.period, spent = budget.spent, held = budget.held,
    created = time, writes = 1,
    allSpent = budget.spent, allHeld = budget.held
  }
  local all = redis.call('HGETALL', key)
  for n = 1, #all, 2 do
    local period, spentUnits, spentPicos, heldUnits, heldPicos, expires, created, writes =
      string.match(all[n + 1], '^(.-) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
    if not period then -- another program has written it: ignore it
    elseif all[n] == input.gateway then
      row.created, row.writes = tonumber(created), tonumber(writes) + 1
      -- An old row counts as a lost one. The new time of creation is stored, so the gateway notices
      -- it even if this answer does not arrive.
      if row.writes <= budget.writes then row.created = time end
    else
      if period >= budget.period then
        row.allSpent = plus(row.allSpent, {tonumber(spentUnits), tonumber(spentPicos)})
      elseif tonumber(expires) + DAY_MS < time then
        -- A row of an earlier period counts nothing, and its gateway has been gone for a day.
        redis.call('HDEL', key, all[n])
      end
      if tonumber(expires) > time then -- an expired hold counts nothing
        row.allHeld = plus(row.allHeld, {tonumber(heldUnits), tonumber(heldPicos)})
      end
    end
  end
  rows[key] = row
  return row
end

-- Milliseconds until an admission no longer counts. Both times are whole milliseconds, rounded down:
-- without one more, a window could be up to a millisecond too short. No client is told to wait
-- longer than a window.
local function msUntilExpired(admitted, now)
  return math.min(input.window, admitted + input.window - now + 1)
end

-- Opens the window of a token limit, and drops the admissions that are older than a minute.
local function windowOf(list, hash, limit)
  -- A rejection and a correction may write nothing else. A server that takes no writes must not
  -- seem to recover at each of them.
  redis.call('RPUSH', list, '')
  redis.call('RPOP', list)
  local newest = redis.call('LINDEX', list, -1)
  -- Without the list, which the server may have evicted, nothing would ever leave the sum.
  if not newest then redis.call('DEL', hash) end
  -- If the server's clock was set back, the time of the newest admission is now, and both keys
  -- expire after one window at most.
  local now = time
  if newest then now = math.max(now, tonumber(string.match(newest, '^%d+'))) end
  for _, key in ipairs({list, hash}) do
    if redis.call('PTTL', key) > input.window then redis.call('PEXPIRE', key, input.window) end
  end
  local oldest = redis.call('LINDEX', list, 0)
  while oldest do
    local admitted, name = string.match(oldest, '^(%d+) (.*)$')
    if msUntilExpired(tonumber(admitted), now) > 0 then break end
    redis.call('LPOP', list)
    -- Redis rejects the number -0, which -tonumber('0') would be.
    redis.call('HINCRBY', hash, '*', 0 - tonumber(redis.call('HGET', hash, name) or 0))
    redis.call('HDEL', hash, name)
    oldest = redis.call('LINDEX', list, 0)
  end
  return {list = list, hash = hash, limit = limit, now = now}
end

local function count(window) return tonumber(redis.call('HGET', window.hash, '*') or 0) end

-- Milliseconds until a window has room for the tokens. 0: it has room now.
local function msUntilRoom(window, tokens)
  local left = count(window)
  if left + tokens <= window.limit then return 0 end
  if tokens > window.limit then return input.window end
  local from = 0
  repeat -- in steps of 100: a list may be long, and only its beginning matters
    local entries, names = redis.call('LRANGE', window.list, from, from + 99), {}
    for n, entry in ipairs(entries) do names[n] = string.match(entry, '^%d+ (.*)$') end
    local counts = #names > 0 and redis.call('HMGET', window.hash, unpack(names))
    for n, entry in ipairs(entries) do
      left = left - tonumber(counts[n] or 0)
      local admitted = tonumber(string.match(entry, '^%d+'))
      if left + tokens <= window.limit then return msUntilExpired(admitted, window.now) end
    end
    from = from + 100
  until #entries == 0
  return input.window
end

-- The number of the first budget without room for an offer. 0: all have room, or it costs nothing.
local function budgetWithoutRoom(task, free, cost)
  if cost[1] == 0 and cost[2] == 0 then return 0 end
  for n, budget in ipairs(task.budgets) do
    local row = budget.row
    if exceeds(plus(plus(row.allSpent, row.allHeld), free), budget.amount) then return n end
  end
  return 0
end

-- Holds the first offer that fits. Returns its number, the number of a budget without room, and the
-- milliseconds until the token limits have room. Each is 0 if it does not apply.
local function reserve(task)
  local granted, exceeded, reset = 0, 0, 0
  for n, offer in ipairs(task.offers) do
    granted, exceeded = n, budgetWithoutRoom(task, offer[1], offer[2])
    if exceeded == 0 then break end
  end
  for _, window in ipairs(task.windows) do
    reset = math.max(reset, msUntilRoom(window, task.tokens))
  end
  if exceeded > 0 or reset > 0 then return {0, exceeded, reset} end
  local cost = task.offers[granted][2]
  for _, budget in ipairs(task.budgets) do
    local row = budget.row
    row.held, row.allHeld = plus(row.held, cost), plus(row.allHeld, cost)
  end
  for _, window in ipairs(task.windows) do
    redis.call('RPUSH', window.list, whole(window.now) .. ' ' .. task.token)
    redis.call('HSET', window.hash, task.token, task.tokens)
    redis.call('HINCRBY', window.hash, '*', task.tokens)
    redis.call('PEXPIRE', window.list, input.window)
    redis.call('PEXPIRE', window.hash, input.window)
  end
  return {granted, 0, 0}
end

-- Replaces the tokens of an admission that still counts.
local function correct(task)
  for _, window in ipairs(task.windows) do
    local before = redis.call('HGET', window.hash, task.token)
    if before then
      redis.call('HSET', window.hash, task.token, task.tokens)
      redis.call('HINCRBY', window.hash, '*', task.tokens - tonumber(before))
    end
  end
  return {0, 0, 0}
end

-- `keys`: how many of KEYS are used so far.
local results, keys = {}, 0
for i, task in ipairs(input.tasks) do
  for n, budget in ipairs(task.budgets) do budget.row = rowOf(KEYS[keys + n], budget) end
  keys = keys + #task.budgets
  task.windows = {}
  for n, limit in ipairs(task.limits) do
    task.windows[n] = windowOf(KEYS[keys + 2 * n - 1], KEYS[keys + 2 * n], limit)
  end
  keys = keys + 2 * #task.limits
  local result = #task.offers > 0 and reserve(task) or correct(task)
  result[4], result[5] = {}, {}
  for n, budget in ipairs(task.budgets) do
    local row = budget.row
    result[4][n] = {row.created, row.writes, row.allSpent, row.allHeld}
  end
  for n, window in ipairs(task.windows) do
    local oldest = redis.call('LINDEX', window.list, 0)
    local admitted = oldest and tonumber(string.match(oldest, '^%d+'))
    local renews = admitted and msUntilExpired(admitted, window.now) or 0
    result[5][n] = {count(window), renews}
  end
  results[i] = result
end
for key, row in pairs(rows) do
  local figures = {
    row.spent[1], row.spent[2], row.held[1], row.held[2], time + input.lease,
    row.created, row.writes
  }
  for n, figure in ipairs(figures) do figures[n] = whole(figure) end
  redis.call('HSET', key, input.gateway, row.period .. ' ' .. table.concat(figures, ' '))
end
return results
