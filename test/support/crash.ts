// Kills the real gateway at random moments under load, again and again on the same data_dir, and
// then goes through the books line by line: what the clients and the provider saw against the spend
// log, the spend log against the usage records, each sum against one of its own. Nothing of src is
// used, neither its readers nor its arithmetic: only what an operator sees, which is the command
// line, HTTP, and the files under data_dir (or the table).

import { createHash } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { detailsOf } from "./books.ts";
import { createRandom } from "./random.ts";
import { launch, runToEnd, type Program } from "./program.ts";
import { waitFor, within } from "./wait.ts";

type Random = ReturnType<typeof createRandom>;

/** When it is certain that what is waited for does not come, however busy the machine is. */
const LATE_MS = 120_000;

// ---- the accounts, the models and their prices

const KEYS = [
  ["acme", "sk-crash-acme-1"],
  ["acme", "sk-crash-acme-2"],
  ["beta", "sk-crash-beta"],
  ['Çelik, "Söhne" & 李', "sk-crash-celik"],
] as const;
export const ACCOUNTS: readonly string[] = [...new Set(KEYS.map(([account]) => account))];

/**
 * Currency per million tokens: cache hit, cache miss, output, cache write; exactly representable
 * sums there are none among them.
 */
const PRICES: Readonly<
  Record<
    string,
    readonly [hit: string | undefined, miss: string, output: string, write?: string] | undefined
  >
> = {
  plain: ["0.028", "0.28", "0.42"],
  odd: ["0.000001", "0.333333", "999999.999999", "0.416667"],
  "no hit": [undefined, "1.1", "2.2"],
  free: undefined,
};
const MODELS = Object.keys(PRICES);
const ALIAS = "any/of them";

/** A decimal string in units of 10^-`digits`. */
function scaled(text: string, digits: number): bigint {
  const [units = "", decimals = ""] = text.split(".");
  if (!/^\d+$/.test(units) || !/^\d*$/.test(decimals) || decimals.length > digits)
    throw new Error(`not an amount: ${text}`);
  return BigInt(units + decimals.padEnd(digits, "0"));
}
/** Pico-units. */
export const pico = (text: string): bigint => scaled(text, 12);

function priceOf(model: string | null, usage: Counts): bigint {
  const price = PRICES[model ?? ""];
  if (!price) return 0n;
  const [hit, miss, output, write] = [
    price[0] ?? price[1],
    price[1],
    price[2],
    price[3] ?? price[1],
  ].map((perMillion) => scaled(perMillion, 6)) as [bigint, bigint, bigint, bigint];
  const written = usage.cache_write_tokens ?? 0;
  return (
    BigInt(usage.prompt_cache_hit_tokens) * hit +
    BigInt(usage.prompt_cache_miss_tokens - written) * miss +
    BigInt(written) * write +
    BigInt(usage.completion_tokens) * output
  );
}

export interface ConfigOptions {
  readonly dataDir: string;
  readonly provider: string;
  /** Absent: the file store. */
  readonly store?: string | undefined;
  readonly syncMs?: number;
  /** The spend log is sealed. */
  readonly seals?: boolean;
}

export const crashConfig = ({
  dataDir,
  provider,
  store = "file",
  syncMs = 20,
  seals = false,
}: ConfigOptions): object => ({
  server: { port: 0, drain_ms: 4_000 },
  admin: { port: 0 },
  data_dir: dataDir,
  providers: { lab: { dialect: "openai", base_url: provider } },
  models: Object.fromEntries(
    Object.entries(PRICES).map(([name, price]) => [
      name,
      {
        provider: "lab",
        ...(price && {
          price: {
            ...(price[0] !== undefined && { input_cache_hit: Number(price[0]) }),
            input_cache_miss: Number(price[1]),
            ...(price[3] !== undefined && { input_cache_write: Number(price[3]) }),
            output: Number(price[2]),
          },
        }),
      },
    ]),
  ),
  aliases: { [ALIAS]: { models: MODELS } },
  keys: KEYS.map(([account, key]) => ({ account, key })),
  limits: { rpm: null },
  spend: { segment_bytes: 1_024 },
  usage: { store, sync_ms: syncMs },
  retry: { max_retries: 1, backoff_ms: 2 },
  breaker: { failures: 1_000_000_000 },
  ...(seals && { seals: { enabled: true } }),
});

// ---- the provider

/** What a request says that the provider is to leave without an answer. */
const UNANSWERED = "unanswered ";

export interface CrashProvider {
  readonly url: string;
  /**
   * The serial numbers of the requests that reached it, each once however often they were tried.
   */
  readonly seen: ReadonlySet<string>;
  /** Resolves when this request is there. */
  reached(serial: string): Promise<void>;
  close(): void;
}

