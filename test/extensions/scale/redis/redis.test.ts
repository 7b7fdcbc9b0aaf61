// Limits shared through Redis, a real one: the real process, one, two, or two of four workers each,
// against a server of the tests' own that is killed, stopped and not there. Skipped where Redis or
// the package `redis` (npm ci in test/clients) is not installed; REQUIRE_REDIS=1 forbids that.
// Where a minute would have to pass, the admissions of the last one are written into Redis instead.

import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it, type TestContext } from "node:test";
import { folder } from "../../../support/folder.ts";
import { launch, quickest, runToEnd, type Running } from "../../../support/program.ts";
import { startProvider, stream } from "../../../support/provider.ts";
import { noRedis, REDIS_FOLDER, startRedis, type Redis } from "../../../support/redis.ts";
import { until, within } from "../../../support/wait.ts";

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
  readonly error:
    | { readonly code: string; readonly type: string; readonly message: string }
    | undefined;
}

const keyOf = (account: string): string => `sk-${account}`;

/** One request to its end. */
const post = (url: string, key: string, through = agent): Promise<Told> =>
  within(
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
      const req = http.request(
        `${url}/v1/chat/completions`,
        { method: "POST", agent: through, headers },
        (res) => {
          let text = "";
          res.setEncoding("utf8").on("data", (piece: string) => (text += piece));
          res.on("error", reject);
          res.on("end", () =>
            resolve({
              status: res.statusCode ?? 0,
              headers: res.headers,
              error: JSON.parse(text).error,
            }),
          );
        },
      );
      req.on("error", reject);
      req.end(JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] }));
    }),
    "an answer",
    PATIENCE_MS,
  );

const count = (told: readonly Told[], status: number): number =>
  told.filter((each) => each.status === status).length;
/** How many of each status. */
const countAll = (told: readonly Told[]): Record<number, number> =>
  Object.fromEntries(
    [...new Set(told.map(({ status }) => status))]
      .sort()
      .map((status) => [status, count(told, status)]),
  );

/**
 * Clients that ask again and again until they are stopped; nothing but these statuses is given to
 * them.
 */
