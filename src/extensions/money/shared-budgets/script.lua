-- What gateways have spent and hold of the budgets of one account, and the tokens of its last
-- minute. Of each limit of each task KEYS are a hash with a row for each gateway, a list of
-- admissions, and a hash of their tokens with their sum under '*'. A row has the name of the
-- period, what is spent in it, what is held and until when.
-- ARGV[1] is JSON: `gateway`, `window` and `lease` in milliseconds, and `tasks`. Each has a `token`
-- that names its admission, `tokens`, `offers`, best first: what must be free, and what is held
-- then, and `limits`: `most` (its tokens; absent: any number) and, if it is a budget, `period`,
-- `amount`, and `spent` and `held` as the gateway knows them. A task without offers corrects the
-- tokens of its admission.
-- Amounts are whole units and pico-units: doubles count both exactly.
local UNIT = 1000000000000
local ask = cjson.decode(ARGV[1])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 2, #KEYS, 3 do -- a server's clock may be set back
  local newest = redis.call('LINDEX', KEYS[i], -1)
  if newest then now = math.max(now, tonumber(string.match(newest, '^%d+'))) end
end

local function plus(a, b)
  local picos = a[2] + b[2]
  local carry = math.floor(picos / UNIT)
  return {a[1] + b[1] + carry, picos - carry * UNIT}
end
local function exceeds(a, b) return a[1] > b[1] or (a[1] == b[1] and a[2] > b[2]) end
local function whole(number) return string.format('%.0f', number) end

-- The rows of this gateway by their keys, each with what all gateways have spent and hold.
local own = {}

local function rowOf(limit)
  local row = own[limit.budget]
  if row then return row end
  row = {
    period = limit.period, spent = limit.spent, held = limit.held,
    wasThere = redis.call('HEXISTS', limit.budget, ask.gateway),
    allSpent = limit.spent, allHeld = limit.held
  }
  local all = redis.call('HGETALL', limit.budget)
  for n = 1, #all, 2 do
    local period, a, b, c, d, ends =
      string.match(all[n + 1], '^(.-) (%d+) (%d+) (%d+) (%d+) (%d+)$')
    if all[n] ~= ask.gateway and period >= limit.period then -- else its period is over
      row.allSpent = plus(row.allSpent, {tonumber(a), tonumber(b)})
    end
    if all[n] ~= ask.gateway and tonumber(ends) > now then -- else it has died
      row.allHeld = plus(row.allHeld, {tonumber(c), tonumber(d)})
    end
  end
  own[limit.budget] = row
  return row
end

-- Forgets admissions of more than a minute ago, and counts the others.
local function prune(limit)
  local oldest = redis.call('LINDEX', limit.list, 0)
  while oldest do
    local admitted, name = string.match(oldest, '^(%d+) (.*)$')
    if tonumber(admitted) + ask.window > now then break end
    redis.call('LPOP', limit.list)
    redis.call('HINCRBY', limit.hash, '*', -tonumber(redis.call('HGET', limit.hash, name) or 0))
    redis.call('HDEL', limit.hash, name)
    oldest = redis.call('LINDEX', limit.list, 0)
  end
  limit.count = tonumber(redis.call('HGET', limit.hash, '*') or 0)
end

-- Milliseconds until there is room for the tokens; 0: there is.
local function roomIn(limit, tokens)
  local left = limit.count
  if not limit.most or left + tokens <= limit.most then return 0 end
  for _, entry in ipairs(redis.call('LRANGE', limit.list, 0, -1)) do
    local admitted, name = string.match(entry, '^(%d+) (.*)$')
    left = left - tonumber(redis.call('HGET', limit.hash, name) or 0)
    if left + tokens <= limit.most then return tonumber(admitted) + ask.window - now end
  end
  return ask.window
end

-- The first budget that has no room for an offer; 0: all have. What costs nothing needs no budget.
local function shortOf(task, free, cost)
  if cost[1] == 0 and cost[2] == 0 then return 0 end
  for at, limit in ipairs(task.limits) do
    local row = limit.row
    local isShort = row and exceeds(plus(plus(row.allSpent, row.allHeld), free), limit.amount)
    if isShort then return at end
  end
  return 0
end

local function admit(limit, task, cost)
  local row = limit.row
  if row then row.held, row.allHeld = plus(row.held, cost), plus(row.allHeld, cost) end
  if not limit.most then return end
  redis.call('RPUSH', limit.list, whole(now) .. ' ' .. task.token)
  redis.call('HSET', limit.hash, task.token, task.tokens)
  limit.count = redis.call('HINCRBY', limit.hash, '*', task.tokens)
  redis.call('PEXPIRE', limit.list, ask.window) redis.call('PEXPIRE', limit.hash, ask.window)
end

-- The number of the offer that is held, that of the budget that has no room, and the milliseconds
-- until there is room for the tokens; each 0 if there is none.
local function reserve(task)
  local granted, short, reset = 0, 0, 0
  for number, offer in ipairs(task.offers) do
    granted, short = number, shortOf(task, offer[1], offer[2])
    if short == 0 then break end
  end
  for _, limit in ipairs(task.limits) do reset = math.max(reset, roomIn(limit, task.tokens)) end
  if short > 0 or reset > 0 then return {0, short, reset} end
  for _, limit in ipairs(task.limits) do admit(limit, task, task.offers[granted][2]) end
  return {granted, 0, 0}
end

local function correct(task)
  for _, limit in ipairs(task.limits) do
    local before = limit.most and redis.call('HGET', limit.hash, task.token)
    if before then
      redis.call('HSET', limit.hash, task.token, task.tokens)
      limit.count = redis.call('HINCRBY', limit.hash, '*', task.tokens - tonumber(before))
    end
  end
  return {0, 0, 0}
end

local function stateOf(limit)
  local oldest = limit.most and redis.call('LINDEX', limit.list, 0)
  local renews = oldest and tonumber(string.match(oldest, '^%d+')) + ask.window - now or 0
  local row = limit.row or {wasThere = 0, allSpent = {0, 0}, allHeld = {0, 0}}
  local spent, held = row.allSpent, row.allHeld
  return {row.wasThere, spent[1], spent[2], held[1], held[2], limit.count, renews}
end

local results, at = {}, 0
for i, task in ipairs(ask.tasks) do
  for _, limit in ipairs(task.limits) do
    limit.budget, limit.list, limit.hash = KEYS[at + 1], KEYS[at + 2], KEYS[at + 3]
    at, limit.count, limit.row = at + 3, 0, limit.period and rowOf(limit)
    if limit.most then prune(limit) end
  end
  results[i] = #task.offers > 0 and reserve(task) or correct(task)
  results[i][4] = {}
  for n, limit in ipairs(task.limits) do results[i][4][n] = stateOf(limit) end
end
for key, row in pairs(own) do
  local figures = {row.spent[1], row.spent[2], row.held[1], row.held[2], now + ask.lease}
  for n, figure in ipairs(figures) do figures[n] = whole(figure) end
  redis.call('HSET', key, ask.gateway, row.period .. ' ' .. table.concat(figures, ' '))
end
return results
