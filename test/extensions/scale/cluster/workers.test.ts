// Several processes on one port: they share the limits of an account and the admin listener, each
// writes its own part of the books, one that dies is replaced and leaves nothing behind, and
// signals reach all of them. These are real processes, which are really killed.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { constants, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { connect, createServer, Socket, type AddressInfo } from "node:net";
import { join } from "node:path";
import { describe, it, type TestContext } from "node:test";
import {
  assertOneLine,
  ended,
  lines,
  run,
  type Running,
  type RunOptions,
} from "../../../support/command.ts";
import { folder, replace } from "../../../support/folder.ts";
import { configFor, demo, KEY, merge, user } from "../../../support/gateway.ts";
import { launch, quickest } from "../../../support/program.ts";
import {
  chunk,
  event,
  speak,
  startProvider,
  status as answerWith,
  type Asked,
  type Behaviour,
  type Provider,
} from "../../../support/provider.ts";
import {
  entries,
  linesOf,
  segmentPath,
  segments,
  settles,
  type Line,
} from "../../../support/books.ts";
import { todays } from "../../../support/todays.ts";
import { waitFor, within } from "../../../support/wait.ts";

/** A process takes a while to start, most of all beside others. */
const LONG_MS = 120_000;

// ---- clients: each request on a connection of its own, which the workers get in turn

interface Reply {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  text(): string;
  /** All of it, or broken off. */
  readonly over: Promise<"whole" | "cut">;
  readonly socket: Socket;
}

interface AskOptions {
  readonly key?: string;
  readonly id?: string;
  readonly agent?: http.Agent;
}

/** Resolves with the headers. */
async function send(
  url: string,
  method: string,
  body: object | undefined,
  { key = KEY, id, agent }: AskOptions = {},
): Promise<Reply> {
  const headers = {
    authorization: `Bearer ${key}`,
    "content-type": "application/json",
    ...(id !== undefined && { "x-request-id": id }),
  };
  const req = http.request(url, { method, headers, agent: agent ?? false });
  req.end(body && JSON.stringify(body));
  const [res] = (await within(
    once(req, "response"),
    `the headers of an answer from ${url}`,
    LONG_MS,
  )) as [http.IncomingMessage];
  let text = "";
  res.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  res.on("error", () => undefined);
  const over = new Promise<"whole" | "cut">((resolve) =>
    res.on("close", () => resolve(res.complete ? "whole" : "cut")),
  );
  return {
    status: res.statusCode!,
    headers: res.headers,
    text: () => text,
    over,
    socket: res.socket,
  };
}

const ask = (address: string, body: object = {}, options: AskOptions = {}): Promise<Reply> =>
  send(
    `${address}/v1/chat/completions`,
    "POST",
    { model: "m", messages: user("Hello."), ...body },
    options,
  );

async function whole(reply: Reply | Promise<Reply>): Promise<Reply> {
  assert.equal(await within((await reply).over, "the end of an answer", LONG_MS), "whole");
  return reply;
}
const status = async (reply: Promise<Reply>): Promise<number> => (await whole(reply)).status;
const get = async (url: string): Promise<string> =>
  (await whole(send(url, "GET", undefined))).text();

/** A stream that has begun, and goes on when the provider is told to. */
const held: Behaviour = ({ res }) => {
  res.writeHead(200, { "content-type": "text/event-stream" });
  res.write(event(chunk({ content: "Fi" })));
};
const finish = ({ res }: Asked): void => {
  res.end(event(chunk({ content: "ne." }, "stop")));
};
const begun = async (reply: Reply): Promise<Reply> => {
  assert.equal(reply.status, 200, reply.text());
  await waitFor(() => reply.text().includes("Fi"), "the first text");
  return reply;
};

function assertNoPlace(reply: Reply): void {
  assert.equal(reply.status, 429, reply.text());
  assert.equal(JSON.parse(reply.text()).error.code, "concurrency_limit_exceeded");
  assert.equal(reply.headers["retry-after"], "1");
}

// ---- the gateway and its processes

interface Bench {
  readonly gw: Running;
  readonly address: string;
  readonly provider: Provider;
  readonly dir: string;
  readonly file: string;
  /** Puts what the file said first, with this over it, in the file. */
  write(over: object): void;
  workers(): number[];
  /** The diagnostics of this kind. */
  told(name: string): Line[];
  readStatus(): Promise<Line>;
  /** The value of a sample without, or with these, labels. */
  readMetric(sample: string): Promise<number>;
}

