-- What gateways have spent and hold of the budgets of one account, and the tokens of its last
-- minute. Of each limit KEYS are a hash with a row for each gateway, a list of admissions, and a
-- hash of their tokens with their sum under '*'. A row has the name of the period, what is spent in
-- it, what is held and until when. Amounts are whole units and pico-units: doubles count both
-- exactly.
-- ARGV: what to do, the gateway, the milliseconds of a window and of a hold, the admission's id,
-- its tokens, what was held and is spent; of each limit the name of its period (empty: no budget),
-- its amount, its tokens (empty: any number), and what the gateway knows to be spent and held; of
-- each offer, best first, what must be free and what is held then.
local UNIT, HEAD, STRIDE, OFFER = 1000000000000, 10, 8, 4
local task, gateway, window, lease = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local id, tokens = ARGV[5], tonumber(ARGV[6])
local first = {tonumber(ARGV[7]), tonumber(ARGV[8])}
local second = {tonumber(ARGV[9]), tonumber(ARGV[10])}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 2, #KEYS, 3 do -- a server's clock may be set back
  local newest = redis.call('LINDEX', KEYS[i], -1)
  if newest then now = math.max(now, tonumber(string.match(newest, '^%d+'))) end
end

local function normal(units, picos) -- never below zero
  local carry = math.floor(picos / UNIT)
  units, picos = units + carry, picos - carry * UNIT
  if units < 0 then return {0, 0} end
  return {units, picos}
end
local function plus(a, b) return normal(a[1] + b[1], a[2] + b[2]) end
local function minus(a, b) return normal(a[1] - b[1], a[2] - b[2]) end
local function exceeds(a, b) return a[1] > b[1] or (a[1] == b[1] and a[2] > b[2]) end
local function whole(number) return string.format('%.0f', number) end

local function read(text)
  local period, a, b, c, d, ends = string.match(text, '^(.-) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  local spent, held = {tonumber(a), tonumber(b)}, {tonumber(c), tonumber(d)}
  return {period = period, spent = spent, held = held, ends = tonumber(ends)}
end
local function write(key, row)
  local spent, held = row.spent, row.held
  local figures = {
    whole(spent[1]), whole(spent[2]), whole(held[1]), whole(held[2]), whole(now + lease)
  }
  redis.call('HSET', key, gateway, row.period .. ' ' .. table.concat(figures, ' '))
end

-- Each limit as it stands, and whether this gateway had a row in each budget.
local limits, known = {}, 1
for i = 1, #KEYS / 3 do
  local at = HEAD + (i - 1) * STRIDE
  local limit = {
    budget = KEYS[i * 3 - 2], list = KEYS[i * 3 - 1], hash = KEYS[i * 3],
    period = ARGV[at + 1], amount = {tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])},
    most = tonumber(ARGV[at + 4]), spent = {0, 0}, held = {0, 0}, count = 0
  }
  if limit.period ~= '' then
    if task == 'publish' then
      known = redis.call('HEXISTS', limit.budget, gateway) == 1 and known or 0
      local spent = {tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6])}
      local held = {tonumber(ARGV[at + 7]), tonumber(ARGV[at + 8])}
      write(limit.budget, {period = limit.period, spent = spent, held = held})
    end
    local rows = redis.call('HGETALL', limit.budget)
    for n = 1, #rows, 2 do
      local row = read(rows[n + 1])
      if row.period < limit.period then row.spent = {0, 0} end -- its period is over
      if rows[n] == gateway then limit.row = row
      elseif row.ends <= now then row.held = {0, 0} end -- it has died
      limit.spent, limit.held = plus(limit.spent, row.spent), plus(limit.held, row.held)
    end
    if not limit.row then known = 0 end
  end
  if limit.most then
    local oldest = redis.call('LINDEX', limit.list, 0)
    while oldest do
      local admitted, name = string.match(oldest, '^(%d+) (.*)$')
      if tonumber(admitted) + window > now then break end
      redis.call('LPOP', limit.list)
      redis.call('HINCRBY', limit.hash, '*', -tonumber(redis.call('HGET', limit.hash, name) or 0))
      redis.call('HDEL', limit.hash, name)
      oldest = redis.call('LINDEX', limit.list, 0)
    end
    limit.count = tonumber(redis.call('HGET', limit.hash, '*') or 0)
  end
  limits[i] = limit
end

-- Milliseconds until there is room for the tokens.
local function room(limit)
  local left = limit.count
  for _, entry in ipairs(redis.call('LRANGE', limit.list, 0, -1)) do
    local admitted, name = string.match(entry, '^(%d+) (.*)$')
    left = left - tonumber(redis.call('HGET', limit.hash, name) or 0)
    if left + tokens <= limit.most then return tonumber(admitted) + window - now end
  end
  return window
end

-- The first budget that has no room for an offer; 0: all have. What costs nothing needs no budget.
local function shortOf(offer)
  if offer.cost[1] == 0 and offer.cost[2] == 0 then return 0 end
  for i, limit in ipairs(limits) do
    local after = plus(plus(limit.spent, limit.held), offer.free)
    if limit.row and exceeds(after, limit.amount) then return i end
  end
  return 0
end

local refused, reset, granted = 0, 0, 0
if task == 'reserve' and known == 1 then
  local at, count = HEAD + #limits * STRIDE, 0
  repeat
    local free = {tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2])}
    first = {tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])}
    at, count = at + OFFER, count + 1
    refused = shortOf({free = free, cost = first})
  until refused == 0 or at >= #ARGV
  for _, limit in ipairs(limits) do
    local isFull = limit.most and limit.count + tokens > limit.most
    if isFull then reset = math.max(reset, room(limit)) end
  end
  if refused == 0 and reset == 0 then granted = count end
  for _, limit in ipairs(limits) do
    if refused > 0 or reset > 0 then break end
    if limit.row then
      limit.row.held, limit.held = plus(limit.row.held, first), plus(limit.held, first)
      limit.row.period = limit.row.period < limit.period and limit.period or limit.row.period
      write(limit.budget, limit.row)
    end
    if limit.most then
      redis.call('RPUSH', limit.list, whole(now) .. ' ' .. id)
      redis.call('HSET', limit.hash, id, tokens)
      limit.count = redis.call('HINCRBY', limit.hash, '*', tokens)
      redis.call('PEXPIRE', limit.list, window) redis.call('PEXPIRE', limit.hash, window)
    end
  end
elseif task == 'settle' then -- the first amount was held, the second one is spent
  for _, limit in ipairs(limits) do
    if limit.row then
      limit.row.held, limit.held = minus(limit.row.held, first), minus(limit.held, first)
      limit.row.spent, limit.spent = plus(limit.row.spent, second), plus(limit.spent, second)
      limit.row.period = limit.row.period < limit.period and limit.period or limit.row.period
      write(limit.budget, limit.row)
    end
    local before = limit.most and redis.call('HGET', limit.hash, id)
    if before then
      redis.call('HSET', limit.hash, id, tokens)
      redis.call('HINCRBY', limit.hash, '*', tokens - tonumber(before))
    end
  end
end

local figures = {}
for i, limit in ipairs(limits) do
  local oldest = limit.most and redis.call('LINDEX', limit.list, 0)
  local renews = oldest and tonumber(string.match(oldest, '^%d+')) + window - now or 0
  local spent, held = limit.spent, limit.held
  figures[i] = {
    whole(spent[1]), whole(spent[2]), whole(held[1]), whole(held[2]), limit.count, renews
  }
end
return {known, refused, reset, figures, granted}
