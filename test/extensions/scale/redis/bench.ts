// Gateway processes that share their limits through one Redis, which may be killed, suspended or
// missing; their clients; and the windows in Redis.

import assert from "node:assert/strict";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { after } from "node:test";
import { folder } from "../../../support/folder.ts";
import { launch, quickest } from "../../../support/program.ts";
import { REDIS_FOLDER, type Redis } from "../../../support/redis.ts";
import type { Scope } from "../../../support/scope.ts";
import { until, within } from "../../../support/wait.ts";

const program = quickest(folder(), REDIS_FOLDER);
export const WINDOW_MS = 60_000;

/** The clients' connections: the number of requests that each gateway handles at once. */
const agent = new http.Agent({ keepAlive: true, maxSockets: 128 });
after(() => agent.destroy());

// ---- clients

export type Told = Awaited<ReturnType<typeof post>>;

export const keyOf = (account: string): string => `sk-${account}`;

/** Sends one request, and reads its response to the end. */
export async function post(url: string, key: string) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const req = http.request(`${url}/v1/chat/completions`, { method: "POST", agent, headers });
  req.end(JSON.stringify({ model: "m", messages: [{ role: "user", content: "hi" }] }));
  const answer = async () => {
    const [res]: http.IncomingMessage[] = await once(req, "response");
    const { error } = (await json(res!)) as { readonly error?: Record<string, string> };
    return { status: res!.statusCode!, headers: res!.headers, error };
  };
  return await within(answer(), "an answer");
}

export const ofStatus = (told: readonly Told[], status: number): readonly Told[] =>
  told.filter((each) => each.status === status);

export function countAll(told: readonly Told[]): Record<number, number> {
  const statuses = [...new Set(told.map(({ status }) => status))].sort();
  return Object.fromEntries(statuses.map((status) => [status, ofStatus(told, status).length]));
}

/** Sends requests of an account all at once, the same number to each gateway. */
export const flood = (requests: number, gateways: readonly Gateway[], account = "acme") =>
  Promise.all(
    Array.from({ length: requests }, (_, serial) =>
      post(gateways[serial % gateways.length]!.url, keyOf(account)),
    ),
  );

// ---- gateways

/** The limits of an account. It has its own key: see keyOf. */
interface Terms {
  readonly rpm: number | null;
  readonly max_in_flight?: number;
  readonly tokens_per_minute?: number;
}

export interface Options {
  readonly store: string;
  /** Absent: refuse. */
  readonly onError?: "local" | "refuse";
  readonly workers?: number;
  readonly accounts: Readonly<Record<string, Terms>>;
  readonly keys?: readonly object[];
  /** Absent: the demo provider. */
  readonly provider?: string;
}

export type Gateway = Awaited<ReturnType<typeof serve>>;

/** Writes a configuration with a new data_dir to a file. */
export function place(options: Options) {
  const file = join(folder(), "gateway.json");
  const data_dir = folder();
  const write = ({ store, onError, workers = 1, accounts, keys = [], provider }: Options) => {
    const lab = { dialect: "openai", base_url: provider };
    const config = {
      server: { port: 0, workers },
      admin: { port: 0 },
      data_dir,
      providers: { lab: provider === undefined ? { dialect: "demo", pace_ms: 0 } : lab },
      models: { m: { provider: "lab" } },
      aliases: {},
      accounts,
      keys: [
        ...Object.keys(accounts).map((account) => ({ account, key: keyOf(account) })),
        ...keys,
      ],
      limits: { store, on_error: onError ?? "refuse" },
    };
    writeFileSync(file, JSON.stringify(config));
  };
  write(options);
  return { file, write };
}

/** The reported fault of a Redis that responds too late. */
export const SLOW = /no answer within \d+ ms$/;