/** The processes that one has started. */
function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
      .trim()
      .split(/\s+/)
      .filter(Boolean)
      .map(Number);
  } catch {
    const table = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" })
      .trim()
      .split("\n")
      .map((row) => row.trim().split(/\s+/).map(Number));
    return table.flatMap(([child, parent]) => (parent === pid ? [child!] : []));
  }
}

const diagnostics = (stderr: string): Line[] =>
  lines(stderr).flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as Line] : []));

async function bench(
  t: TestContext,
  over: object = {},
  behaviours: Readonly<Record<string, Behaviour>> = {},
  options: RunOptions & { readonly named?: false } = {},
): Promise<Bench> {
  const provider = await startProvider(t, { m: speak("Fine."), held, ...behaviours });
  const dir = folder();
  const cwd = folder();
  const file = join(cwd, "gateway.json");
  const config = configFor(
    provider.url,
    ["m", "held"],
    merge(
      { data_dir: dir, server: { workers: 3, drain_ms: 600_000 }, usage: { sync_ms: 50 } },
      over,
    ) as object,
  );
  const write = (more: object) => replace(file, JSON.stringify(merge(config, more)));
  write({});
  const gw = run(t, options.named === false ? ["--port", "0"] : ["--config", file], {
    cwd,
    ...options,
  });
  const address = await gw.address();
  const admin = /admin on (http:[^\s;)]+)/.exec(gw.stdout())![1]!;
  return {
    gw,
    address,
    provider,
    dir,
    file,
    write,
    workers: () => childrenOf(gw.child.pid!),
    told: (name) => diagnostics(gw.stderr()).filter((line) => line["event"] === name),
    readStatus: async () => JSON.parse(await get(`${admin}/status`)) as Line,
    readMetric: async (sample) =>
      Number(
        lines(await get(`${admin}/metrics`))
          .find((line) => line.startsWith(`${sample} `))
          ?.split(" ")
          .at(-1) ?? NaN,
      ),
  };
}

/** Looks until `sound` holds: for what has no event of its own on this side. */
async function until(sound: () => Promise<boolean>, what: string): Promise<void> {
  const end = performance.now() + LONG_MS;
  while (!(await sound())) assert.ok(performance.now() < end, `waited ${LONG_MS} ms for ${what}`);
}

/** As many as there should be, all of them serving. */
const complete = ({ readStatus }: Bench, count = 3): Promise<void> =>
  until(async () => (await readStatus())["workers"] === count, `${count} workers that serve`);

/**
 * As many requests as to reach all workers, however connections are given to them; the statuses
 * that came of it.
 */
async function everywhere(address: string, body: object, key = KEY): Promise<number[]> {
  const codes = new Set<number>();
  for (let round = 0; round < 5; round += 1) {
    const replies = await Promise.all(
      Array.from({ length: 12 }, () => whole(ask(address, body, { key }))),
    );
    replies.forEach((reply) => {
      codes.add(reply.status);
    });
  }
  return [...codes];
}

/**
 * Whether nobody listens there any more. What is accepted at the very end, and handed to nobody, is
 * not waited for.
 */
async function refused(address: string): Promise<boolean> {
  const socket = connect(Number(new URL(address).port), "127.0.0.1");
  return once(socket, "connect")
    .then(
      () => false,
      () => true,
    )
    .finally(() => socket.destroy());
}

async function stop(gw: Running): Promise<void> {
  gw.child.kill("SIGTERM");
  const { code, stderr } = await within(
    gw.ended,
    "the end of all processes after SIGTERM",
    LONG_MS,
  );
  assert.equal(code, 0, stderr);
}

const audit = async (t: TestContext, file: string): Promise<void> => {
  const { code, stdout, stderr } = await ended(t, ["audit", "--config", file]);
  assert.equal(code, 0, stdout + stderr);
};

