-- What gateways have spent and hold of the budgets of one account, and the tokens of its last
-- minute. KEYS are, of each task, a hash for each budget, with a row for each gateway; then for
-- each limit of tokens a list of admissions, and a hash of their tokens with their sum under '*'. A
-- row has the name of the period, what is spent in it, what is held and until when; and when it was
-- made and how often it was written, by which its gateway sees that the store has lost or old rows.
-- ARGV[1] is JSON: `gateway`, `window` and `lease` in milliseconds, and `tasks`. Each has a `token`
-- that names its admission, `tokens`, `offers`, best first: what must be free, and what is held
-- then; `budgets`: `period`, `amount`, `spent` and `held` as the gateway knows them, and `writes`:
-- how often it knows its row to have been written; `limits` of tokens. A task without offers
-- corrects the tokens of its admission. Amounts are whole units and pico-units: doubles count both
-- exactly.
local UNIT = 1000000000000
local ask = cjson.decode(ARGV[1])
local clock = redis.call('TIME')
local time = clock[1] * 1000 + math.floor(clock[2] / 1000)
local function plus(a, b)
  local picos = a[2] + b[2]
  local carry = math.floor(picos / UNIT)
  return {a[1] + b[1] + carry, picos - carry * UNIT}
end
local function exceeds(a, b) return a[1] > b[1] or (a[1] == b[1] and a[2] > b[2]) end
local function whole(number) return string.format('%.0f', number) end

-- The rows of this gateway by their keys, each with what all gateways have spent and hold.
local rows = {}

local function rowOf(key, budget)
  if rows[key] then return rows[key] end
  local row = {
    period = budget.period, spent = budget.spent, held = budget.held,
    born = time, writes = 1,
    allSpent = budget.spent, allHeld = budget.held
  }
  local all = redis.call('HGETALL', key)
  for n = 1, #all, 2 do
    local period, a, b, c, d, ends, born, writes =
      string.match(all[n + 1], '^(.-) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
    if not period then -- what another program has put there is no row
    elseif all[n] == ask.gateway then
      row.born, row.writes = tonumber(born), tonumber(writes) + 1
      -- An old row is as good as none. It keeps its new birth, so the gateway learns of it even if
      -- this answer comes too late.
      if row.writes <= budget.writes then row.born = time end
    else
      if period >= budget.period then -- else its period is over
        row.allSpent = plus(row.allSpent, {tonumber(a), tonumber(b)})
      end
      if tonumber(ends) > time then -- else it has died
        row.allHeld = plus(row.allHeld, {tonumber(c), tonumber(d)})
      end
    end
  end
  rows[key] = row
  return row
end

-- The admissions that still count.
local function windowOf(list, hash, limit)
  local newest = redis.call('LINDEX', list, -1)
  -- A server's clock may be set back. Then nothing counts for longer than a window either.
  local now = time
  if newest then now = math.max(now, tonumber(string.match(newest, '^%d+'))) end
  for _, key in ipairs({list, hash}) do
    if redis.call('PTTL', key) > ask.window then redis.call('PEXPIRE', key, ask.window) end
  end
  local oldest = redis.call('LINDEX', list, 0)
  while oldest do
    local admitted, name = string.match(oldest, '^(%d+) (.*)$')
    if tonumber(admitted) + ask.window > now then break end
    redis.call('LPOP', list)
    redis.call('HINCRBY', hash, '*', -tonumber(redis.call('HGET', hash, name) or 0))
    redis.call('HDEL', hash, name)
    oldest = redis.call('LINDEX', list, 0)
  end
  return {list = list, hash = hash, limit = limit, now = now}
end

local function count(window) return tonumber(redis.call('HGET', window.hash, '*') or 0) end

-- Milliseconds until there is room for the tokens; 0: there is.
local function roomIn(window, tokens)
  local left = count(window)
  if left + tokens <= window.limit then return 0 end
  if tokens > window.limit then return ask.window end
  local from = 0
  repeat -- a list may be long, and only its beginning counts
    local entries, names = redis.call('LRANGE', window.list, from, from + 99), {}
    for n, entry in ipairs(entries) do names[n] = string.match(entry, '^%d+ (.*)$') end
    local counts = #names > 0 and redis.call('HMGET', window.hash, unpack(names))
    for n, entry in ipairs(entries) do
      left = left - tonumber(counts[n] or 0)
      local admitted = tonumber(string.match(entry, '^%d+'))
      if left + tokens <= window.limit then return admitted + ask.window - window.now end
    end
    from = from + 100
  until #entries == 0
  return ask.window
end

-- The first budget that has no room for an offer; 0: all have. What costs nothing needs no budget.
local function shortOf(task, free, cost)
  if cost[1] == 0 and cost[2] == 0 then return 0 end
  for n, budget in ipairs(task.budgets) do
    local row = budget.row
    if exceeds(plus(plus(row.allSpent, row.allHeld), free), budget.amount) then return n end
  end
  return 0
end

-- The number of the offer that is held, that of the budget that has no room, and the milliseconds
-- until there is room for the tokens; each 0 if there is none.
local function reserve(task)
  local granted, short, reset = 0, 0, 0
  for n, offer in ipairs(task.offers) do
    granted, short = n, shortOf(task, offer[1], offer[2])
    if short == 0 then break end
  end
  for _, window in ipairs(task.windows) do reset = math.max(reset, roomIn(window, task.tokens)) end
  if short > 0 or reset > 0 then return {0, short, reset} end
  local cost = task.offers[granted][2]
  for _, budget in ipairs(task.budgets) do
    local row = budget.row
    row.held, row.allHeld = plus(row.held, cost), plus(row.allHeld, cost)
  end
  for _, window in ipairs(task.windows) do
    redis.call('RPUSH', window.list, whole(window.now) .. ' ' .. task.token)
    redis.call('HSET', window.hash, task.token, task.tokens)
    redis.call('HINCRBY', window.hash, '*', task.tokens)
    redis.call('PEXPIRE', window.list, ask.window)
    redis.call('PEXPIRE', window.hash, ask.window)
  end
  return {granted, 0, 0}
end

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

local results, at = {}, 0
for i, task in ipairs(ask.tasks) do
  local first = at + #task.budgets
  task.windows = {}
  for n, limit in ipairs(task.limits) do
    task.windows[n] = windowOf(KEYS[first + 2 * n - 1], KEYS[first + 2 * n], limit)
  end
  for n, budget in ipairs(task.budgets) do budget.row = rowOf(KEYS[at + n], budget) end
  at = first + 2 * #task.limits
  local result = #task.offers > 0 and reserve(task) or correct(task)
  result[4], result[5] = {}, {}
  for n, budget in ipairs(task.budgets) do
    local row = budget.row
    result[4][n] = {row.born, row.writes, row.allSpent, row.allHeld}
  end
  for n, window in ipairs(task.windows) do
    local oldest = redis.call('LINDEX', window.list, 0)
    local renews = oldest and tonumber(string.match(oldest, '^%d+')) + ask.window - window.now or 0
    result[5][n] = {count(window), renews}
  end
  results[i] = result
end
for key, row in pairs(rows) do
  local figures = {
    row.spent[1], row.spent[2], row.held[1], row.held[2], time + ask.lease, row.born, row.writes
  }
  for n, figure in ipairs(figures) do figures[n] = whole(figure) end
  redis.call('HSET', key, ask.gateway, row.period .. ' ' .. table.concat(figures, ' '))
end
return results
