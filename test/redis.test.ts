// Limits shared through Redis, a real one: the real process, one, two, or two of four workers each, against a server of the tests' own
// that is killed, stopped and not there. Skipped where Redis or the package `redis` (npm ci in test/clients) is not installed;
// REQUIRE_REDIS=1 forbids that. Where a minute would have to pass, the admissions of the last one are written into Redis instead.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { folder } from "./support/folder.ts";
import { launch, quickest, runToEnd, type Running } from "./support/program.ts";
import { startProvider, stream } from "./support/provider.ts";
import { noRedis, REDIS_FOLDER, startRedis, type Redis } from "./support/redis.ts";
import { until, waitFor, within } from "./support/wait.ts";

const program = quickest(folder(), REDIS_FOLDER);
const WINDOW_MS = 60_000;
/** What is granted to anything at all on a busy machine. */
const PATIENCE_MS = 20_000;

let redis: Redis;
/** Connections of the clients: so many requests are in hand at each gateway at once. */
const agent = new http.Agent({ keepAlive: true, maxSockets: 128 });
after(() => agent.destroy());

// ---- clients

interface Told {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly error: { readonly code: string; readonly type: string; readonly message: string } | undefined;
}

const keyOf = (account: string): string => `sk-${account}`;

/** One request to its end. */
const post = (url: string, key: string, body: object = { model: "m", messages: [{ role: "user", content: "hi" }] }): Promise<Told> =>
  within(new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const req = http.request(`${url}/v1/chat/completions`, { method: "POST", agent, headers }, (res) => {
      let text = "";
      res.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      res.on("error", reject);
      res.on("end", () => resolve({ status: res.statusCode ?? 0, headers: res.headers, error: JSON.parse(text).error }));
    });
    req.on("error", reject);
    req.end(JSON.stringify(body));
  }), "an answer", PATIENCE_MS);

const count = (told: readonly Told[], status: number): number => told.filter((each) => each.status === status).length;
const countAll = (told: readonly Told[]): Record<number, number> => Object.fromEntries([...new Set(told.map(({ status }) => status))].sort().map((status) => [status, count(told, status)]));

/** Clients that ask again and again until they are stopped; nothing but these statuses is given to them. */
function createCrowd(t: TestContext, url: string, key: string, statuses: readonly number[]) {
  const told: Told[] = [];
  let going = true;
  const clients = Array.from({ length: 8 }, async () => {
    while (going) told.push(await post(url, key));
  });
  const ended = Promise.all(clients).then(() => undefined);
  ended.catch(() => undefined); // `stop` tells
  const crowd = {
    told,
    admitted: () => count(told, 200),
    /** So many more answers. */
    async more(answers: number): Promise<void> {
      const wanted = told.length + answers;
      await Promise.race([waitFor(() => told.length >= wanted, `${answers} more answers`, PATIENCE_MS), ended]);
    },
    async stop(): Promise<void> {
      going = false;
      await ended;
      assert.deepEqual(told.filter(({ status }) => !statuses.includes(status)), []);
    },
  };
  t.after(crowd.stop);
  return crowd;
}

// ---- gateways

interface Options {
  /** Absent: the Redis of all tests. */
  readonly store?: string;
  /** Absent: refuse. */
  readonly onError?: "local" | "refuse";
  readonly workers?: number;
  /** What each account may, which has a key of its own: see keyOf. */
  readonly accounts: Readonly<Record<string, { readonly rpm: number | null; readonly max_in_flight?: number }>>;
  readonly keys?: readonly { readonly account: string; readonly key: string; readonly rpm?: number }[];
  /** Absent: the demo provider. */
  readonly provider?: string;
}

interface Gateway {
  readonly running: Running;
  readonly url: string;
  /** Puts another configuration in force. */
  reload(options: Options): Promise<void>;
  status(): Promise<any>;
  metrics(): Promise<string>;
  /** Whether the store of the limits could be asked: what it said of that, one after the other. */
  outages(): { readonly event: string; readonly detail: string }[];
}

const configOf = (dataDir: string, { store = redis.url, onError = "refuse", workers = 1, accounts, keys = [], provider }: Options): object => ({
  server: { port: 0, workers },
  admin: { port: 0 },
  data_dir: dataDir,
  providers: { lab: provider === undefined ? { dialect: "demo", pace_ms: 0 } : { dialect: "openai", base_url: provider } },
  models: { m: { provider: "lab" } },
  aliases: {},
  accounts,
  keys: [...Object.keys(accounts).map((account) => ({ account, key: keyOf(account) })), ...keys],
  limits: { store, on_error: onError },
});