describe("several workers", { concurrency: 2 }, () => {
  it("serve one port, told in one line; each writes a segment of its own; the books are right", async (t) => {
    const { gw, address, workers, dir, file } = await bench(t);
    assert.equal(workers().length, 3);
    const linesIn = (name: string) =>
      linesOf(segmentPath(dir, name)).filter(({ type }) => type === "settle").length;
    let asked = 0;
    await until(async () => {
      assert.deepEqual(await everywhere(address, {}), [200]);
      asked += 60;
      return segments(dir).every((name) => linesIn(name) > 0);
    }, "each worker to serve some");
    assert.equal(segments(dir).length, 3);
    const [first, ...log] = await waitFor(
      () => lines(gw.stdout()).length === asked + 1 && lines(gw.stdout()),
      "the access log after the address",
    );
    assert.match(
      first!,
      /^chat-gateway listens on http:\/\/127\.0\.0\.1:\d+ \(.*gateway\.json; console and admin on http:\/\/127\.0\.0\.1:\d+\)$/,
    );
    for (const line of log) assert.equal(JSON.parse(line).status, 200);
    await stop(gw);
    assert.equal(gw.stderr(), "");
    assert.equal(entries(dir).length, asked);
    await audit(t, file);
  });

  it("know each other's receipts, as soon as a reply is over and after the requests are copied", async (t) => {
    const at = await bench(t);
    await complete(at);
    const receipts = async (id: string) =>
      whole(send(`${at.address}/v1/requests/${id}`, "GET", undefined));
    for (let round = 0; round < 8; round += 1) {
      const id = `round-${round}`;
      await whole(ask(at.address, { stream: round % 2 === 0 }, { id }));
      const replies = await Promise.all(Array.from({ length: 9 }, () => receipts(id)));
      for (const reply of replies) {
        assert.equal(reply.status, 200, reply.text());
        assert.equal(JSON.parse(reply.text()).data.length, 1);
      }
    }
    assert.ok(segments(at.dir).length > 1, "several of them have settled");
    await stop(at.gw);
  });

  it("one that stands still is left out of what is told, and comes back", async (t) => {
    const { gw, workers, readStatus } = await bench(t);
    const [still] = workers();
    process.kill(still!, "SIGSTOP");
    t.after(() => process.kill(still!, "SIGCONT"));
    for (let n = 0; n < 12; n += 1) readStatus().catch(() => undefined);
    await until(async () => (await readStatus())["workers"] === 2, "the others to be told of");
    process.kill(still!, "SIGCONT");
    await until(async () => (await readStatus())["workers"] === 3, "it to be told of again");
    assert.equal(gw.stderr(), "");
  });

  it("one that hangs is killed when the others have had the time to end", async (t) => {
    const { gw, workers } = await bench(t, { server: { drain_ms: 0 } });
    process.kill(workers()[0]!, "SIGSTOP");
    gw.child.kill("SIGTERM");
    const [code] = await within(once(gw.child, "exit"), "the gateway to stop");
    assert.equal(code, 0);
  });

  it("share an account's window: of 60 requests at once exactly 20 are admitted; status and metrics are sums", async (t) => {
    const { gw, address, dir, provider, readStatus, readMetric } = await bench(t, {
      limits: { rpm: 20 },
    });
    const replies = await Promise.all(Array.from({ length: 60 }, () => whole(ask(address))));
    const admitted = replies.filter((reply) => reply.status === 200);
    assert.deepEqual(
      [
        admitted.length,
        replies.filter((reply) => reply.status === 429).length,
        provider.asked.length,
      ],
      [20, 40, 20],
    );
    const left = admitted
      .map(({ headers }) => Number(headers["x-ratelimit-remaining-requests"]))
      .sort((a, b) => b - a);
    assert.deepEqual(
      left,
      Array.from({ length: 20 }, (_, index) => 19 - index),
      "each admission, by whatever worker, counts one down",
    );
    await waitFor(() => lines(gw.stdout()).length === 61, "the access log of all");
    const { workers, in_flight, limits } = await readStatus();
    assert.deepEqual(
      [workers, in_flight, limits.accounts],
      [3, 0, [{ account: "acme", rpm: 20, used: 20 }]],
    );
    const path = 'path="/v1/chat/completions"';
    assert.equal(
      await readMetric(`chat_gateway_requests_total{${path},status="200",model="m"}`),
      20,
    );
    assert.equal(
      await readMetric(`chat_gateway_requests_total{${path},status="429",model=""}`),
      40,
    );
    const refused = 'account="acme",code="rate_limit_exceeded"';
    assert.equal(await readMetric(`chat_gateway_refusals_total{${refused}}`), 40);
    assert.equal(
      await readMetric('chat_gateway_attempts_total{provider="lab",model="m",outcome="completed"}'),
      20,
    );
    assert.equal(await readMetric("chat_gateway_workers"), 3);
    assert.equal(settles(dir).length, 20);
  });

  it("show a breaker as open that is open in any one of them", async (t) => {
    const down = ["down 1", "down 2", "down 3"]; // a request each, which the workers get in turn: no two models are down in the same one
    const over = {
      models: Object.fromEntries(down.map((name) => [name, { provider: "lab" }])),
      aliases: { any: { models: ["m", ...down] } },
      breaker: { failures: 1 },
    };
    const { address, readStatus, readMetric } = await bench(
      t,
      over,
      Object.fromEntries(down.map((name) => [name, answerWith(500)])),
    );
    for (const model of down) assert.equal(await status(ask(address, { model })), 503);
    const { models, aliases } = await readStatus();
    const states = (of: readonly Line[], state: (each: Line) => unknown) =>
      Object.fromEntries(of.map((each) => [each["model"], state(each)]));
    const open = { "down 1": "open", "down 2": "open", "down 3": "open" };
    assert.deepEqual(
      states(models, ({ breaker }) => breaker.state),
      { m: "closed", held: "closed", ...open },
    );
    assert.deepEqual(
      states(aliases[0].candidates, ({ breaker }) => breaker),
      { m: "closed", ...open },
    );
    for (const model of down)
      assert.equal(await readMetric(`chat_gateway_breaker_state{model="${model}"}`), 2);
  });

  it("share the pause for which a provider asks", async (t) => {
    const busy = answerWith(429, { error: {} }, { "retry-after": "50" });
    const over = { models: { busy: { provider: "lab" } } };
    const { address, provider, readStatus } = await bench(t, over, { busy });
    assert.equal(await status(ask(address, { model: "busy" })), 503);
    // A worker has heard of the pause before it is asked for its second report.
    await readStatus();
    await readStatus();
    for (let at = 0; at < 6; at += 1) {
      const reply = await whole(ask(address, { model: "busy" }));
      assert.equal(JSON.parse(reply.text()).error.code, "model_overloaded");
      assert.ok(Number(reply.headers["retry-after"]) > 10);
    }
    assert.equal(provider.asked.length, 1);
  });

  it("share what a provider can take, also if a reload says so for the first time", async (t) => {
    const { address, provider, readStatus, write } = await bench(t, {}, { late: speak("Late.") });
    const api_keys = [{ key: "sk-1", rpm: 12 }, { key: "sk-2" }];
    write({
      providers: { pool: { dialect: "openai", base_url: provider.url, api_keys } },
      models: {
        m: { provider: "pool", limits: { rpm: 20, max_in_flight: 4 } },
        late: { provider: "lab" },
      },
      retry: { max_wait_ms: 0 },
    });
    await until(
      async () => String(await everywhere(address, { model: "late" })) === "200",
      "all workers to have the limits",
    );
    const codes: number[] = [];
    for (let round = 0; round < 10; round += 1)
      codes.push(...(await Promise.all(Array.from({ length: 4 }, () => status(ask(address))))));
    const served = codes.filter((code) => code === 200);
    assert.deepEqual([served.length, codes.length], [20, 40]);
    assert.deepEqual((await readStatus())["provider_limits"], { "model m": 4 });
    const asked = provider.asked.filter(({ body }) => body["model"] === "m");
    const first = asked.filter(({ headers }) => headers.authorization === "Bearer sk-1");
    assert.equal(asked.length, 20);
    assert.ok(first.length <= 12, `${first.length} with the first key`);
  });

  it("share an account's places: exactly as many at once as it may have, over all of them", async (t) => {
    const { address, provider, readStatus, readMetric } = await bench(t, {
      accounts: { acme: { max_in_flight: 4 } },
      keys: [
        { account: "acme", key: KEY },
        { account: "beta", key: "sk-beta" },
      ],
    });
    const replies = await Promise.all(
      Array.from({ length: 12 }, () => ask(address, { model: "held", stream: true })),
    );
    const streams = replies.filter((reply) => reply.status === 200);
    assert.equal(streams.length, 4);
    for (const reply of replies) if (!streams.includes(reply)) assertNoPlace(await whole(reply));
    await Promise.all(streams.map(begun));
    assert.equal((await readStatus())["in_flight"], 4);
    assert.equal(await readMetric("chat_gateway_in_flight_requests"), 4);
    assert.equal(
      await status(ask(address, {}, { key: "sk-beta" })),
      200,
      "another account has places of its own",
    );
    for (let at = 0; at < 4; at += 1) assertNoPlace(await whole(ask(address)));
    // One ends well, and one leaves: two places, wherever they are asked for.
    finish(provider.asked.find(({ body }) => body["model"] === "held")!);
    await Promise.race(streams.map(({ over }) => over));
    const [gone, ...others] = streams.filter(({ text }) => !text().includes("[DONE]"));
    gone!.socket.destroy();
    await until(async () => (await readStatus())["in_flight"] === 2, "two requests in flight");
    for (let at = 0; at < 9; at += 1) assert.equal(await status(ask(address)), 200);
    const again = await Promise.all(
      Array.from({ length: 6 }, () => ask(address, { model: "held", stream: true })),
    );
    assert.equal(again.filter((reply) => reply.status === 200).length, 2);
    assert.equal(others.length, 2);
  });
});