/** Fast, but for some that take their time; some fail, some break off. */
export async function startCrashProvider({
  random,
  between,
  pick,
}: Random): Promise<CrashProvider> {
  const seen = new Set<string>();
  const reaching = new EventEmitter();
  const figures = () => {
    const [prompt_tokens, completion_tokens] = [between(1, 5_000), between(1, 3_000)];
    const cached_tokens = between(0, prompt_tokens);
    const cache_write_tokens = between(0, prompt_tokens - cached_tokens);
    const details = {
      prompt_tokens_details: { cached_tokens, cache_write_tokens },
      completion_tokens_details: { reasoning_tokens: between(0, completion_tokens) },
    };
    return random() < 0.1
      ? undefined
      : {
          prompt_tokens,
          completion_tokens,
          total_tokens: prompt_tokens + completion_tokens,
          ...details,
        };
  };
  const chunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;

  async function answer(res: http.ServerResponse, streaming: boolean): Promise<void> {
    const kind = pick(["well", "well", "well", "well", "well", "slow", "fails", "cut"]);
    await pause(between(0, 15));
    if (kind === "fails") {
      res.writeHead(pick([500, 500, 503])).end("{}");
      return;
    }
    const usage = figures();
    if (!streaming) {
      const text = JSON.stringify({
        choices: [
          {
            index: 0,
            message: { role: "assistant", content: "one two three" },
            finish_reason: "stop",
          },
        ],
        ...(usage && { usage }),
      });
      res.writeHead(200, { "content-type": "application/json", "content-length": text.length });
      if (kind === "cut") {
        res.write(text.slice(0, between(1, 40)), () => res.socket?.resetAndDestroy());
        return;
      }
      if (kind === "slow") await pause(between(20, 1_200));
      res.end(text);
      return;
    }
    res.writeHead(200, { "content-type": "text/event-stream" });
    const words = between(1, 6);
    for (let word = 0; word < words && !res.destroyed; word += 1) {
      res.write(chunk({ content: `word ${word} ` }));
      await pause(kind === "slow" ? between(20, 200) : between(0, 3));
    }
    if (kind === "cut") {
      res.socket?.resetAndDestroy();
      return;
    }
    res.end(
      `${chunk({}, "stop")}${usage ? `data: ${JSON.stringify({ choices: [], usage })}\n\n` : ""}data: [DONE]\n\n`,
    );
  }

  const server = http.createServer({ noDelay: true, keepAliveTimeout: 60_000 }, (req, res) => {
    let body = "";
    res.on("error", () => undefined);
    req.on("error", () => undefined);
    req.setEncoding("utf8").on("data", (text: string) => (body += text));
    req.on("end", () => {
      const { messages, stream } = JSON.parse(body) as {
        messages: { content: string }[];
        stream?: boolean;
      };
      const serial = messages[0]!.content;
      seen.add(serial);
      reaching.emit(serial);
      if (!serial.startsWith(UNANSWERED)) answer(res, stream === true);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    async reached(serial) {
      if (!seen.has(serial))
        await within(once(reaching, serial), `${serial} at the provider`, LATE_MS);
    },
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

// ---- the clients

/** What a client sent, and what came of it. */
interface Told {
  /** In the message's text, so that the provider sees it too. */
  readonly serial: string;
  readonly account: string;
  /** Its X-Request-Id; undefined: none, or none came back. */
  readonly id: string | undefined;
  readonly sentId: boolean;
  /**
   * "whole": a whole reply or [DONE]; "error": a whole error, or an error event; "cut": anything
   * less.
   */
  readonly verdict: "whole" | "error" | "cut";
  readonly status: number;
  readonly model?: string | undefined;
  readonly usage?: Counts | undefined;
  readonly code?: string | undefined;
}

const COUNTS = [
  "prompt_tokens",
  "completion_tokens",
  "total_tokens",
  "prompt_cache_hit_tokens",
  "prompt_cache_miss_tokens",
  "reasoning_tokens",
] as const;
type Counts = Readonly<Record<(typeof COUNTS)[number], number>> & {
  /** Absent: 0. */
  readonly cache_write_tokens?: number;
};

/** As a reply states it. */
function countsOf(usage: any): Counts | undefined {
  if (!usage) return undefined;
  const {
    prompt_tokens,
    completion_tokens,
    total_tokens,
    prompt_cache_hit_tokens,
    prompt_cache_miss_tokens,
    prompt_tokens_details: { cache_write_tokens },
    completion_tokens_details,
  } = usage;
  return {
    prompt_tokens,
    completion_tokens,
    total_tokens,
    prompt_cache_hit_tokens,
    prompt_cache_miss_tokens,
    reasoning_tokens: completion_tokens_details.reasoning_tokens,
    ...(cache_write_tokens !== undefined && { cache_write_tokens }),
  };
}

interface Target {
  readonly url: string;
  readonly agent: http.Agent;
}

let serials = 0;
const nextSerial = (start: string): string => {
  serials += 1;
  return `${start}${serials}`;
};

/** One request to its end, whatever that is. Its client stays if the provider is not to answer. */
function ask(
  { url, agent }: Target,
  { random, between, pick }: Random,
  serial = nextSerial("request "),
): Promise<Told> {
  const [account, key] = pick(KEYS);
  const given = pick(["own", "own", "own", "own", "own", "own", "shared", "none"]);
  let sent: string | undefined;
  if (given === "own") sent = `own-${serial.replace(" ", "-")}`;
  else if (given === "shared") sent = `shared-${between(1, 3)}`;
  const streaming = random() < 0.5;
  const leaves = random() < 0.08 && !serial.startsWith(UNANSWERED) ? between(0, 40) : undefined;
  const body = JSON.stringify({
    model: pick([...MODELS, ALIAS]),
    messages: [{ role: "user", content: serial }],
    stream: streaming,
    ...(streaming && random() < 0.7 && { stream_options: { include_usage: true } }),
  });
  return new Promise((resolve) => {
    const headers = {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      "content-length": body.length,
      ...(sent !== undefined && { "x-request-id": sent }),
    };
    const about = { serial, account, sentId: sent !== undefined };
    const req = http.request(
      `${url}/v1/chat/completions`,
      { method: "POST", agent, headers },
      (res) => {
        let text = "";
        res.setEncoding("utf8").on("data", (piece: string) => (text += piece));
        res.on("error", () => undefined);
        res.on("close", () =>
          resolve({
            ...about,
            id: res.headers["x-request-id"] as string,
            status: res.statusCode ?? 0,
            ...verdictOn(res, text, streaming),
          }),
        );
      },
    );
    req.on("error", () => resolve({ ...about, id: sent, verdict: "cut", status: 0 }));
    if (leaves !== undefined) setTimeout(() => req.destroy(), leaves);
    req.end(body);
  });
}

function verdictOn(
  res: http.IncomingMessage,
  text: string,
  streaming: boolean,
): Pick<Told, "verdict" | "model" | "usage" | "code"> {
  if (res.statusCode !== 200 || !streaming) {
    if (!res.complete) return { verdict: "cut" };
    const { error, model, usage } = JSON.parse(text);
    return error
      ? { verdict: "error", code: error.code }
      : { verdict: "whole", model, usage: countsOf(usage) };
  }
  const events = text
    .split("\n\n")
    .slice(0, -1)
    .filter((event) => event.startsWith("data: "));
  const last = events.at(-1);
  if (last?.startsWith('data: {"error"'))
    return { verdict: "error", code: JSON.parse(last.slice(6)).error.code };
  if (last !== "data: [DONE]") return { verdict: "cut" };
  const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice(6)));
  return { verdict: "whole", model: chunks[0].model, usage: countsOf(chunks.at(-1).usage) };
}

/** Clients that ask one request after the other, of whatever gateway is there at the moment. */
export interface Crowd {
  readonly told: readonly Told[];
  /**
   * Where they ask from now on; undefined: nowhere, until told otherwise. Connections to the one
   * before are left.
   */
  turnTo(address: string | undefined): void;
  /** Sends one more request, which the provider does not answer; returns its serial number. */
  askInVain(): string;
  /** Resolves when so many more requests have ended. */
  ended(requests: number): Promise<void>;
  /** Resolves when so many more replies have come whole. */
  more(replies: number): Promise<void>;
  /** Lets the requests that are on their way end, and sends no more. */
  stop(): Promise<void>;
}

export function createCrowd(size: number, random: Random): Crowd {
  const told: Told[] = [];
  let target: Target | undefined;
  let turned = () => {};
  let turn = new Promise<void>((resolve) => (turned = resolve));
  let stopped = false;
  const replies = () => told.filter(({ verdict }) => verdict === "whole").length;
  async function client(): Promise<void> {
    while (!stopped) {
      if (!target) await turn;
      else told.push(await ask(target, random));
    }
  }
  const clients = Array.from({ length: size }, client);
  const turnTo = (address: string | undefined) => {
    target =
      address === undefined
        ? undefined
        : { url: address, agent: new http.Agent({ keepAlive: true }) };
    turned();
    turn = new Promise<void>((resolve) => (turned = resolve));
  };
  return {
    told,
    turnTo,
    askInVain() {
      const serial = nextSerial(UNANSWERED);
      clients.push(
        ask(target!, random, serial).then((each) => {
          told.push(each);
        }),
      );
      return serial;
    },
    ended: async (count) => {
      const enough = told.length + count;
      await waitFor(() => told.length >= enough, `${count} requests to end`, LATE_MS);
    },
    more: async (count) => {
      const enough = replies() + count;
      await waitFor(() => replies() >= enough, `${count} whole replies`, LATE_MS);
    },
    async stop() {
      stopped = true;
      turned();
      await within(Promise.all(clients), "the last requests to end", LATE_MS);
    },
  };
}

// ---- the books, read as anybody can read them

type Line = Record<string, any>;
interface Entry {
  readonly open: Line;
  readonly settle: Line;
}

export interface Books {
  readonly entries: readonly Entry[];
  readonly opens: number;
  readonly segments: number;
  readonly violations: readonly string[];
}

/**
 * Every open with its settle, out of the spend log of some data_dirs; what is not one open and one
 * settle is told.
 */
export function readSpend(dataDirs: readonly string[]): Books {
  const entries: Entry[] = [];
  const violations: string[] = [];
  const everOpened = new Set<string>();
  let segments = 0;
  for (const dir of dataDirs.map((dataDir) => join(dataDir, "spend"))) {
    for (const name of readdirSync(dir)
      .filter((name) => name.endsWith(".jsonl"))
      .sort()) {
      segments += 1;
      if (!/^\d{4}-\d\d-\d\d\.\d{4}\.jsonl$/.test(name))
        violations.push(`a segment with the name ${name}`);
      const text = readFileSync(join(dir, name), "utf8");
      if (text !== "" && !text.endsWith("\n"))
        violations.push(`${name}: its last line is torn: ${text.slice(-80)}`);
      const open = new Map<string, Line>();
      for (const line of text.split("\n").slice(0, -1)) {
        let record: Line;
        try {
          record = JSON.parse(line);
        } catch {
          violations.push(`${name}: no JSON: ${line.slice(0, 200)}`);
          continue;
        }
        const id: string = record["spend_id"];
        if (!/^sp_[0-9a-f]{32}$/.test(id)) violations.push(`${name}: spend_id ${id}`);
        if (record["type"] === "open") {
          if (everOpened.has(id)) violations.push(`${id} in ${name}: opened twice`);
          everOpened.add(id);
          open.set(id, record);
        } else if (record["type"] === "settle") {
          const opened = open.get(id);
          if (opened) entries.push({ open: opened, settle: record });
          else violations.push(`${id} in ${name}: doubled: settled twice, or never opened`);
          open.delete(id);
        } else violations.push(`${name}: a line of type ${record["type"]}`);
      }
      for (const id of open.keys())
        violations.push(`${id} in ${name}: lost: opened, never settled`);
    }
  }
  return { entries, opens: everOpened.size, segments, violations };
}

export const USAGE_COLUMNS = [
  "usage_id",
  "gateway_request_id",
  "account",
  "key_id",
  "model",
  "provider",
  "status",
  ...COUNTS,
  "cost",
  "currency",
  "started_at",
  "ended_at",
  "cache_write_tokens",
] as const;

/** Every line of `usage/*.jsonl`. */
export const readUsageFiles = (dataDirs: readonly string[]): Line[] =>
  dataDirs.flatMap((dataDir) => {
    const dir = join(dataDir, "usage");
    const files = readdirSync(dir).filter((name) => /^\d{4}-\d\d\.jsonl$/.test(name));
    return files.flatMap((name) =>
      readFileSync(join(dir, name), "utf8")
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Line),
    );
  });

/** The same columns of the table `usage_records`, as the file store writes them. */
export const USAGE_QUERY = `SELECT ${USAGE_COLUMNS.map((column) => {
  if (column === "cost") return "cost::text";
  if (column.endsWith("_at"))
    return `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS ${column}`;
  return column.endsWith("_tokens") ? `${column}::float8` : column;
}).join(", ")}, details FROM usage_records`;

/** What a usage record must be. */
function expectedRecord({ open, settle }: Entry): Line {
  const {
    spend_id: usage_id,
    gateway_request_id,
    account,
    key_id,
    model_served,
    model_requested,
    provider,
    status,
    usage,
    cost,
    currency,
    time,
  } = settle;
  return {
    usage_id,
    gateway_request_id,
    account,
    key_id,
    model: model_served ?? model_requested,
    provider,
    status,
    ...usage,
    cost,
    currency,
    started_at: open["time"],
    ended_at: time,
    cache_write_tokens: usage["cache_write_tokens"] ?? 0,
    details: detailsOf(settle),
  };
}

const textOf = (record: Line): string =>
  JSON.stringify(
    [
      ...USAGE_COLUMNS,
      ...Object.keys(record).filter((name) => !USAGE_COLUMNS.includes(name as never)),
    ].map((name) => [name, sorted(record[name])]),
  );

/** With the members of objects in one order: PostgreSQL has one of its own. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .map(([name, member]) => [name, sorted(member)] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
}

/** The sums of some records, by model. */
export function sumsOf(
  records: readonly Line[],
): Map<string, { requests: number; pico: bigint; completion_tokens: number }> {
  const sums = new Map<string, { requests: number; pico: bigint; completion_tokens: number }>();
  for (const { model, cost, completion_tokens } of records) {
    const sum = sums.get(model) ?? { requests: 0, pico: 0n, completion_tokens: 0 };
    sums.set(model, {
      requests: sum.requests + 1,
      pico: sum.pico + pico(cost),
      completion_tokens: sum.completion_tokens + completion_tokens,
    });
  }
  return sums;
}

const count = (counts: Map<string, number>, key: string, by = 1) =>
  counts.set(key, (counts.get(key) ?? 0) + by);
const ofClient = (account: string, id: string | undefined, sentId: boolean): string =>
  JSON.stringify([account, sentId ? id : "(made by the gateway)"]);

/** What the clients and the provider saw against the spend log. */
export function checkWitnesses(
  { entries }: Books,
  told: readonly Told[],
  seen: ReadonlySet<string>,
): string[] {
  const violations: string[] = [];
  const [opened, sent, called] = [
    new Map<string, number>(),
    new Map<string, number>(),
    new Map<string, number>(),
  ];
  for (const { open } of entries)
    count(
      opened,
      ofClient(
        open["account"],
        open["gateway_request_id"],
        !/^req_[0-9a-f]{32}$/.test(open["gateway_request_id"]),
      ),
    );
  for (const { account, id, sentId, serial } of told) {
    count(sent, ofClient(account, id, sentId));
    if (seen.has(serial)) count(called, ofClient(account, id, sentId));
  }
  for (const [who, times] of called)
    if ((opened.get(who) ?? 0) < times)
      violations.push(
        `lost: ${who}: ${times} requests reached the provider, ${opened.get(who) ?? 0} were opened`,
      );
  for (const [who, times] of opened)
    if ((sent.get(who) ?? 0) < times)
      violations.push(
        `doubled: ${who}: ${sent.get(who) ?? 0} requests were sent, ${times} were opened`,
      );

  // A reply is found once: what two clients got under one request id must be in the books twice.
  const left = new Map<string, Line[]>();
  const place = (account: string, id: string, status: string) =>
    JSON.stringify([account, id, status]);
  for (const { settle } of entries) {
    const key = place(settle["account"], settle["gateway_request_id"], settle["status"]);
    left.set(key, [...(left.get(key) ?? []), settle]);
  }
  function find(
    account: string,
    id: string | undefined,
    status: string,
    fits: (settle: Line) => boolean,
  ): boolean {
    const list = left.get(place(account, id ?? "", status)) ?? [];
    const at = list.findIndex(fits);
    if (at >= 0) list.splice(at, 1);
    return at >= 0;
  }
  const whole = told.filter(({ verdict }) => verdict === "whole");
  // Those that know their usage first: they fit fewer lines.
  for (const { account, id, model, usage, serial } of whole.sort(
    (a, b) => Number(!a.usage) - Number(!b.usage),
  )) {
    const fits = (settle: Line) =>
      settle["model_served"] === model &&
      settle["http_status"] === 200 &&
      (!usage || COUNTS.every((name) => settle["usage"][name] === usage[name]));
    if (!find(account, id, "completed", fits))
      violations.push(
        `lost: ${serial} of ${account} (${id}) got a whole reply of ${model} with ${JSON.stringify(usage)}, which is not in the books as completed`,
      );
  }
  // The one error that is told of a request that was not opened is that of a gateway that stops.
  for (const { account, id, status, code, serial } of told.filter(
    ({ verdict, code }) => verdict === "error" && code !== "server_overloaded",
  )) {
    const fits = (settle: Line) =>
      settle["http_status"] === status && settle["error_code"] === code;
    if (!find(account, id, "failed", fits))
      violations.push(
        `lost: ${serial} of ${account} (${id}) was told ${status} ${code}, which is not in the books as failed`,
      );
  }
  return violations;
}

/** Each line for itself: whose it is, and what it cost. */
export function checkEntries({ entries }: Books): string[] {
  const violations: string[] = [];
  for (const { open, settle } of entries) {
    const id = open["spend_id"];
    for (const name of ["gateway_request_id", "account", "key_id", "model_requested"])
      if (open[name] !== settle[name])
        violations.push(`${id}: ${name} was opened as ${open[name]}, settled as ${settle[name]}`);
    const { usage, status, cost, model_served } = settle;
    if (pico(cost) !== priceOf(model_served, usage))
      violations.push(
        `${id}: costs ${cost}, by its figures ${priceOf(model_served, usage)} pico-units`,
      );
    if (usage["total_tokens"] !== usage["prompt_tokens"] + usage["completion_tokens"])
      violations.push(`${id}: total_tokens`);
    if (
      usage["prompt_tokens"] !==
      usage["prompt_cache_hit_tokens"] + usage["prompt_cache_miss_tokens"]
    )
      violations.push(`${id}: cache classes`);
    if (!["completed", "failed", "cancelled", "interrupted"].includes(status))
      violations.push(`${id}: status ${status}`);
    if (status === "interrupted" && (cost !== "0" || usage["total_tokens"] !== 0))
      violations.push(`${id}: interrupted, and costs ${cost}`);
    if (status === "completed" && usage["total_tokens"] === 0)
      violations.push(`${id}: completed, without tokens`);
    if (status === "failed" && settle["first_token_ms"] === null && cost !== "0")
      violations.push(`${id}: failed before any output, and costs ${cost}`);
  }
  return violations;
}

/** The usage records against the spend log: each settled request once, as it was settled. */
export function checkRecords({ entries }: Books, records: readonly Line[]): string[] {
  const violations: string[] = [];
  const expected = new Map(
    entries.map((entry) => [entry.settle["spend_id"] as string, textOf(expectedRecord(entry))]),
  );
  const found = new Set<string>();
  for (const record of records) {
    const id: string = record["usage_id"];
    if (found.has(id)) violations.push(`doubled: ${id} is in the usage records twice`);
    found.add(id);
    if (!expected.has(id)) violations.push(`${id} is in the usage records, but was never settled`);
    else if (expected.get(id) !== textOf(record))
      violations.push(`${id}: settled as ${expected.get(id)}, recorded as ${textOf(record)}`);
  }
  for (const id of expected.keys())
    if (!found.has(id)) violations.push(`lost: ${id} was settled and is not in the usage records`);
  return violations;
}

/** `audit` of one data_dir, against a count and a sum of our own. */
export async function checkAudit(
  program: Program,
  config: string,
  dataDir: string,
): Promise<string[]> {
  const { code, stdout, stderr } = await runToEnd(program, ["audit", "--json", "--config", config]);
  if (code !== 0) return [`audit of ${dataDir}: exit ${code}: ${stdout.slice(0, 2_000)} ${stderr}`];
  const found = JSON.parse(stdout);
  const { entries } = readSpend([dataDir]);
  const sum = entries.reduce((total, { settle }) => total + pico(settle["cost"]), 0n);
  const right =
    found.ok === true &&
    found.differences.length === 0 &&
    found.in_flight === 0 &&
    found.settled === entries.length &&
    found.recorded === entries.length &&
    pico(found.cost_settled.USD ?? "0") === sum &&
    pico(found.cost_recorded.USD ?? "0") === sum;
  return right
    ? []
    : [
        `audit of ${dataDir}: ${stdout.slice(0, 2_000)}, against ${entries.length} settled for ${sum} pico-units`,
      ];
}

/** Every statement that there can be, against sums of our own over the spend log. */
export async function checkStatements(
  program: Program,
  config: string,
  { entries }: Books,
): Promise<string[]> {
  const records = entries.map(expectedRecord);
  const months = [...new Set(records.map(({ ended_at }) => String(ended_at).slice(0, 7)))];
  const check = async (account: string, month: string): Promise<string[]> => {
    const { code, stdout, stderr } = await runToEnd(program, [
      "billing",
      "statement",
      "--account",
      account,
      "--month",
      month,
      "--format",
      "json",
      "--config",
      config,
    ]);
    if (code !== 0) return [`statement of ${account}, ${month}: exit ${code}: ${stderr}`];
    const sums = sumsOf(
      records.filter(
        (record) => record["account"] === account && String(record["ended_at"]).startsWith(month),
      ),
    );
    const { lines, total } = JSON.parse(stdout);
    const ours = [...sums]
      .map(
        ([model, { requests, pico, completion_tokens }]) =>
          `${model} ${requests} ${completion_tokens} ${pico}`,
      )
      .sort();
    const theirs = lines
      .map(
        (line: Line) =>
          `${line["model"]} ${line["requests"]} ${line["completion_tokens"]} ${pico(line["cost"])}`,
      )
      .sort();
    const right =
      ours.join("; ") === theirs.join("; ") &&
      pico(total.cost) === [...sums.values()].reduce((sum, { pico }) => sum + pico, 0n);
    return right
      ? []
      : [`statement of ${account}, ${month}: ${stdout} ${stderr}, against ${ours.join("; ")}`];
  };
  return (
    await Promise.all(months.flatMap((month) => ACCOUNTS.map((account) => check(account, month))))
  ).flat();
}

/**
 * The chain of each segment, by its definition: every line has a seal that continues the line
 * before, and each last seal that a first line names is there.
 */
export function checkChains(dataDirs: readonly string[]): string[] {
  const violations: string[] = [];
  for (const dir of dataDirs.map((dataDir) => join(dataDir, "spend"))) {
    const seals = new Set<string>();
    const named: string[] = [];
    for (const name of readdirSync(dir).filter((file) => file.endsWith(".jsonl"))) {
      let previous = "0".repeat(64);
      const lines = readFileSync(join(dir, name), "utf8").split("\n").slice(0, -1);
      lines.forEach((line, index) => {
        const [, start, seal = ""] = /^(.*),"seal":"([0-9a-f]{64})"\}$/s.exec(line) ?? [];
        const expected = createHash("sha256").update(`${previous}${start}}`).digest("hex");
        if (seal !== expected) violations.push(`${name}, line ${index + 1}: its seal is wrong`);
        previous = seal;
        seals.add(seal);
      });
      const { chain } = JSON.parse(lines[0] ?? "{}");
      for (const tip of chain?.previous ?? []) named.push(tip.seal);
      if (lines.length > 0 && !chain) violations.push(`${name}: its first line names no others`);
    }
    for (const seal of named)
      if (!seals.has(seal)) violations.push(`lost: a first line names the seal ${seal}`);
  }
  return violations;
}

/** `seal verify` of one data_dir. */
export async function checkSeals(program: Program, config: string): Promise<string[]> {
  const args = ["seal", "verify", "--json", "--config", config];
  const { code, stdout, stderr } = await runToEnd(program, args);
  if (code !== 0) return [`seal verify: exit ${code}: ${stdout.slice(0, 2_000)} ${stderr}`];
  const { segments, months } = JSON.parse(stdout);
  const notProved = [
    ...segments.filter((each: Line) => each["unsealed"] + each["torn_bytes"] > 0),
    ...months.filter((each: Line) => each["not_proved"] > 0),
  ];
  return notProved.map((each) => `seal verify: not proved: ${JSON.stringify(each)}`);
}

// ---- the kills

export interface CrashOptions {
  readonly program: Program;
  /** An empty folder, for the data_dirs and the configurations. */
  readonly folder: string;
  readonly kills: number;
  readonly seed: number;
  /** Gateways at a time: two of them on one data_dir are each other's rescuers. */
  readonly gateways?: number;
  /** Data_dirs over which they are spread. */
  readonly dataDirs?: number;
  /** Clients of each. */
  readonly clients?: number;
  /** After how many requests of their clients most of them die, at the most. */
  readonly lifeRequests?: number;
  /** Absent: the file store. */
  readonly store?: string;
  /** The spend log is sealed, and its chains are checked too. */
  readonly seals?: boolean;
  /** Absent: the files are read. */
  readonly readUsage?: () => Promise<Line[]>;
  /** Runs beside the gateways until it is told to stop; its own kills are counted by itself. */
  readonly meanwhile?: (stop: AbortSignal, random: Random) => Promise<void>;
  /** Told now and then. */
  readonly progress?: (kills: number) => void;
}

export interface CrashFigures {
  readonly figures: Readonly<Record<string, number>>;
  readonly violations: readonly string[];
}

/**
 * When a process dies: "asking" while a request of its own waits for the provider, "serving" after
 * so many of its clients' requests, "rotating" after it has begun another segment and so many more,
 * "starting" and "syncing" so many milliseconds after its start.
 */
interface Death {
  readonly kind: "asking" | "starting" | "syncing" | "serving" | "rotating";
  readonly after: number;
}

/** Whole replies that are waited for from each gateway that ends in good order. */
const LAST_REPLIES = 30;

/** What is on stderr, but for what the provider does. */
export const notable = (stderr: string): string =>
  stderr
    .split("\n")
    .filter((line) => !/"event":"(attempt_failed|reply_cut)"/.test(line))
    .join("\n");

/**
 * Kills until there were `kills`, then ends one gateway in good order, and goes through the books.
 */
export async function crash({
  program,
  folder,
  kills,
  seed,
  gateways = 2,
  dataDirs = 1,
  clients = 8,
  lifeRequests = 40,
  store,
  seals = false,
  readUsage,
  meanwhile,
  progress,
}: CrashOptions): Promise<CrashFigures> {
  const random = createRandom(seed);
  const provider = await startCrashProvider(random);
  const dirs = Array.from({ length: dataDirs }, (_, index) => join(folder, `data-${index}`));
  const configs = dirs.map((dataDir, index) => {
    mkdirSync(dataDir);
    const file = join(folder, `gateway-${index}.json`);
    const options = { dataDir, provider: provider.url, store, seals };
    writeFileSync(file, JSON.stringify(crashConfig(options)));
    return file;
  });
  const violations: string[] = [];
  const killed: Record<Death["kind"], number> = {
    asking: 0,
    starting: 0,
    syncing: 0,
    serving: 0,
    rotating: 0,
  };
  let left = kills;
  let startMs = 300; // about how long it takes to listen

  /** The first of each lane catches a request for certain; the others are left to chance. */
  const death = (isFirst: boolean): Death => {
    if (isFirst) return { kind: "asking", after: 0 };
    const chance = random.random();
    if (chance < 0.2) return { kind: "starting", after: random.between(0, startMs * 1.3) };
    if (chance < 0.3)
      return { kind: "syncing", after: random.between(startMs * 0.3, startMs * 1.5) };
    const after = random.between(0, lifeRequests);
    return { kind: chance < 0.9 ? "serving" : "rotating", after };
  };

  /** Nothing but diagnostics may be on stderr; a last line may have died half-way. */
  const complaints = (stderr: string) =>
    stderr
      .split("\n")
      .slice(0, -1)
      .filter((line) => !/^(chat-gateway: )?\{.*"event":"(?!internal_error)\w+".*\}$/.test(line));

  /** Resolves when a gateway that listens has begun another segment in this data_dir. */
  async function rotation(dir: string): Promise<void> {
    const names = () => readdirSync(join(dir, "spend")).filter((name) => name.endsWith(".jsonl"));
    const before = new Set(names());
    await waitFor(() => names().some((name) => !before.has(name)), "another segment", LATE_MS);
  }

  async function lane(index: number): Promise<Crowd> {
    const crowd = createCrowd(clients, random);
    const config = configs[index % configs.length]!;
    for (let isFirst = true; left > 0 && violations.length === 0; isFirst = false) {
      left -= 1;
      const { kind, after } = death(isFirst);
      const began = performance.now();
      const running = launch(
        program,
        kind === "syncing"
          ? ["usage", "sync", "--once", "--config", config]
          : ["serve", "--config", config],
      );
      if (kind !== "syncing") running.address.then(crowd.turnTo, () => undefined);
      if (kind !== "starting" && kind !== "syncing") {
        await within(running.address, "the line that says where it listens", LATE_MS)
          .then(async () => {
            startMs = Math.round((startMs * 3 + performance.now() - began) / 4);
            if (kind === "asking") await provider.reached(crowd.askInVain());
            if (kind === "rotating") await rotation(dirs[index % dirs.length]!);
            if (kind !== "asking") await crowd.ended(after);
          })
          .catch((error: Error) => violations.push(error.message));
      } else await Promise.race([pause(after), running.ended]); // the moment is what is tried
      crowd.turnTo(undefined);
      running.child.kill("SIGKILL");
      const { code, signal, stderr } = await running.ended;
      if (signal === "SIGKILL") {
        killed[kind] += 1;
        if (kind !== "syncing" || !meanwhile)
          violations.push(...complaints(stderr).map((line) => `on stderr: ${line}`));
        progress?.(kills - left);
      } else {
        // A command may be quicker than its murderer, and may find no database; a gateway may not
        // end.
        left += 1;
        if (kind !== "syncing" || (code !== 0 && !meanwhile))
          violations.push(`${kind}: it ended with ${code ?? signal}: ${notable(stderr)}`);
      }
    }
    return crowd;
  }

  const stop = new AbortController();
  const beside = meanwhile?.(stop.signal, random);
  const crowds = await Promise.all(Array.from({ length: gateways }, (_, index) => lane(index)));
  stop.abort();
  await beside;
  // The last ones live on, and end in good order under load.
  await Promise.all(
    configs.map(async (config, index) => {
      const running = launch(program, ["serve", "--config", config]);
      crowds[index]!.turnTo(
        await within(running.address, "the line that says where it listens", LATE_MS),
      );
      await crowds[index]!.more(LAST_REPLIES);
      running.child.kill("SIGTERM");
      await Promise.all([running.ended, crowds[index]!.stop()]);
      const { code, stderr } = await running.ended;
      if (code !== 0) violations.push(`SIGTERM: it ended with ${code}: ${notable(stderr)}`);
    }),
  );
  await Promise.all(crowds.map((crowd) => crowd.stop()));
  provider.close();

  for (const config of configs) {
    const { code, stderr } = await runToEnd(program, [
      "usage",
      "sync",
      "--once",
      "--config",
      config,
    ]);
    if (code !== 0) violations.push(`usage sync --once: exit ${code}: ${stderr}`);
  }
  const books = readSpend(dirs);
  const records = readUsage ? await readUsage() : readUsageFiles(dirs);
  const told = crowds.flatMap((crowd) => crowd.told);
  violations.push(
    ...books.violations,
    ...checkEntries(books),
    ...checkWitnesses(books, told, provider.seen),
    ...checkRecords(books, records),
    ...(seals ? checkChains(dirs) : []),
  );
  if (seals) for (const config of configs) violations.push(...(await checkSeals(program, config)));
  const audits = configs.map((config, index) => checkAudit(program, config, dirs[index]!));
  violations.push(
    ...(await Promise.all([...audits, checkStatements(program, configs[0]!, books)])).flat(),
  );

  const by = (status: string) =>
    books.entries.filter(({ settle }) => settle["status"] === status).length;
  if (by("interrupted") < killed.asking)
    violations.push(
      `lost: ${killed.asking} requests were caught at the provider, ${by("interrupted")} are in the books as interrupted`,
    );
  const verdicts = (verdict: Told["verdict"]) =>
    told.filter((each) => each.verdict === verdict).length;
  const such = (word: string) => violations.filter((violation) => violation.includes(word)).length;
  const figures = {
    kills: Object.values(killed).reduce((sum, each) => sum + each),
    ...Object.fromEntries(
      Object.entries(killed).map(([kind, times]) => [`killed while ${kind}`, times]),
    ),
    requests: told.length,
    "received whole": verdicts("whole"),
    "told an error": verdicts("error"),
    "cut or left": verdicts("cut"),
    segments: books.segments,
    opened: books.opens,
    settled: books.entries.length,
    ...Object.fromEntries(
      ["completed", "failed", "cancelled", "interrupted"].map((status) => [status, by(status)]),
    ),
    records: records.length,
    lost: such("lost"),
    doubled: such("doubled"),
    violations: violations.length,
  };
  return { figures, violations };
}