/** Starts gateways, whose folders go, and who are gone, when `end` is called; they never said a password. */
function site() {
  const root = mkdtempSync(join(tmpdir(), "limits-"));
  const all: Running[] = [];
  let files = 0;
  /** A configuration in a file, with a data_dir of its own. */
  function place(options: Options) {
    files += 1;
    const [dataDir, file] = [join(root, `data-${files}`), join(root, `${files}.json`)];
    mkdirSync(dataDir);
    const write = (options: Options) => writeFileSync(file, JSON.stringify(configOf(dataDir, options)));
    write(options);
    return { file, write };
  }
  return {
    place,
    async serve(options: Options): Promise<Gateway> {
      const { file, write } = place(options);
      const running = launch(program, ["serve", "--config", file]);
      all.push(running);
      const url = await within(running.address, "the gateway to listen", PATIENCE_MS);
      const admin = async (path: string) => {
        const response = await within(fetch(`${running.admin()}${path}`), `the admin listener's ${path}`, PATIENCE_MS);
        assert.equal(response.status, 200);
        return response;
      };
      const reloads = () => running.stderr().split('"event":"reloaded"').length;
      return {
        running, url,
        async reload(options) {
          const before = reloads();
          write(options);
          running.child.kill("SIGHUP");
          await waitFor(() => reloads() > before, "the configuration to be in force", PATIENCE_MS);
        },
        status: async () => (await admin("/status")).json(),
        metrics: async () => (await admin("/metrics")).text(),
        outages: () => running.stderr().split("\n").filter((line) => line.includes('"limits_store_')).map((line) => JSON.parse(line)),
      };
    },
    async end(): Promise<void> {
      for (const { child } of all) child.kill("SIGTERM");
      const ends = all.map(({ child, ended }) => within(ended, "the end after SIGTERM", PATIENCE_MS).finally(() => child.kill("SIGKILL")));
      const ended = await Promise.all(ends).finally(() => rmSync(root, { recursive: true, force: true }));
      for (const { code, stdout, stderr } of ended) {
        assert.doesNotMatch(stdout + stderr, /CANARY/);
        assert.doesNotMatch(stderr, /internal_error|worker_died/);
        assert.equal(code, 0, stderr);
      }
    },
  };
}

/** A site for one test, which finds Redis there, and empty. */
async function siteOf(t: TestContext): Promise<ReturnType<typeof site>> {
  const at = site();
  t.after(at.end);
  await redis.command("FLUSHALL");
  return at;
}

const faultOf = async (gateway: Gateway): Promise<string | null> => (await gateway.status()).limits.fault;
const storeUp = async (gateway: Gateway): Promise<string | undefined> => /^chat_gateway_limits_store_up (\d)$/m.exec(await gateway.metrics())?.[1];

/** Resolves when the store is known to be down, or to be up, which it takes requests to find. */
const known = (gateway: Gateway, to: "fail" | "work"): Promise<unknown> =>
  until(async () => ((await faultOf(gateway)) !== null) === (to === "fail"), `the store to ${to}`, PATIENCE_MS);

/** It fails and recovers in turns, and each is said once; what is not a server that is slow on a busy machine is of a kind. */
function assertTurns(t: TestContext, gateway: Gateway, expected: RegExp): void {
  const outages = gateway.outages();
  outages.forEach(({ event }, at) => assert.equal(event, at % 2 === 0 ? "limits_store_failed" : "limits_store_recovered", JSON.stringify(outages)));
  const failures = outages.filter(({ event }) => event === "limits_store_failed");
  const slow = failures.filter(({ detail }) => /no answer within/.test(detail) && !expected.test(detail));
  if (slow.length > 0) t.diagnostic(`Redis was too slow ${slow.length} times beside`);
  assert.equal(failures.filter(({ detail }) => expected.test(detail)).length, 1, JSON.stringify(outages));
  assert.equal(failures.length, slow.length + 1, JSON.stringify(outages));
}

// ---- windows

const windowKey = (account: string, name = `account ${account}`): string => `chat-gateway:{account ${account}}:${name}`;
/** The times of a window's admissions. */
const timesOf = async (key: string): Promise<number[]> => (await redis.command("LRANGE", key, 0, -1)).map(Number);