describe("a worker that dies", { concurrency: 2 }, () => {
  it("is replaced: told once, its places are free again, its requests are settled by the others, the others' go on", async (t) => {
    const it = await bench(t, { accounts: { acme: { max_in_flight: 24 } } });
    const { gw, address, workers, provider, dir, file, told, readStatus } = it;
    const streams = await Promise.all(
      Array.from({ length: 24 }, async () =>
        begun(await ask(address, { model: "held", stream: true })),
      ),
    );
    const cut: Reply[] = [];
    for (const reply of streams) reply.over.then((how) => how === "cut" && cut.push(reply));
    assertNoPlace(await whole(ask(address)));
    const before = workers();
    process.kill(before[1]!, "SIGKILL");
    await waitFor(() => told("worker_died").length === 1, "the line that tells", LONG_MS);
    await complete(it);
    await until(
      async () => cut.length > 0 && cut.length + (await readStatus())["in_flight"] === 24,
      "the requests of the dead one to be gone",
    );
    assert.equal(workers().filter((pid) => !before.includes(pid)).length, 1);
    await waitFor(
      () => settles(dir).filter((line) => line["status"] === "interrupted").length === cut.length,
      "its requests to be settled",
      LONG_MS,
    );
    // Its places, and no more.
    const more: Reply[] = [];
    for (const _ of cut)
      more.push(await begun(await ask(address, { model: "held", stream: true })));
    for (let at = 0; at < 3; at += 1) assertNoPlace(await whole(ask(address)));
    provider.asked.filter(({ closed }) => !closed()).forEach(finish);
    for (const reply of [...streams.filter((each) => !cut.includes(each)), ...more])
      assert.ok((await whole(reply)).text().includes("[DONE]"));
    await stop(gw);
    assert.deepEqual(
      told("worker_died").map(({ detail }) => detail),
      ["it ended with SIGKILL, and is replaced"],
    );
    const statuses = entries(dir)
      .map(({ settle }) => settle["status"])
      .sort();
    assert.deepEqual(statuses, [
      ...Array<string>(24).fill("completed"),
      ...cut.map(() => "interrupted"),
    ]);
    await audit(t, file);
  });

  it("leaves what it has counted in the metrics", async (t) => {
    const it = await bench(t, { server: { workers: 2 } });
    await complete(it, 2);
    assert.deepEqual(await everywhere(it.address, {}), [200]);
    const name = 'chat_gateway_requests_total{path="/v1/chat/completions",status="200",model="m"}';
    await until(async () => (await it.readMetric(name)) === 60, "all requests to be counted");
    for (const [at, worker] of it.workers().entries()) {
      process.kill(worker, "SIGKILL");
      await waitFor(() => it.told("worker_died").length === at + 1, "the line that tells", LONG_MS);
      await complete(it, 2);
      assert.equal(await it.readMetric(name), 60);
    }
    assert.equal(await status(ask(it.address)), 200);
    await until(async () => (await it.readMetric(name)) === 61, "one more to be counted");
  });

  it("leaves no client waiting: the connection that it was handed and had not taken is closed", async (t) => {
    const it = await bench(t, { server: { workers: 2 } });
    await complete(it, 2);
    const [still] = it.workers();
    process.kill(still!, "SIGSTOP");
    // Of four connections at once, the worker that stands still is handed one.
    const outcomes: string[] = [];
    const clients = Array.from({ length: 4 }, () =>
      send(`${it.address}/healthz`, "GET", undefined)
        .then(({ status: code }) => String(code))
        .catch((error: NodeJS.ErrnoException) => error.code ?? error.message)
        .then((outcome) => outcomes.push(outcome)),
    );
    await waitFor(() => outcomes.length === 3, "the answers of the other worker");
    process.kill(still!, "SIGKILL");
    await within(Promise.all(clients), "the end of the connection that nobody took", LONG_MS / 2);
    assert.deepEqual(outcomes, ["200", "200", "200", "ECONNRESET"]);
    await complete(it, 2);
    assert.equal(await status(ask(it.address)), 200);
  });

  it("what it said just before it died counts, and counts once: no place is lost, none is given twice", async (t) => {
    const it = await bench(t, { server: { workers: 2 }, accounts: { acme: { max_in_flight: 3 } } });
    const { gw, address, workers, provider, told } = it;
    // Connections that the workers have by now; the first process, which is stopped, is not needed
    // for them.
    const agents = Array.from(
      { length: 8 },
      () => new http.Agent({ keepAlive: true, maxSockets: 1 }),
    );
    t.after(() =>
      agents.forEach((agent) => {
        agent.destroy();
      }),
    );
    const alive = async (agent: http.Agent) =>
      assert.equal(await status(send(`${address}/healthz`, "GET", undefined, { agent })), 200);
    for (const agent of agents) await alive(agent);
    const early = [];
    for (const agent of agents.slice(0, 2))
      early.push(await begun(await ask(address, { model: "held", stream: true }, { agent })));
    gw.child.kill("SIGSTOP");
    // Both workers give a place back and ask for another while nobody hears them.
    provider.asked.forEach(finish);
    for (const reply of early) await whole(reply);
    const late = agents
      .slice(0, 2)
      .map((agent) => ask(address, { model: "held", stream: true }, { agent }));
    late.forEach((reply) => {
      reply.catch(() => undefined);
    });
    for (let turn = 0; turn < 10; turn += 1)
      for (const agent of agents.slice(2)) await alive(agent);
    process.kill(workers()[0]!, "SIGKILL");
    gw.child.kill("SIGCONT");
    await waitFor(() => told("worker_died").length === 1, "the line that tells", LONG_MS);
    const ends = await Promise.allSettled(late);
    const lived = ends.flatMap((end) => (end.status === "fulfilled" ? [end.value] : []));
    for (const reply of lived) await begun(reply);
    await complete(it, 2);
    const replies = await Promise.all(
      Array.from({ length: 8 }, () => ask(address, { model: "held", stream: true })),
    );
    assert.equal(
      replies.filter((reply) => reply.status === 200).length,
      3 - lived.length,
      "of three places those of the living are taken",
    );
  });

  const SPOILT = [
    ["is faulty", ({ write }: Bench) => write({ limits: { rpm: -1 } })],
    ["is gone", ({ file }: Bench) => rmSync(file)],
  ] as const;
  for (const [what, spoil] of todays(SPOILT, 2)) {
    it(`is replaced, with the configuration that is in force, while the file ${what}`, async (t) => {
      const it = await bench(t, {}, {}, { named: false });
      const { address, workers, told, dir } = it;
      const theirs = segments(dir);
      spoil(it);
      if (what === "is faulty")
        await waitFor(() => told("reload_failed").length === 1, "the fault to be told", LONG_MS);
      process.kill(workers()[0]!, "SIGKILL");
      await waitFor(() => told("worker_died").length > 0, "the line that tells", LONG_MS);
      await complete(it);
      await until(async () => {
        assert.deepEqual(await everywhere(address, {}), [200]);
        return segments(dir).some(
          (name) => !theirs.includes(name) && linesOf(segmentPath(dir, name)).length > 0,
        );
      }, "the new one to serve too");
      assert.deepEqual(
        await everywhere(address, { model: "demo-chat" }, "sk-demo"),
        [401],
        "the key that everybody knows is nobody's here",
      );
      assert.deepEqual(
        told("worker_died").map(({ detail }) => detail),
        ["it ended with SIGKILL, and is replaced"],
      );
    });
  }

  it("is replaced on the same address and data_dir, though the file says others by now: they are read at start only", async (t) => {
    const it = await bench(t, { server: { workers: 2 } });
    const { gw, address, workers, told, dir, write } = it;
    const elsewhere = folder();
    write({ server: { workers: 2, host: "127.0.0.2" }, data_dir: elsewhere });
    await waitFor(() => told("reloaded").length === 2, "the new configuration", LONG_MS);
    const [first, second] = workers();
    process.kill(first!, "SIGKILL");
    await waitFor(() => told("worker_died").length === 1, "the line that tells", LONG_MS);
    await complete(it, 2);
    process.kill(second!, "SIGKILL"); // so that there are new ones only
    await waitFor(() => told("worker_died").length >= 2, "the second line", LONG_MS);
    await complete(it, 2);
    assert.deepEqual(await everywhere(address, {}), [200]);
    await stop(gw);
    assert.equal(entries(dir).length, 60);
    assert.deepEqual(segments(elsewhere), []);
    assert.deepEqual(
      told("worker_died").map(({ detail }) => detail),
      Array(2).fill("it ended with SIGKILL, and is replaced"),
    );
  });

  it("the one that replaces it is told to stop though it was only just starting", async (t) => {
    const { gw, workers } = await bench(t);
    const before = workers();
    process.kill(before[0]!, "SIGKILL");
    await waitFor(
      () => workers().some((pid) => !before.includes(pid)),
      "the process that replaces it",
      LONG_MS,
    );
    await stop(gw);
  });

  it("the one that replaces it has the configuration that came while it was starting", async (t) => {
    const it = await bench(t, {}, { later: speak("Later.") });
    const { gw, address, workers, dir, told, write } = it;
    const [before, theirs] = [workers(), segments(dir)];
    process.kill(before[0]!, "SIGKILL");
    // It has its configuration when it begins to write its books; it does not yet listen then.
    await waitFor(
      () => segments(dir).some((name) => !theirs.includes(name)),
      "the segment of the one that replaces it",
      LONG_MS,
    );
    const young = workers().find((pid) => !before.includes(pid))!;
    process.kill(young, "SIGSTOP");
    const old = told("reloaded").length;
    write({ models: { later: { provider: "lab" } } });
    gw.child.kill("SIGHUP");
    await waitFor(() => told("reloaded").length >= old + 2, "the others to have it", LONG_MS);
    process.kill(young, "SIGCONT");
    await complete(it);
    await until(
      async () => String(await everywhere(address, { model: "later" })) === "200",
      "the new model to be served by all",
    );
  });

  it("the first one: the workers end too", async (t) => {
    const { gw, address, file } = await bench(t);
    const stream = await begun(await ask(address, { model: "held", stream: true }));
    gw.child.kill("SIGKILL");
    const { signal } = await within(gw.ended, "the end of all who hold its output", LONG_MS);
    assert.equal(signal, "SIGKILL");
    assert.equal(await stream.over, "cut");
    await assert.rejects(ask(address), /ECONNREFUSED/);
    assert.equal((await ended(t, ["usage", "sync", "--once", "--config", file])).code, 0);
    await audit(t, file);
  });
});