/** Starts a gateway, which must end cleanly and never print a password. */
export async function serve(t: Scope, options: Options) {
  const { file, write } = place(options);
  const running = launch(program, ["serve", "--config", file]);
  t.after(async () => {
    running.child.kill("SIGTERM");
    const end = within(running.ended, "the end after SIGTERM");
    const { code, stdout, stderr } = await end.finally(() => running.child.kill("SIGKILL"));
    assert.doesNotMatch(stdout + stderr, /CANARY/);
    assert.doesNotMatch(stderr, /internal_error|worker_died/);
    assert.equal(code, 0, stderr);
  });
  const url = await within(running.address, "the gateway to listen");
  const get = (path: string) => within(fetch(running.admin() + path), `the admin's ${path}`);
  const status = async (): Promise<any> => (await get("/status")).json();
  /** Why the store is unavailable. Null: it is available. */
  const fault = async () => (await status()).limits.fault as string | null;
  const isUp = async () => {
    const metrics = await (await get("/metrics")).text();
    return /^chat_gateway_limits_store_up (\d)$/m.exec(metrics)?.[1] === "1";
  };
  return {
    ...{ running, url, status, fault },
    /** Reloads with another configuration. */
    async reload(options: Options) {
      write(options);
      running.child.kill("SIGHUP");
      const fits = ({ account, rpm }: any) => options.accounts[account]?.rpm === rpm;
      const isInForce = async () => (await status()).limits.accounts.every(fits);
      await until(isInForce, "the configuration to be in force");
    },
    /** The reports about the store, in order. */
    outages(): { readonly event: string; readonly detail: string }[] {
      const lines = running.stderr().split("\n").slice(0, -1);
      const ofStore = lines.filter((line) => line.includes('"limits_store_'));
      return ofStore.map((line) => JSON.parse(line));
    },
    /** Resolves when the gateway knows that Redis is down, for this reason. */
    async down(reason = /^(?!no answer)/) {
      const isDown = async () => reason.test((await fault()) ?? "no answer");
      await until(isDown, "Redis to be known not to be there");
      assert.equal(await isUp(), false);
    },
    /** Resolves when the gateway knows that Redis is back. */
    async up() {
      const isBack = async () => (await fault()) === null && (await isUp());
      await until(isBack, "Redis to be asked again");
    },
  };
}

/**
 * Asserts that failures and recoveries alternate, each reported once. At most one failure is other
 * than a late answer, which a busy machine causes.
 */
export function assertTurns(gateway: Gateway): void {
  const outages = gateway.outages();
  const told = JSON.stringify(outages);
  assert.ok(outages.length >= 2, told);
  for (const [at, { event }] of outages.entries())
    assert.equal(event, at % 2 === 0 ? "limits_store_failed" : "limits_store_recovered", told);
  const failures = outages.filter(({ event }) => event === "limits_store_failed");
  assert.ok(failures.filter(({ detail }) => !SLOW.test(detail)).length <= 1, told);
}

// ---- windows

export const windowKey = (account: string, name = `account ${account}`): string =>
  `chat-gateway:{account ${account}}:${name}`;

export const timesOf = async (redis: Redis, key: string): Promise<number[]> =>
  (await redis.command("LRANGE", key, 0, -1)).map(Number);

/** Asserts all details of a 429. Returns the seconds that it states. */
export function assertLimited({ status, headers, error }: Told, limit: number): number {
  const { "retry-after": retryAfter = "" } = headers;
  const { message, type, code } = error!;
  assert.deepEqual([status, type, code], [429, "rate_limit_error", "rate_limit_exceeded"]);
  const words = `Requests-per-minute limit exceeded. Retry after ${retryAfter} seconds.`;
  assert.equal(message, words);
  const rates = ["limit", "remaining", "reset"].map(
    (name) => headers[`x-ratelimit-${name}-requests`],
  );
  assert.deepEqual(rates, [String(limit), "0", `${retryAfter}s`]);
  assert.match(retryAfter, /^([1-9]|[1-5]\d|60)$/);
  return Number(retryAfter);
}

export const assertOverloaded = ({ status, headers, error }: Told): void =>
  assert.deepEqual(
    [status, error?.type, error?.code, headers["retry-after"]],
    [503, "service_unavailable_error", "server_overloaded", "1"],
  );
