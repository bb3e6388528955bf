package quota

// partsKey is the key of the tenants' leases, below prefix.
const partsKey = "tenants"

// partScript leases slots to tenants; see [cohort]. It is idempotent, because it sets the number of
// slots rather than adding to it.
//
// The hash has a field for each tenant and front door: the slots held, the slots wanted, the
// expiry by the clock of Redis, and the limits of the tenant. Beyond the nominal limit, a front
// door gets what it uses, and one more.
//
//	KEYS[1] cohort   ARGV[1] front door   ARGV[2] used   ARGV[3] wanted   ARGV[4] the sum of the nominal limits   ARGV[5] lifetime (ms)
//	ARGV[6] tenant   ARGV[7] nominal   ARGV[8] borrow   ARGV[9] weight   ARGV[10] 1 for bulk calls
const partScript = `
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local door, tenant = ARGV[1], ARGV[6]
local used, want, total, life = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local nominal, borrow, weight = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])
local me = tenant .. ' ' .. door
local all = redis.call('HGETALL', KEYS[1])
local others, doors, crowded, tenants = 0, 1, false, {}
for i = 1, #all, 2 do
  local held, wanted, till, n, b, w = string.match(all[i + 1], '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
  local of = string.match(all[i], '^%S+')
  if not till or tonumber(till) <= now then
    redis.call('HDEL', KEYS[1], all[i])
  elseif all[i] ~= me then
    held, wanted = tonumber(held), tonumber(wanted)
    if of == tenant then
      others, doors = others + held, doors + 1
      if wanted > held then crowded = true end
    else
      local o = tenants[of] or {held = 0, short = false, n = 0, b = 0, w = 1}
      o.held, o.short = o.held + held, o.short or wanted > held
      o.n, o.b, o.w = math.max(o.n, tonumber(n)), math.max(o.b, tonumber(b)), math.max(o.w, tonumber(w))
      tenants[of] = o
    end
  end
end
want = math.min(want, math.max(nominal - others, used + 1))
local free, spare = total, total - math.min(nominal, others + want)
local weights, contested = weight, false
for _, o in pairs(tenants) do
  local own = math.min(o.held, o.n)
  if o.short then own = o.n end
  free = free - math.max(o.held, own)
  spare = spare - own
  local more = o.short and o.held >= o.n and o.held < o.n + o.b
  contested = contested or more
  if more or o.held > o.n then weights = weights + o.w end
end
local allowed = math.min(free, nominal + borrow)
if contested then allowed = math.min(allowed, nominal + math.max(1, math.floor(spare * weight / weights))) end
allowed = math.max(allowed, 0)
if ARGV[10] == '1' and allowed > 1 then allowed = allowed - math.max(1, math.floor(allowed / 16)) end
local granted = math.max(0, math.min(want, allowed - others))
local fair = granted
if crowded then
  fair = math.max(1, math.floor(allowed / doors))
  granted = math.min(granted, math.max(fair, used))
end
local holds = math.max(granted, used)
if holds == 0 and want == 0 then
  redis.call('HDEL', KEYS[1], me)
else
  redis.call('HSET', KEYS[1], me, string.format('%d %d %.0f %d %d %d', holds, want, now + life, nominal, borrow, weight))
  redis.call('PEXPIRE', KEYS[1], life * 2)
end
return {granted, fair, others}`

func (s *shared) partArguments(m *member, used, want int, c class) []any {
	inBulk := 0
	if c == bulk {
		inBulk = 1
	}
	return append(s.arguments(used, want, m.cohort.total()), string(m.tenant), m.nominal, m.borrow, m.weight, inBulk)
}