describe("a new configuration for all workers", { concurrency: 2 }, () => {
  for (const how of todays(["SIGHUP", "a change of the file"] as const, 2)) {
    it(`by ${how}: every worker serves the new model; a faulty file changes nothing and is told once`, async (t) => {
      const { gw, address, write, told } = await bench(t, {}, { late: speak("Late.") });
      const late = { late: { provider: "lab" } };
      const change = (over: object) => {
        write(over);
        if (how === "SIGHUP") gw.child.kill("SIGHUP");
      };
      assert.deepEqual(await everywhere(address, { model: "late" }), [404]);
      change({ models: late });
      await waitFor(() => told("reloaded").length > 0, "the new configuration", LONG_MS);
      await until(
        async () => String(await everywhere(address, { model: "late" })) === "200",
        "all workers to serve it",
      );
      change({ limits: { rpm: -1 } });
      await waitFor(() => told("reload_failed").length > 0, "the fault to be told", LONG_MS);
      assert.deepEqual(await everywhere(address, { model: "late" }), [200]);
      const sound = told("reloaded").length;
      change({ models: late, accounts: { acme: { max_in_flight: 0 } } });
      await waitFor(() => told("reloaded").length > sound, "the next one", LONG_MS);
      await until(
        async () => String(await everywhere(address, { model: "late" })) === "429",
        "all workers to have the next one",
      );
      const faults = told("reload_failed").map((line) =>
        line["faults"].map(({ path }: Line) => path).join(),
      );
      assert.deepEqual(new Set(faults), new Set(["limits.rpm"]));
      const times = how === "SIGHUP" ? 2 : 1; // the signal, and the change of the file if that is looked at afterwards
      assert.ok(faults.length <= times, `${faults.length} times, as if each worker told it`);
    });
  }
});