/** Writes admissions of so long ago into an account's window, as they would stand there. */
async function seed(account: string, ages: readonly number[]): Promise<number[]> {
  const now = await redis.now();
  const times = ages.map((age) => now - age).sort((a, b) => a - b);
  await redis.command("RPUSH", windowKey(account), ...times);
  await redis.command("PEXPIRE", windowKey(account), WINDOW_MS);
  return times;
}

/** The seconds that headers may name when something happens at `time`, looked at between two looks at Redis' clock. */
const seconds = (time: number, before: number, later: number) => ({ least: Math.max(1, Math.ceil((time - later) / 1000)), most: Math.max(1, Math.ceil((time - before) / 1000)) });

/** A 429 in every particular. The seconds that it names. */
function assertLimited({ status, headers, error }: Told, limit: number): number {
  const { "retry-after": retryAfter = "" } = headers;
  assert.deepEqual([status, error?.type, error?.code, error?.message], [429, "rate_limit_error", "rate_limit_exceeded", `Requests-per-minute limit exceeded. Retry after ${retryAfter} seconds.`]);
  assert.deepEqual(["limit", "remaining", "reset"].map((name) => headers[`x-ratelimit-${name}-requests`]), [String(limit), "0", `${retryAfter}s`]);
  assert.match(retryAfter, /^([1-9]|[1-5]\d|60)$/);
  return Number(retryAfter);
}

function assertOverloaded({ status, headers, error }: Told): void {
  assert.deepEqual([status, error?.type, error?.code, headers["retry-after"]], [503, "service_unavailable_error", "server_overloaded", "1"]);
}

/** Redis was too slow, which happens where the machine is busy enough: what a test sees then is not what it looks at. */
class TooSlow extends Error {}
type Ask = (account: string, key?: string) => Promise<Told>;
type Scenario = (ask: Ask, many: (requests: number, account: string, key?: string) => Promise<Told[]>) => Promise<void>;

/** Plays a scenario from an empty Redis on, again if Redis was too slow in it. */
async function play(t: TestContext, { url }: Gateway, scenario: Scenario): Promise<void> {
  const ask: Ask = async (account, key = keyOf(account)) => {
    const told = await post(url, key);
    if (told.status === 503) throw new TooSlow();
    return told;
  };
  for (let tries = 1; ; tries += 1) {
    await until(() => ask("probe").then(() => true, () => false), "Redis to be asked again", PATIENCE_MS);
    await redis.command("FLUSHALL");
    try {
      return await scenario(ask, async (requests, account, key) => {
        const settled = await Promise.allSettled(Array.from({ length: requests }, () => ask(account, key)));
        return settled.map((each) => {
          if (each.status === "rejected") throw each.reason;
          return each.value;
        });
      });
    } catch (error) {
      if (!(error instanceof TooSlow) || tries === 10) throw error;
      t.diagnostic("once more: Redis was too slow");
    }
  }
}