function createCrowd(t: TestContext, url: string, statuses: readonly number[]) {
  const told: Told[] = [];
  const answered = new EventEmitter().setMaxListeners(0);
  let going = true;
  const clients = Array.from({ length: 8 }, async () => {
    while (going) {
      told.push(await post(url, keyOf("acme")));
      answered.emit("one");
    }
  });
  const ended = Promise.all(clients).then(() => undefined);
  ended.catch(() => undefined); // whoever waits is told
  const crowd = {
    told,
    admitted: () => count(told, 200),
    /** Resolves at the answer from which on it is so. */
    async until(isSo: () => boolean, what: string): Promise<void> {
      let look = () => {};
      const so = new Promise<void>((resolve) => {
        look = () => isSo() && resolve();
        look();
        answered.on("one", look);
      });
      await within(Promise.race([so, ended]), what, PATIENCE_MS).finally(() =>
        answered.off("one", look),
      );
    },
    /** So many more answers. */
    async more(answers: number): Promise<void> {
      const wanted = told.length + answers;
      await crowd.until(() => told.length >= wanted, `${answers} more answers`);
    },
    /** Its last answer is of this status. */
    hears: (status: number) =>
      crowd.until(() => told.at(-1)?.status === status, `an answer with ${status}`),
    async stop(): Promise<void> {
      going = false;
      await ended;
      assert.deepEqual(
        told.filter(({ status }) => !statuses.includes(status)),
        [],
      );
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
  readonly accounts: Readonly<
    Record<
      string,
      {
        readonly rpm: number | null;
        readonly max_in_flight?: number;
        readonly tokens_per_minute?: number;
      }
    >
  >;
  readonly keys?: readonly {
    readonly account: string;
    readonly key: string;
    readonly rpm?: number;
  }[];
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

function configOf(data_dir: string, options: Options): object {
  const {
    store = redis.url,
    onError = "refuse",
    workers = 1,
    accounts,
    keys = [],
    provider,
  } = options;
  return {
    server: { port: 0, workers },
    admin: { port: 0 },
    data_dir,
    providers: {
      lab:
        provider === undefined
          ? { dialect: "demo", pace_ms: 0 }
          : { dialect: "openai", base_url: provider },
    },
    models: { m: { provider: "lab" } },
    aliases: {},
    accounts,
    keys: [...Object.keys(accounts).map((account) => ({ account, key: keyOf(account) })), ...keys],
    limits: { store, on_error: onError },
  };
}

/**
 * Starts gateways, whose folders go, and who are gone, when `end` is called; they never said a
 * password.
 */
function site() {
  const root = mkdtempSync(join(tmpdir(), "limits-"));
  const all: Running[] = [];
  let files = 0;
  /** A configuration in a file, with a data_dir of its own. */
  function place(options: Options) {
    files += 1;
    const [dataDir, file] = [join(root, `data-${files}`), join(root, `${files}.json`)];
    mkdirSync(dataDir);
    const write = (options: Options) =>
      writeFileSync(file, JSON.stringify(configOf(dataDir, options)));
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
        const response = await within(
          fetch(`${running.admin()}${path}`),
          `the admin listener's ${path}`,
          PATIENCE_MS,
        );
        assert.equal(response.status, 200);
        return response;
      };
      const status = async (): Promise<any> => (await admin("/status")).json();
      return {
        running,
        url,
        status,
        async reload(options) {
          write(options);
          running.child.kill("SIGHUP");
          const fits = ({ account, rpm }: any) => options.accounts[account]?.rpm === rpm;
          await until(
            async () => (await status()).limits.accounts.every(fits),
            "the configuration to be in force",
            PATIENCE_MS,
          );
        },
        metrics: async () => (await admin("/metrics")).text(),
        outages() {
          const lines = running.stderr().split("\n").slice(0, -1);
          return lines
            .filter((line) => line.includes('"limits_store_'))
            .map((line) => JSON.parse(line));
        },
      };
    },
    async end(): Promise<void> {
      for (const { child } of all) child.kill("SIGTERM");
      const ends = all.map(({ child, ended }) =>
        within(ended, "the end after SIGTERM", PATIENCE_MS).finally(() => child.kill("SIGKILL")),
      );
      const ended = await Promise.all(ends).finally(() =>
        rmSync(root, { recursive: true, force: true }),
      );
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

const faultOf = async (gateway: Gateway): Promise<string | null> =>
  (await gateway.status()).limits.fault;
async function storeUp(gateway: Gateway): Promise<string | undefined> {
  return /^chat_gateway_limits_store_up (\d)$/m.exec(await gateway.metrics())?.[1];
}
/** What is said of a Redis that is there. */
const SLOW = /no answer within \d+ ms$/;

/**
 * Resolves when Redis is known not to be there; requests look for it meanwhile. What was said by
 * then of it.
 */
async function down(gateway: Gateway): Promise<number> {
  const isDown = async () =>
    ((fault: string | null) => fault !== null && !SLOW.test(fault))(await faultOf(gateway));
  await until(isDown, "Redis to be known not to be there", PATIENCE_MS);
  assert.equal(await storeUp(gateway), "0");
  return gateway.outages().length;
}
/** Resolves when it is known to be there again. */
async function up(gateway: Gateway): Promise<void> {
  await until(
    async () => (await faultOf(gateway)) === null && (await storeUp(gateway)) === "1",
    "Redis to be asked again",
    PATIENCE_MS,
  );
}

/**
 * It fails and recovers in turns, and says each once; of its failures one at most is not that of a
 * server on a machine that is busy.
 */
function assertTurns(t: TestContext, gateway: Gateway): void {
  const outages = gateway.outages();
  const told = JSON.stringify(outages);
  assert.ok(outages.length >= 2, told);
  outages.forEach(({ event }, at) => {
    assert.equal(event, at % 2 === 0 ? "limits_store_failed" : "limits_store_recovered", told);
  });
  assert.ok(
    outages.filter(({ event, detail }) => event === "limits_store_failed" && !SLOW.test(detail))
      .length <= 1,
    told,
  );
  if (outages.length > 2) t.diagnostic(`${outages.length} times the store failed or recovered`);
}

/** Requests of an account, all at once, the same number to each. */
const flood = (requests: number, gateways: readonly Gateway[], account = "acme"): Promise<Told[]> =>
  Promise.all(
    Array.from({ length: requests }, (_, serial) =>
      post(gateways[serial % gateways.length]!.url, keyOf(account)),
    ),
  );

// ---- windows

const windowKey = (account: string, name = `account ${account}`): string =>
  `chat-gateway:{account ${account}}:${name}`;
/** The times of a window's admissions. */
const timesOf = async (key: string): Promise<number[]> =>
  (await redis.command("LRANGE", key, 0, -1)).map(Number);

/** Writes admissions of so long ago into an account's window, as they would stand there. */
async function seed(account: string, ages: readonly number[]): Promise<number[]> {
  const now = await redis.now();
  const times = ages.map((age) => now - age).sort((a, b) => a - b);
  await redis.command("RPUSH", windowKey(account), ...times);
  await redis.command("PEXPIRE", windowKey(account), WINDOW_MS);
  return times;
}

/**
 * The seconds that headers name until `time`, in an answer that came between two looks at Redis'
 * clock.
 */
function assertSeconds(named: number, time: number, before: number, later: number): void {
  const [least, most] = [later, before].map((now) =>
    Math.max(1, Math.ceil((time - now) / 1000)),
  ) as [number, number];
  assert.ok(least <= named && named <= most, `${least} <= ${named} <= ${most}`);
}

/** A 429 in every particular. The seconds that it names. */
function assertLimited({ status, headers, error }: Told, limit: number): number {
  const { "retry-after": retryAfter = "" } = headers;
  assert.deepEqual(
    [status, error?.type, error?.code],
    [429, "rate_limit_error", "rate_limit_exceeded"],
  );
  assert.equal(
    error?.message,
    `Requests-per-minute limit exceeded. Retry after ${retryAfter} seconds.`,
  );
  const rates = ["limit", "remaining", "reset"].map(
    (name) => headers[`x-ratelimit-${name}-requests`],
  );
  assert.deepEqual(rates, [String(limit), "0", `${retryAfter}s`]);
  assert.match(retryAfter, /^([1-9]|[1-5]\d|60)$/);
  return Number(retryAfter);
}

/** What was left of the limit after each, in order. */
const remainders = (told: readonly Told[]): number[] =>
  told
    .map(({ headers }) => Number(headers["x-ratelimit-remaining-requests"]))
    .sort((a, b) => a - b);

function assertOverloaded({ status, headers, error }: Told): void {
  const { type, code } = error!;
  assert.deepEqual(
    [status, type, code, headers["retry-after"]],
    [503, "service_unavailable_error", "server_overloaded", "1"],
  );
}

/**
 * Redis was too slow, which happens where the machine is busy enough: what a test sees then is not
 * what it looks at.
 */
class TooSlow extends Error {}
type Ask = (account: string, key?: string) => Promise<Told>;
type Scenario = (
  ask: Ask,
  many: (requests: number, account: string, key?: string) => Promise<Told[]>,
) => Promise<void>;

/** Plays a scenario from an empty Redis on, again if Redis was too slow in it. */
async function play(t: TestContext, { url }: Gateway, scenario: Scenario): Promise<void> {
  const ask: Ask = async (account, key = keyOf(account)) => {
    const told = await post(url, key);
    if (told.status === 503) throw new TooSlow();
    return told;
  };
  for (let tries = 1; ; tries += 1) {
    await until(
      () =>
        ask("probe").then(
          () => true,
          () => false,
        ),
      "Redis to be asked again",
      PATIENCE_MS,
    );
    await redis.command("FLUSHALL");
    try {
      return await scenario(ask, async (requests, account, key) => {
        const settled = await Promise.allSettled(
          Array.from({ length: requests }, () => ask(account, key)),
        );
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
    /** An account for each test, so that none meets what the gateway remembers of another. */
    const limits = {
      probe: 1,
      none: 0,
      twenty: 20,
      both: 6,
      refused: 3,
      exact: 20_000,
      sliding: 5,
      expiring: 5,
      back: 3,
      lowered: 10,
      counted: 50,
    };
    const accounts = {
      ...Object.fromEntries(Object.entries(limits).map(([name, rpm]) => [name, { rpm }])),
      wordy: { rpm: 30, tokens_per_minute: 1 },
    };
    const options: Options = { accounts, keys: [{ account: "both", key: BOTH, rpm: 4 }] };
    before(async () => {
      at = site();
      gateway = await at.serve(options);
    });
    after(() => at.end());

    it("admits the limit exactly, and says how things stand", (t) =>
      play(t, gateway, async (ask, many) => {
        const told = await many(60, "twenty");
        assert.deepEqual(countAll(told), { 200: 20, 429: 40 });
        const admitted = told.filter(({ status }) => status === 200);
        assert.deepEqual(
          remainders(admitted),
          Array.from({ length: 20 }, (_, at) => at),
        );
        assert.deepEqual(
          [...new Set(admitted.map(({ headers }) => headers["x-ratelimit-limit-requests"]))],
          ["20"],
        );
        for (const each of told.filter(({ status }) => status === 429)) assertLimited(each, 20);
        const times = await timesOf(windowKey("twenty"));
        assert.equal(times.length, 20);
        const [before, refused, later] = [
          await redis.now(),
          await ask("twenty"),
          await redis.now(),
        ];
        assertSeconds(assertLimited(refused, 20), times[0]! + WINDOW_MS, before, later);
      }));

    it("a limit of 0 admits nothing, ever", (t) =>
      play(t, gateway, async (ask) => {
        for (let round = 0; round < 3; round += 1)
          assert.equal(assertLimited(await ask("none"), 0), 60);
        assert.deepEqual(await redis.command("KEYS", "*"), []);
      }));

    it("Retry-After is the time until there is room, and no less", (t) =>
      play(t, gateway, async (ask) => {
        const [first] = await seed("refused", [37_300, 20_000, 1_000]);
        const [before, refused, later] = [
          await redis.now(),
          await ask("refused"),
          await redis.now(),
        ];
        assertSeconds(assertLimited(refused, 3), first! + WINDOW_MS, before, later);
      }));

    it("an account's and a key's limit hold both, or the request costs neither", (t) =>
      play(t, gateway, async (_, many) => {
        const limited = await many(10, "both", BOTH);
        assert.deepEqual(countAll(limited), { 200: 4, 429: 6 });
        for (const each of limited.filter(({ status }) => status === 429)) assertLimited(each, 4);
        assert.equal(
          (await timesOf(windowKey("both"))).length,
          4,
          "what its key refused costs the account nothing",
        );
        const other = await many(10, "both");
        assert.deepEqual(countAll(other), { 200: 2, 429: 8 });
        for (const each of other.filter(({ status }) => status === 429)) assertLimited(each, 6);
        assert.equal(count(await many(5, "both", BOTH), 429), 5);
        const keys: string[] = (await redis.command("KEYS", "*")).sort();
        assert.deepEqual(
          keys.map((key) => key.replace(/[0-9a-f]{16}$/, "")),
          [windowKey("both"), windowKey("both", "key key_")],
        );
        assert.deepEqual(
          await Promise.all(keys.map(async (key) => (await timesOf(key)).length)),
          [6, 4],
        );
      }));

    it("a key's window is the same one, whether its account has a limit or not", (t) =>
      play(t, gateway, async (_, many) => {
        await gateway.reload({ ...options, accounts: { ...accounts, both: { rpm: null } } });
        assert.equal(count(await many(5, "both", BOTH), 200), 4);
        await gateway.reload(options);
        assert.equal(count(await many(5, "both", BOTH), 200), 0);
      }));

    it("a refused request costs nothing, and holds no key alive", (t) =>
      play(t, gateway, async (_, many) => {
        const times = await seed("refused", [30_000, 20_000, 10_000]);
        const before = await redis.command("PTTL", windowKey("refused"));
        for (const each of await many(40, "refused")) assertLimited(each, 3);
        assert.deepEqual(await timesOf(windowKey("refused")), times);
        assert.ok((await redis.command("PTTL", windowKey("refused"))) <= before);
      }));

    it("a request that is refused for its tokens counts no longer, here and in Redis", (t) =>
      play(t, gateway, async (_, many) => {
        const [at] = await seed("wordy", [1_000]);
        const told = await many(20, "wordy");
        assert.deepEqual(
          new Set(told.map(({ error }) => error?.code)),
          new Set(["tokens_per_minute_exceeded"]),
        );
        await until(
          async () => (await timesOf(windowKey("wordy"))).length === 1,
          "only the other admission to count",
        );
        assert.deepEqual(await timesOf(windowKey("wordy")), [at]);
        await until(async () => {
          const { limits } = await gateway.status();
          return limits.accounts.find(({ account }: any) => account === "wordy").used === 0;
        }, "nothing to count here");
      }));

    it("what is 60 seconds old is forgotten, to the millisecond", (t) =>
      play(t, gateway, async (ask) => {
        const seeded = await seed(
          "exact",
          Array.from({ length: 10_001 }, (_, at) => 55_000 + at),
        ); // one each millisecond
        const admitted: number[] = [];
        for (let round = 0; round < 5; round += 1) {
          const { status, headers } = await ask("exact");
          const times = await timesOf(windowKey("exact"));
          const time = times.at(-1)!;
          const standing = [...seeded.filter((each) => each + WINDOW_MS > time), ...admitted, time];
          assert.equal(status, 200);
          assert.deepEqual(times, standing);
          assert.ok(
            standing.length > 10 && standing.length < 10_000,
            `${standing.length} stand in it: some are old enough, some are not`,
          );
          assert.equal(headers["x-ratelimit-remaining-requests"], String(20_000 - standing.length));
          admitted.push(time);
        }
      }));

    it("room comes back one by one, when an admission is 60 seconds old and not before", (t) =>
      play(t, gateway, async (ask) => {
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

    it("a window expires with its last admission", (t) =>
      play(t, gateway, async (ask) => {
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

    it("a clock that was set back admits no more", (t) =>
      play(t, gateway, async (_, many) => {
        const times = await seed("back", [20_000, -30_000]); // the second before the clock was set
        await redis.command("PEXPIRE", windowKey("back"), WINDOW_MS + 30_000); // as it was told to, by the clock as it was
        const told = await many(10, "back");
        assert.deepEqual(countAll(told), { 200: 1, 429: 9 });
        for (const each of told.filter(({ status }) => status === 429)) assertLimited(each, 3);
        assert.deepEqual(await timesOf(windowKey("back")), [...times, times[1]]);
        await redis.command("PEXPIRE", windowKey("back"), WINDOW_MS + 30_000);
        assert.equal(count(await many(10, "back"), 429), 10);
        assert.ok(
          (await redis.command("PTTL", windowKey("back"))) <= WINDOW_MS,
          "nor is anybody refused for longer than a minute",
        );
      }));

    it("a limit that is lowered holds at once, until enough of its admissions have gone", (t) =>
      play(t, gateway, async (ask, many) => {
        await gateway.reload(options);
        const times = await seed("lowered", [55_000, 50_000, 45_000, 40_000, 35_000, 30_000]);
        assert.equal((await ask("lowered")).headers["x-ratelimit-remaining-requests"], "3");
        await gateway.reload({ ...options, accounts: { ...accounts, lowered: { rpm: 4 } } });
        const [before, told, later] = [
          await redis.now(),
          await many(5, "lowered"),
          await redis.now(),
        ];
        // Of seven, four have to go.
        for (const each of told)
          assertSeconds(assertLimited(each, 4), times[3]! + WINDOW_MS, before, later);
      }));

    it("is one script a request, loaded once; what is asked at once travels together", (t) =>
      play(t, gateway, async (ask, many) => {
        const calls = (info: string, command: string) =>
          Number(new RegExp(`^cmdstat_${command}:calls=(\\d+)`, "m").exec(info)?.[1] ?? 0);
        const reads = async () =>
          Number(/^total_reads_processed:(\d+)/m.exec(await redis.command("INFO", "stats"))?.[1]);
        await redis.command("SCRIPT", "FLUSH");
        await redis.command("CONFIG", "RESETSTAT");
        assert.equal(
          (await ask("both", BOTH)).status,
          200,
          "a script that Redis does not know is told to it",
        );
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
    const told = await flood(5_000, gateways);
    const overloaded = count(told, 503);
    t.diagnostic(`answers by status: ${JSON.stringify(countAll(told))}`);
    assert.equal(count(told, 200) + count(told, 429) + overloaded, 5_000);
    for (const each of told)
      if (each.status === 429) assertLimited(each, 600);
      else if (each.status === 503) assertOverloaded(each);
    // What Redis admitted too late for the gateway, which had given up and refused, was nobody's:
    // it counts all the same.
    assert.equal((await timesOf(windowKey("acme"))).length, 600);
    const admitted = count(told, 200);
    assert.ok(
      admitted <= 600 && admitted >= 600 - overloaded,
      `${admitted} admitted, ${overloaded} refused as Redis was too slow`,
    );
    const used = await until(async () => {
      const each = await Promise.all(gateways.map((gateway) => gateway.status()));
      for (const { status, workers, limits } of each)
        assert.deepEqual([status, workers, limits.store], ["serving", 4, "redis"]);
      const used = each.map(({ limits }) => limits.accounts[0].used as number);
      return (
        each.every(({ in_flight }) => in_flight === 0) && used[0]! + used[1]! === admitted && used
      );
    }, "the gateways to have counted what they admitted");
    assert.ok(
      used.every((each) => each > 0),
      `each admitted some: ${used}`,
    );
  });

  it("killed under load, on_error local: each gateway goes on with what it has admitted before, until Redis is back", async (t) => {
    const at = await siteOf(t);
    const options: Options = { onError: "local", accounts: { acme: { rpm: 200 } } };
    const gateways = await Promise.all([at.serve(options), at.serve(options)]);
    const crowds = gateways.map(({ url }) => createCrowd(t, url, [200, 429]));
    await Promise.all(
      crowds.map((crowd) => crowd.until(() => crowd.admitted() >= 30, "some to be admitted")),
    );
    await redis.kill();
    t.after(async () => {
      await redis.kill();
      return redis.start();
    });
    const said = await Promise.all(gateways.map(down));
    await Promise.all(crowds.map((crowd) => crowd.hears(429)));
    await Promise.all(crowds.map((crowd) => crowd.more(500)));
    assert.deepEqual(
      crowds.map((crowd) => crowd.admitted()),
      [200, 200],
    );
    assert.deepEqual(
      gateways.map((gateway) => gateway.outages().length),
      said,
      "it is said once",
    );
    await redis.start();
    await Promise.all(gateways.map(up));
    // Redis remembers nothing: both gateways share a window that has begun anew.
    const more = () => crowds.reduce((sum, crowd) => sum + crowd.admitted() - 200, 0);
    await until(
      async () => (await timesOf(windowKey("acme"))).length === 200,
      "the shared window to be full",
      PATIENCE_MS,
    );
    await Promise.all(crowds.map((crowd) => crowd.more(100)));
    await Promise.all(crowds.map((crowd) => crowd.stop()));
    gateways.forEach((gateway) => {
      assertTurns(t, gateway);
    });
    assert.ok(more() > 0 && more() <= 200, `${more()} more were admitted`); // what it admitted too late for a gateway was nobody's
    t.diagnostic(`${more()} more were admitted by both together`);
  });

  it("killed under load, on_error refuse: 503 until Redis is back", async (t) => {
    const at = await siteOf(t);
    const gateway = await at.serve({ accounts: { acme: { rpm: 100 } } });
    const crowd = createCrowd(t, gateway.url, [200, 429, 503]);
    await crowd.until(() => crowd.admitted() >= 30, "some to be admitted");
    await redis.kill();
    t.after(async () => {
      await redis.kill();
      return redis.start();
    });
    const said = await down(gateway);
    await crowd.more(20);
    const from = crowd.told.length;
    await crowd.more(100);
    crowd.told.slice(from).forEach(assertOverloaded);
    assert.equal(gateway.outages().length, said, "it is said once");
    await redis.start();
    await up(gateway);
    await crowd.hears(429);
    assert.equal((await timesOf(windowKey("acme"))).length, 100);
    await crowd.stop();
    assertTurns(t, gateway);
  });

  it("standing still: requests are answered by the gateway's own window, and shared again when it goes on", async (t) => {
    const at = await siteOf(t);
    const gateway = await at.serve({ onError: "local", accounts: { acme: { rpm: 100 } } });
    const crowd = createCrowd(t, gateway.url, [200, 429]);
    await crowd.until(() => crowd.admitted() >= 30, "some to be admitted");
    redis.pause();
    t.after(redis.resume);
    await until(
      async () => (await faultOf(gateway)) !== null,
      "Redis to be known to stand still",
      PATIENCE_MS,
    );
    await crowd.more(500);
    assert.match((await faultOf(gateway))!, SLOW);
    assert.equal(await storeUp(gateway), "0");
    assert.equal(crowd.admitted(), 100);
    redis.resume();
    await up(gateway);
    await crowd.more(100);
    await crowd.stop();
    assertTurns(t, gateway);
  });

  it("emptied under load: the limit begins anew, and that is all; without its scripts: nothing at all", async (t) => {
    const at = await siteOf(t);
    const gateway = await at.serve({ onError: "local", accounts: { acme: { rpm: 40 } } });
    const crowd = createCrowd(t, gateway.url, [200, 429]);
    const full = async (atLeast: number) => {
      const isFull = async () =>
        crowd.admitted() >= atLeast && (await timesOf(windowKey("acme"))).length === 40;
      await until(isFull, "the window to be full", PATIENCE_MS);
      await crowd.more(50);
    };
    await full(1);
    for (const scriptToo of [false, true, false]) {
      const before = crowd.admitted();
      if (scriptToo) await redis.command("SCRIPT", "FLUSH");
      await redis.command("FLUSHALL");
      await full(before + 1);
      assert.ok(crowd.admitted() - before <= 40);
    }
    const before = crowd.admitted();
    await redis.command("SCRIPT", "FLUSH");
    await crowd.more(100);
    assert.equal(crowd.admitted(), before);
    await crowd.stop();
    assert.equal(
      (await gateway.status()).limits.accounts[0].used,
      crowd.admitted(),
      "its own window has seen all that it admitted",
    );
    const failures = gateway.outages().filter(({ event }) => event === "limits_store_failed");
    for (const { detail } of failures) assert.match(detail, SLOW);
    if (failures.length === 0) assert.equal(crowd.admitted(), 160);
    t.diagnostic(
      `${crowd.admitted()} of 160 were admitted; Redis was too slow ${failures.length} times`,
    );
  });

  it("not there at the start: the gateway limits by itself, and finds it when it comes", async (t) => {
    const at = await siteOf(t);
    await redis.kill();
    t.after(async () => {
      await redis.kill();
      return redis.start();
    });
    const gateway = await at.serve({ onError: "local", accounts: { acme: { rpm: 20 } } });
    const said = await down(gateway);
    const told = await flood(50, [gateway]);
    assert.deepEqual(countAll(told), { 200: 20, 429: 30 });
    for (const each of told) if (each.status === 429) assertLimited(each, 20);
    assert.deepEqual([await down(gateway), said], [1, 1], "it is said once");
    assert.match(gateway.outages()[0]!.detail, /ECONNREFUSED/);
    await redis.start();
    await up(gateway); // without any request
    const crowd = createCrowd(t, gateway.url, [200, 429]);
    await until(
      async () => (await timesOf(windowKey("acme"))).length === 20,
      "the window to be full",
      PATIENCE_MS,
    );
    await crowd.stop();
    assertTurns(t, gateway);
  });

  it("with a password: the right one opens, a wrong one is a fault, and neither is ever said", async (t) => {
    const at = await siteOf(t);
    const locked = await startRedis({ password: "CANARY-of-redis" });
    t.after(locked.close);
    const accounts = { acme: { rpm: 5 } };
    const stores = [
      locked.url,
      locked.url.replace("CANARY-of-redis", "CANARY-but-wrong"),
      locked.url.replace(":CANARY-of-redis@", ""),
    ];
    const gateways = await Promise.all(
      stores.map((store) => at.serve({ store, onError: "local", accounts })),
    );
    const [right, wrong, none] = gateways as [Gateway, Gateway, Gateway];
    for (const gateway of gateways) {
      const told = await flood(10, [gateway]);
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
    await until(async () => (await faultOf(right)) !== null, "the fault to be known");
    assert.doesNotMatch(JSON.stringify(await right.status()), /CANARY/);
    // An address that the package does not understand, or that is none.
    const misspelt = [
      `${locked.url}/no-number`,
      locked.url.replace("redis://", "http://"),
      locked.url.replace("CANARY", "%CANARY"),
    ];
    const ends = misspelt.map((store) =>
      runToEnd(program, ["serve", "--config", at.place({ store, accounts }).file], PATIENCE_MS),
    );
    for (const { code, stdout, stderr } of await Promise.all(ends)) {
      assert.deepEqual([code, stdout], [1, ""], stderr);
      assert.match(stderr, /^chat-gateway: [^\n]+\n$/);
      assert.doesNotMatch(stderr, /CANARY/);
    }
  });

  it("a key of one account that another program has spoilt: the others are answered, and it is told", async (t) => {
    const at = await siteOf(t);
    const gateway = await at.serve({ accounts: { spoilt: { rpm: 3 }, whole: { rpm: 3 } } });
    await redis.command("SET", windowKey("spoilt"), "x");
    t.after(() => redis.command("DEL", windowKey("spoilt")));
    const asked = async (account: string) => {
      const answers = await flood(4, [gateway], account);
      return countAll(answers);
    };
    assert.deepEqual(await asked("spoilt"), { 503: 4 });
    assert.deepEqual(await asked("whole"), { 200: 3, 429: 1 });
    assert.equal(await faultOf(gateway), null);
    assert.equal(gateway.running.stderr().split('"limits_key_unusable"').length, 2, "once");
  });

  it("demoted to a replica: the gateway connects anew, for the address may lead elsewhere", async (t) => {
    const at = await siteOf(t);
    const own = await startRedis({});
    t.after(own.close);
    const accounts = { acme: { rpm: 100 } };
    const gateway = await at.serve({ store: own.url, onError: "local", accounts });
    assert.deepEqual(countAll(await flood(2, [gateway])), { 200: 2 });
    const connections = async (): Promise<string[]> =>
      [...String(await own.command("CLIENT", "LIST")).matchAll(/^id=(\d+).*cmd=eval/gm)].map(
        ([, id]) => id!,
      );
    const [before] = await connections();
    await own.command("REPLICAOF", "127.0.0.1", 1);
    await flood(2, [gateway]);
    assert.match((await faultOf(gateway))!, /READONLY/);
    await own.command("REPLICAOF", "NO", "ONE");
    const isBack = async () => {
      await flood(1, [gateway]);
      return (await faultOf(gateway)) === null;
    };
    await until(isBack, "Redis to be asked again", PATIENCE_MS);
    assert.ok(!(await connections()).includes(before!));
  });

  it("without the package redis: an error that says what to install", async (t) => {
    const at = await siteOf(t);
    const { file } = at.place({
      store: "redis://:CANARY@127.0.0.1:1",
      accounts: { acme: { rpm: 5 } },
    });
    const elsewhere = mkdtempSync(join(tmpdir(), "elsewhere-"));
    t.after(() => rmSync(elsewhere, { recursive: true }));
    for (const command of ["serve", "check"]) {
      const { code, stdout, stderr } = await runToEnd(
        quickest(elsewhere),
        [command, "--config", file],
        PATIENCE_MS,
      );
      assert.deepEqual([code, stdout], [1, ""], command);
      assert.match(
        stderr,
        /^chat-gateway: limits\.store: [^\n]*npm install --save-optional redis[^\n]*\n$/,
      );
      assert.doesNotMatch(stderr, /CANARY/);
    }
  });

  it("an account's places in flight: who finds none costs nothing in Redis, and who is refused there keeps none", async (t) => {
    const at = await siteOf(t);
    const provider = await startProvider(t, { m: stream([], "open") });
    const accounts = {
      acme: { rpm: 100, max_in_flight: 3 },
      one: { rpm: 1, max_in_flight: 1 },
      probe: { rpm: 1 },
    };
    const [held, quick] = await Promise.all([
      at.serve({ accounts, provider: provider.url, onError: "local" }),
      at.serve({ accounts }),
    ]);
    /** A stream that says nothing, until it is left; resolves with its status if it is refused. */
    function open() {
      const leaving = new AbortController();
      const headers = {
        authorization: `Bearer ${keyOf("acme")}`,
        "content-type": "application/json",
      };
      const body = JSON.stringify({
        model: "m",
        stream: true,
        messages: [{ role: "user", content: "hi" }],
      });
      const asked = fetch(`${held.url}/v1/chat/completions`, {
        method: "POST",
        headers,
        body,
        signal: leaving.signal,
      });
      return {
        leave: () => leaving.abort(),
        status: asked.then(
          ({ status }) => status,
          () => undefined,
        ),
      };
    }
    const opened = [open(), open(), open()];
    await provider.nth(2);
    for (const { status, headers, error } of await Promise.all(
      Array.from({ length: 20 }, () => post(held.url, keyOf("acme"))),
    )) {
      assert.deepEqual(
        [status, error?.code, headers["retry-after"]],
        [429, "concurrency_limit_exceeded", "1"],
      );
      assert.equal(
        error?.message,
        "Concurrency limit exceeded: this account may have 3 requests in flight. Retry after 1 seconds.",
      );
    }
    assert.equal((await timesOf(windowKey("acme"))).length, 3);
    assert.equal(provider.asked.length, 3);
    opened[0]!.leave();
    const served = provider.nth(3).then(() => "served");
    await until(async () => {
      opened.push(open());
      return (await Promise.race([opened.at(-1)!.status, served])) === "served";
    }, "the place of one that left to be given to another");
    opened.forEach(({ leave }) => {
      leave();
    });
    await Promise.all(opened.map(({ status }) => status));

    await play(t, quick, async (ask, many) => {
      assert.equal((await ask("one")).status, 200);
      for (let round = 0; round < 5; round += 1) assertLimited(await ask("one"), 1);
      assert.equal((await timesOf(windowKey("one"))).length, 1);
      await redis.command("DEL", windowKey("one"));
      assert.equal(
        (await ask("one")).status,
        200,
        "none of those that were refused has kept the place",
      );
      assert.equal(count(await many(20, "one"), 200), 0);
    });
  });
});