describe("signals to several workers", { concurrency: 2 }, () => {
  it("SIGTERM: streams in flight end whole, nothing new is taken, then exit 0 and no process is left", async (t) => {
    const { gw, address, workers, provider, file, dir } = await bench(t);
    const pids = workers();
    const streams = [];
    for (let at = 0; at < 3; at += 1)
      streams.push(await begun(await ask(address, { model: "held", stream: true })));
    gw.child.kill("SIGTERM");
    await until(() => refused(address), "new connections to be refused");
    for (const stream of streams) assert.doesNotMatch(stream.text(), /\[DONE\]/);
    provider.asked.filter(({ body }) => body["model"] === "held").forEach(finish);
    for (const stream of streams)
      assert.match((await whole(stream)).text(), /ne\..*\[DONE\]\n\n$/s);
    const { code, stderr } = await within(gw.ended, "the end of all who hold its output", LONG_MS);
    assert.deepEqual([code, stderr], [0, ""]);
    for (const pid of pids) assert.throws(() => process.kill(pid, 0), /ESRCH/);
    assert.deepEqual(
      new Set(entries(dir).map(({ settle }) => settle["status"])),
      new Set(["completed"]),
    );
    await audit(t, file);
  });

  it("SIGINT to the whole process group, as a terminal sends it, drains as well", async (t) => {
    const { gw, address, provider } = await bench(t, {}, {}, { detached: true });
    const stream = await begun(await ask(address, { model: "held", stream: true }));
    process.kill(-gw.child.pid!, "SIGINT");
    await until(() => refused(address), "new connections to be refused");
    assert.doesNotMatch(stream.text(), /\[DONE\]/);
    finish(provider.asked[0]!);
    assert.match((await whole(stream)).text(), /\[DONE\]\n\n$/);
    const { code, stderr } = await within(gw.ended, "the end", LONG_MS);
    assert.deepEqual([code, stderr], [0, ""], "no worker was taken for dead, and replaced");
  });

  for (const whom of todays(["the first process", "the whole group"] as const, 2)) {
    it(`a second signal to ${whom} ends all of them at once`, async (t) => {
      const { gw, address } = await bench(t, {}, {}, { detached: true });
      const to = whom === "the first process" ? gw.child.pid! : -gw.child.pid!;
      const stream = await begun(await ask(address, { model: "held", stream: true }));
      process.kill(to, "SIGTERM");
      await until(() => refused(address), "new connections to be refused");
      assert.equal(gw.child.exitCode, null, "it is draining");
      process.kill(to, "SIGTERM");
      const { code } = await within(gw.ended, "the end of all who hold its output", LONG_MS);
      assert.equal(code, 1);
      assert.equal(await stream.over, "cut");
    });
  }
});