describe("limits in Redis", { skip: noRedis() }, () => {
  before(async () => {
    redis = await startRedis();
  });
  after(() => redis?.close());

  describe("one gateway", () => {
    let at: ReturnType<typeof site>;
    let gateway: Gateway;
    const BOTH = "sk-both-limited";
    const accounts = Object.fromEntries(Object.entries({ probe: 1, twenty: 20, both: 6, refused: 3, exact: 1_000_000, sliding: 5, expiring: 5, back: 3, lowered: 10, counted: 50 }).map(([name, rpm]) => [name, { rpm }]));
    const options: Options = { accounts, keys: [{ account: "both", key: BOTH, rpm: 4 }] };
    before(async () => {
      at = site();
      gateway = await at.serve(options);
    });
    after(() => at.end());

    it("admits the limit exactly, and says how things stand", (t) => play(t, gateway, async (ask, many) => {
      const told = await many(60, "twenty");
      assert.deepEqual(countAll(told), { 200: 20, 429: 40 });
      const admitted = told.filter(({ status }) => status === 200).map(({ headers }) => headers);
      assert.deepEqual(admitted.map((headers) => Number(headers["x-ratelimit-remaining-requests"])).sort((a, b) => a - b), Array.from({ length: 20 }, (_, at) => at));
      assert.deepEqual([...new Set(admitted.map((headers) => headers["x-ratelimit-limit-requests"]))], ["20"]);
      for (const each of told.filter(({ status }) => status === 429)) assertLimited(each, 20);
      const times = await timesOf(windowKey("twenty"));
      assert.equal(times.length, 20);
      const [before, refused, later] = [await redis.now(), await ask("twenty"), await redis.now()];
      const { least, most } = seconds(times[0]! + WINDOW_MS, before, later);
      const named = assertLimited(refused, 20);
      assert.ok(least <= named && named <= most, `${least} <= ${named} <= ${most}`);
    }));

    it("Retry-After is the time until there is room, and no less", (t) => play(t, gateway, async (ask) => {
      const [first] = await seed("refused", [37_300, 20_000, 1_000]);
      const [before, refused, later] = [await redis.now(), await ask("refused"), await redis.now()];
      const { least, most } = seconds(first! + WINDOW_MS, before, later);
      const named = assertLimited(refused, 3);
      assert.ok(least <= named && named <= most, `${least} <= ${named} <= ${most}`);
    }));

    it("an account's and a key's limit hold both, or the request costs neither", (t) => play(t, gateway, async (ask, many) => {
      const limited = await many(10, "both", BOTH);
      assert.deepEqual(countAll(limited), { 200: 4, 429: 6 });
      for (const each of limited.filter(({ status }) => status === 429)) assertLimited(each, 4);
      assert.equal((await timesOf(windowKey("both"))).length, 4, "what its key refused costs the account nothing");
      const other = await many(10, "both");
      assert.deepEqual(countAll(other), { 200: 2, 429: 8 });
      for (const each of other.filter(({ status }) => status === 429)) assertLimited(each, 6);
      assert.equal(count(await many(5, "both", BOTH), 429), 5);
      const keys: string[] = (await redis.command("KEYS", "*")).sort();
      assert.deepEqual(keys.map((key) => key.replace(/[0-9a-f]{16}$/, "")), [windowKey("both"), windowKey("both", "key key_")]);
      assert.deepEqual(await Promise.all(keys.map(async (key) => (await timesOf(key)).length)), [6, 4]);
    }));

    it("a refused request costs nothing, and holds no key alive", (t) => play(t, gateway, async (_, many) => {
      const times = await seed("refused", [30_000, 20_000, 10_000]);
      const before = await redis.command("PTTL", windowKey("refused"));
      for (const each of await many(40, "refused")) assertLimited(each, 3);
      assert.deepEqual(await timesOf(windowKey("refused")), times);
      assert.ok((await redis.command("PTTL", windowKey("refused"))) <= before);
    }));

    it("what is 60 seconds old is forgotten, to the millisecond", (t) => play(t, gateway, async (ask) => {
      const seeded = await seed("exact", Array.from({ length: 10_001 }, (_, at) => 55_000 + at)); // one each millisecond
      const admitted: number[] = [];
      for (let round = 0; round < 5; round += 1) {
        const { status, headers } = await ask("exact");
        const times = await timesOf(windowKey("exact"));
        const time = times.at(-1)!;
        const standing = [...seeded.filter((each) => each + WINDOW_MS > time), ...admitted, time];
        assert.equal(status, 200);
        assert.deepEqual(times, standing);
        assert.ok(standing.length > 10 && standing.length < 10_000, `${standing.length} stand in it: some are old enough, some are not`);
        assert.equal(headers["x-ratelimit-remaining-requests"], String(1_000_000 - standing.length));
        admitted.push(time);
      }
    }));

    it("room comes back one by one, when an admission is 60 seconds old and not before", (t) => play(t, gateway, async (ask) => {
      const times = await seed("sliding", [59_900, 59_880, 59_860, 59_700, 59_650]);
      let refused = 0;
      const standingAt = (time: number) => times.filter((each) => each + WINDOW_MS > time).length;
      for (let admitted = 0; admitted < 5; ) {
        const before = await redis.now();
        const { status } = await ask("sliding");
        if (status === 429) {
          refused += 1;
          assert.equal(standingAt(before), 5, "there was no room just before it was refused");
          continue;
        }
        admitted += 1;
        const time = (await timesOf(windowKey("sliding"))).at(-1)!;
        assert.ok(standingAt(time) < 5, "there was room when it was admitted");
        times.push(time);
      }
      t.diagnostic(`${refused} were refused before 5 were admitted`);
    }));

    it("a window expires with its last admission", (t) => play(t, gateway, async (ask) => {
      await ask("both", BOTH);
      await seed("expiring", [59_000]);
      await redis.command("PEXPIRE", windowKey("expiring"), PATIENCE_MS); // as it would be by then, or nearly
      await ask("expiring");
      const keys: string[] = await redis.command("KEYS", "*");
      assert.equal(keys.length, 3);
      for (const key of keys) {
        const ttl = await redis.command("PTTL", key);
        assert.ok(ttl > WINDOW_MS - PATIENCE_MS && ttl <= WINDOW_MS, `${key}: ${ttl}`);
      }
    }));

    it("a clock that was set back admits no more", (t) => play(t, gateway, async (_, many) => {
      const times = await seed("back", [20_000, -30_000]); // the second before the clock was set
      const told = await many(10, "back");
      assert.deepEqual(countAll(told), { 200: 1, 429: 9 });
      for (const each of told.filter(({ status }) => status === 429)) assertLimited(each, 3);
      assert.deepEqual(await timesOf(windowKey("back")), [...times, times[1]]);
    }));

    it("a limit that is lowered holds at once; there is room when enough of its admissions have gone", (t) => play(t, gateway, async (ask, many) => {
      await gateway.reload(options);
      const times = await seed("lowered", [55_000, 50_000, 45_000, 40_000, 35_000, 30_000]);
      assert.equal((await ask("lowered")).headers["x-ratelimit-remaining-requests"], "3");
      await gateway.reload({ ...options, accounts: { ...accounts, lowered: { rpm: 4 } } });
      const [before, told, later] = [await redis.now(), await many(5, "lowered"), await redis.now()];
      const { least, most } = seconds(times[3]! + WINDOW_MS, before, later); // of seven, four have to go
      for (const each of told) {
        const named = assertLimited(each, 4);
        assert.ok(least <= named && named <= most, `${least} <= ${named} <= ${most}`);
      }
    }));

    it("is one script a request, loaded once; what is asked at once travels together", (t) => play(t, gateway, async (ask, many) => {
      const calls = (info: string, command: string) => Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, "m").exec(info)?.[1] ?? 0);
      const reads = async () => Number(/^total_reads_processed:(\d+)/m.exec(await redis.command("INFO", "stats"))?.[1]);
      await redis.command("SCRIPT", "FLUSH");
      await redis.command("CONFIG", "RESETSTAT");
      assert.equal((await ask("both", BOTH)).status, 200, "a script that Redis does not know is told to it");
      let info: string = await redis.command("INFO", "commandstats");
      assert.deepEqual([calls(info, "evalsha"), calls(info, "eval")], [1, 1]);
      const before = await reads();
      assert.deepEqual(countAll(await many(400, "counted")), { 200: 50, 429: 350 });
      const packets = (await reads()) - before;
      info = await redis.command("INFO", "commandstats");
      assert.deepEqual([calls(info, "evalsha"), calls(info, "eval")], [401, 1]);
      assert.ok(packets < 200, `400 requests came in ${packets} packets`);
      t.diagnostic(`400 requests came in ${packets} packets`);
    }));
  });

  it("two gateways of four workers each: of 5,000 requests in parallel exactly 600 are admitted", async (t) => {
    const at = await siteOf(t);
    const options: Options = { workers: 4, accounts: { acme: { rpm: 600 } } };
    const gateways = await Promise.all([at.serve(options), at.serve(options)]);
    const told = await Promise.all(Array.from({ length: 5_000 }, (_, serial) => post(gateways[serial % 2]!.url, keyOf("acme"))));
    const overloaded = count(told, 503);
    t.diagnostic(`answers by status: ${JSON.stringify(countAll(told))}`);
    assert.equal(count(told, 200) + count(told, 429) + overloaded, 5_000);
    for (const each of told) if (each.status === 429) assertLimited(each, 600);
      else if (each.status === 503) assertOverloaded(each);
    // What Redis admitted too late for the gateway, which had given up and refused, was nobody's: it counts all the same.
    assert.equal((await timesOf(windowKey("acme"))).length, 600);
    const admitted = count(told, 200);
    assert.ok(admitted <= 600 && admitted >= 600 - overloaded, `${admitted} were admitted, ${overloaded} refused because Redis was too slow`);
    const used = await until(async () => {
      const each = await Promise.all(gateways.map((gateway) => gateway.status()));
      assert.deepEqual(each.map(({ status, workers, limits }) => [status, workers, limits.store]), [["serving", 4, "redis"], ["serving", 4, "redis"]]);
      const used = each.map(({ limits }) => limits.accounts[0].used as number);
      return each.every(({ in_flight }) => in_flight === 0) && used[0]! + used[1]! === admitted && used;
    }, "the gateways to have counted what they admitted");
    assert.ok(used.every((each) => each > 0), `each admitted some: ${used}`);
  });

  it("the windows in memory are of all workers: of 3,000 requests in parallel exactly 600 are admitted", async (t) => {
    const at = await siteOf(t);
    const gateway = await at.serve({ store: "memory", workers: 4, accounts: { acme: { rpm: 600 } } });
    const told = await Promise.all(Array.from({ length: 3_000 }, () => post(gateway.url, keyOf("acme"))));
    assert.deepEqual(countAll(told), { 200: 600, 429: 2_400 });
    for (const each of told) if (each.status === 429) assertLimited(each, 600);
    const remaining = told.filter(({ status }) => status === 200).map(({ headers }) => Number(headers["x-ratelimit-remaining-requests"])).sort((a, b) => a - b);
    assert.deepEqual(remaining, Array.from({ length: 600 }, (_, at) => at));
    await until(async () => (await gateway.status()).in_flight === 0, "all to have ended");
    const { status, workers, limits } = await gateway.status();
    assert.deepEqual([status, workers, limits.store, limits.fault, limits.accounts], ["serving", 4, "memory", null, [{ account: "acme", rpm: 600, used: 600 }]]);
  });

  it("killed under load, on_error local: each gateway limits by itself, with what it has admitted before, until Redis is there again", async (t) => {
    const at = await siteOf(t);
    const options: Options = { onError: "local", accounts: { acme: { rpm: 200 } } };
    const gateways = await Promise.all([at.serve(options), at.serve(options)]);
    const crowds = gateways.map(({ url }) => createCrowd(t, url, keyOf("acme"), [200, 429]));
    await Promise.all(crowds.map((crowd) => waitFor(() => crowd.admitted() >= 30, "some to be admitted", PATIENCE_MS)));
    await redis.kill();
    t.after(async () => (await redis.kill(), redis.start()));
    await Promise.all(gateways.map((gateway) => known(gateway, "fail")));
    await Promise.all(crowds.map((crowd) => waitFor(() => crowd.told.at(-1)?.status === 429, "its own window to be full", PATIENCE_MS)));
    await Promise.all(crowds.map((crowd) => crowd.more(500)));
    assert.deepEqual(crowds.map((crowd) => crowd.admitted()), [200, 200]);
    for (const gateway of gateways) assert.deepEqual([await storeUp(gateway), typeof (await faultOf(gateway))], ["0", "string"]);
    await redis.start();
    await Promise.all(gateways.map((gateway) => known(gateway, "work")));
    for (const gateway of gateways) assert.equal(await storeUp(gateway), "1");
    // It has begun anew, and nothing is left of its window: both share one again.
    await waitFor(() => crowds.every((crowd) => crowd.told.at(-1)?.status === 429) && crowds.some((crowd) => crowd.admitted() > 200), "the shared window to be full", PATIENCE_MS);
    await Promise.all(crowds.map((crowd) => crowd.more(300)));
    assert.equal((await timesOf(windowKey("acme"))).length, 200);
    await Promise.all(crowds.map((crowd) => crowd.stop()));
    gateways.forEach((gateway) => assertTurns(t, gateway, /^each gateway limits by itself until it can be asked: (?!no answer)/));
    const more = crowds.reduce((sum, crowd) => sum + crowd.admitted() - 200, 0);
    t.diagnostic(`${more} more were admitted by both together`);
    assert.ok(more <= 200 && more > 150, `${more} of 200`);
  });

  it("killed under load, on_error refuse: 503 until Redis is there again", async (t) => {
    const at = await siteOf(t);
    const gateway = await at.serve({ accounts: { acme: { rpm: 100 } } });
    const crowd = createCrowd(t, gateway.url, keyOf("acme"), [200, 429, 503]);
    await waitFor(() => crowd.admitted() >= 30, "some to be admitted", PATIENCE_MS);
    await redis.kill();
    t.after(async () => (await redis.kill(), redis.start()));
    await known(gateway, "fail");
    await crowd.more(100);
    const from = crowd.told.length;
    await crowd.more(100);
    crowd.told.slice(from).forEach(assertOverloaded);
    assert.deepEqual([await storeUp(gateway), typeof (await faultOf(gateway))], ["0", "string"]);
    await redis.start();
    await known(gateway, "work");
    await waitFor(() => crowd.told.at(-1)?.status === 429, "the window to be full", PATIENCE_MS);
    assert.equal((await timesOf(windowKey("acme"))).length, 100);
    assert.equal(await storeUp(gateway), "1");
    await crowd.stop();
    assertTurns(t, gateway, /^requests are refused until it can be asked: (?!no answer)/);
  });

  it("standing still: requests are answered by the gateway's own window, and shared again when it goes on", async (t) => {
    const at = await siteOf(t);
    const gateway = await at.serve({ onError: "local", accounts: { acme: { rpm: 100 } } });
    const crowd = createCrowd(t, gateway.url, keyOf("acme"), [200, 429]);
    await waitFor(() => crowd.admitted() >= 30, "some to be admitted", PATIENCE_MS);
    redis.pause();
    t.after(redis.resume);
    await known(gateway, "fail");
    await crowd.more(500);
    assert.match((await faultOf(gateway))!, /^no answer within \d+ ms$/);
    assert.equal(await storeUp(gateway), "0");
    assert.equal(crowd.admitted(), 100);
    redis.resume();
    await known(gateway, "work");
    assert.equal(await storeUp(gateway), "1");
    await crowd.more(100);
    await crowd.stop();
    const outages = gateway.outages().map(({ event }) => event);
    assert.deepEqual(outages, outages.map((_, at) => (at % 2 === 0 ? "limits_store_failed" : "limits_store_recovered")), "each is said once");
    assert.ok(outages.length >= 2);
  });

  it("emptied under load: the limit begins anew, and that is all; without its scripts: nothing at all", async (t) => {
    const at = await siteOf(t);
    const gateway = await at.serve({ onError: "local", accounts: { acme: { rpm: 40 } } });
    const crowd = createCrowd(t, gateway.url, keyOf("acme"), [200, 429]);
    const full = async (admitted: number) => {
      await until(async () => crowd.admitted() >= admitted && (await timesOf(windowKey("acme"))).length === 40, "the window to be full", PATIENCE_MS);
      await crowd.more(100);
    };
    await full(20);
    for (const script of [false, true, false]) {
      const before = crowd.admitted();
      if (script) await redis.command("SCRIPT", "FLUSH");
      await redis.command("FLUSHALL");
      await full(before + 20);
      assert.ok(crowd.admitted() - before <= 40);
    }
    const before = crowd.admitted();
    await redis.command("SCRIPT", "FLUSH");
    await crowd.more(200);
    assert.equal(crowd.admitted(), before);
    await crowd.stop();
    for (const { event, detail } of gateway.outages()) if (event === "limits_store_failed") assert.match(detail, /no answer within/);
    t.diagnostic(`${crowd.admitted()} of 160 were admitted, ${gateway.outages().length} outages`);
  });

  it("not there at the start: the gateway limits by itself, and finds it when it comes", async (t) => {
    const at = await siteOf(t);
    await redis.kill();
    t.after(async () => (await redis.kill(), redis.start()));
    const gateway = await at.serve({ onError: "local", accounts: { acme: { rpm: 20 } } });
    assert.match((await faultOf(gateway))!, /ECONNREFUSED/);
    const told = await Promise.all(Array.from({ length: 50 }, () => post(gateway.url, keyOf("acme"))));
    assert.deepEqual(countAll(told), { 200: 20, 429: 30 });
    for (const each of told) if (each.status === 429) assertLimited(each, 20);
    assert.equal(await storeUp(gateway), "0");
    await redis.start();
    const crowd = createCrowd(t, gateway.url, keyOf("acme"), [200, 429]);
    await known(gateway, "work");
    await waitFor(() => crowd.told.at(-1)?.status === 429, "the window to be full", PATIENCE_MS);
    await crowd.stop();
    assert.equal((await timesOf(windowKey("acme"))).length, 20);
    assertTurns(t, gateway, /ECONNREFUSED/);
  });

  it("with a password: the right one opens, a wrong one is a fault, and neither is ever said", async (t) => {
    const at = await siteOf(t);
    const locked = await startRedis({ password: "CANARY-of-redis" });
    t.after(locked.close);
    const accounts = { acme: { rpm: 5 } };
    const [right, wrong, none] = await Promise.all([locked.url, locked.url.replace("CANARY-of-redis", "CANARY-but-wrong"), locked.url.replace(":CANARY-of-redis@", "")]
      .map((store) => at.serve({ store, onError: "local", accounts }))) as [Gateway, Gateway, Gateway];
    for (const gateway of [right, wrong, none]) {
      const told = await Promise.all(Array.from({ length: 10 }, () => post(gateway.url, keyOf("acme"))));
      assert.deepEqual(countAll(told), { 200: 5, 429: 5 });
      const said = JSON.stringify([await gateway.status(), await gateway.metrics(), told]);
      assert.doesNotMatch(said, /CANARY/);
    }
    assert.equal((await locked.command("LRANGE", windowKey("acme"), 0, -1)).length, 5);
    assert.match((await faultOf(wrong))!, /WRONGPASS|offline/);
    assert.match((await faultOf(none))!, /NOAUTH|offline/);
    assert.match(wrong.outages()[0]!.detail, /WRONGPASS/);
    assert.match(none.outages()[0]!.detail, /NOAUTH/);
    await locked.kill();
    await until(async () => (await post(right.url, keyOf("acme"))).status === 429 && (await faultOf(right)) !== null, "the fault to be known");
    assert.doesNotMatch(JSON.stringify(await right.status()), /CANARY/);
    // An address that the package does not understand, or that is none.
    for (const store of [`${locked.url}/no-number`, locked.url.replace("redis://", "http://"), locked.url.replace("CANARY", "%CANARY")]) {
      const { code, stdout, stderr } = await runToEnd(program, ["serve", "--config", at.place({ store, accounts }).file]);
      assert.deepEqual([code, stdout], [1, ""], stderr);
      assert.match(stderr, /^chat-gateway: [^\n]+\n$/);
      assert.doesNotMatch(stderr, /CANARY/);
    }
  });

  it("without the package redis: an error that says what to install", async (t) => {
    const at = await siteOf(t);
    const { file } = at.place({ store: "redis://:CANARY@127.0.0.1:1", accounts: { acme: { rpm: 5 } } });
    const elsewhere = mkdtempSync(join(tmpdir(), "elsewhere-"));
    t.after(() => rmSync(elsewhere, { recursive: true }));
    for (const args of [["serve"], ["check"]]) {
      const { code, stdout, stderr } = await runToEnd(quickest(elsewhere), [...args, "--config", file], PATIENCE_MS);
      assert.deepEqual([code, stdout], [1, ""], args.join(" "));
      assert.match(stderr, /^chat-gateway: limits\.store: [^\n]*npm install redis[^\n]*\n$/);
      assert.doesNotMatch(stderr, /CANARY/);
    }
  });

  it("an account's places in flight: who has none costs nothing in Redis, and who is refused there keeps none", async (t) => {
    const at = await siteOf(t);
    const provider = await startProvider(t, { m: stream([], "open") });
    const accounts = { acme: { rpm: 100, max_in_flight: 3 }, one: { rpm: 1, max_in_flight: 1 }, probe: { rpm: 1 } };
    const held = await at.serve({ accounts, provider: provider.url });
    const leaving = Array.from({ length: 3 }, () => new AbortController());
    const body = JSON.stringify({ model: "m", stream: true, messages: [{ role: "user", content: "hi" }] });
    const headers = { authorization: `Bearer ${keyOf("acme")}`, "content-type": "application/json" };
    const open = leaving.map(({ signal }) => fetch(`${held.url}/v1/chat/completions`, { method: "POST", headers, body, signal }).catch(() => undefined));
    await provider.nth(2);
    for (const each of await Promise.all(Array.from({ length: 20 }, () => post(held.url, keyOf("acme"))))) {
      assert.deepEqual([each.status, each.error?.code, each.error?.message, each.headers["retry-after"]], [429, "rate_limit_exceeded", "This account may have 3 requests in flight, and has.", "1"]);
    }
    assert.equal((await timesOf(windowKey("acme"))).length, 3);
    assert.equal(provider.asked.length, 3);
    leaving[0]!.abort();
    leaving.push(new AbortController());
    const again = until(async () => {
      const signal = leaving[3]!.signal;
      const next = fetch(`${held.url}/v1/chat/completions`, { method: "POST", headers, body, signal });
      const asked = waitFor(() => provider.asked.length === 4, "the provider to be asked again", PATIENCE_MS).then(() => true);
      return await Promise.race([next.then((response) => response.status !== 429), asked]).catch(() => false);
    }, "a place to be free");
    assert.equal(await within(again, "the place of one that left", PATIENCE_MS), true);
    leaving.forEach((each) => each.abort());
    await Promise.all(open);

    const quick = await at.serve({ accounts });
    await play(t, quick, async (ask, many) => {
      assert.equal((await ask("one")).status, 200);
      for (let round = 0; round < 5; round += 1) assertLimited(await ask("one"), 1);
      assert.equal((await timesOf(windowKey("one"))).length, 1);
      await redis.command("DEL", windowKey("one"));
      assert.equal((await ask("one")).status, 200, "none of those that were refused has kept the place");
      assert.equal(count(await many(20, "one"), 200), 0);
    });
  });
});