describe("several workers that cannot serve", { concurrency: 2 }, () => {
  const file = (over: object): string => {
    const name = join(folder(), "some.json");
    writeFileSync(
      name,
      JSON.stringify(demo(merge({ server: { workers: 3 }, data_dir: folder() }, over) as object)),
    );
    return name;
  };

  for (const section of ["server", "admin"])
    it(`with the port of ${section} in use: one line, exit 1`, async (t) => {
      const holder = createServer().listen(0, "127.0.0.1");
      await once(holder, "listening");
      t.after(() => holder.close());
      const { port } = holder.address() as AddressInfo;
      const end = await ended(t, ["--config", file({ [section]: { port } })]);
      assert.equal(end.code, 1);
      assertOneLine(end, new RegExp(`EADDRINUSE.*${port}`));
    });

  it("with certificate and key that are missing: one line each, exit 1", async (t) => {
    const tls = { cert_file: "nowhere.pem", key_file: "nowhere.pem" };
    const end = await ended(t, ["--config", file({ server: { tls } })]);
    assert.equal(end.code, 1);
    assert.deepEqual(lines(end.stderr), [
      "chat-gateway: server.tls.cert_file: nowhere.pem cannot be read: ENOENT",
      "chat-gateway: server.tls.key_file: nowhere.pem cannot be read: ENOENT",
    ]);
  });

  it("with a faulty file: told once, and not by each worker", async (t) => {
    const end = await ended(t, ["--config", file({ server: { drain_ms: -1 } })]);
    assert.equal(end.code, 1);
    assertOneLine(end, /server\.drain_ms: /);
  });
});

describe("the access log of several workers", () => {
  for (const how of todays(["reads on", "lags behind, so that the pipe is full"] as const, 2)) {
    it(`is whole lines, each request's once, through a pipe whose reader ${how}`, async (t) => {
      const place = folder();
      const pipe = join(place, "pipe");
      execFileSync("mkfifo", [pipe]);
      const reader = new Socket({
        fd: openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK),
        readable: true,
        writable: false,
      });
      t.after(() => reader.destroy());
      let text = "";
      reader.setEncoding("utf8").on("data", (piece: string) => (text += piece));
      const config = join(place, "gateway.json");
      writeFileSync(config, JSON.stringify(demo({ server: { workers: 3 }, data_dir: folder() })));
      const gw = launch(
        { ...quickest(place), command: ["sh", "-c", 'exec "$@" >"$0"', pipe, process.execPath] },
        ["--config", config],
      );
      t.after(async () => {
        gw.child.kill("SIGKILL");
        await gw.ended;
      });
      const address = await waitFor(
        () => /listens on (\S+) /.exec(text)?.[1],
        "the line that says where it listens",
        LONG_MS,
      );
      if (how !== "reads on") reader.pause();
      const ids = Array.from({ length: 500 }, (_, at) => `${at} `.padEnd(512, '"\\long'));
      const todo = [...ids];
      const client = async () => {
        for (let id = todo.pop(); id !== undefined; id = todo.pop())
          assert.equal(
            await status(send(`${address}/v1/models`, "GET", undefined, { key: "sk-demo", id })),
            200,
          );
      };
      await Promise.all(Array.from({ length: 24 }, client));
      reader.resume();
      const [, ...log] = await waitFor(
        () => text.endsWith("\n") && lines(text).length >= 501 && lines(text),
        "500 lines",
        LONG_MS,
      );
      assert.deepEqual(log.map((line) => JSON.parse(line).request_id).sort(), [...ids].sort());
    });
  }
});
