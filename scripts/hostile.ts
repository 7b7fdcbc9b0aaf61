// The memory of the built gateway under clients that mean it no good: `npm run build && node --import tsx
// scripts/hostile.ts [--file FILE] [--scale 0.1] [--only NAME]`. Loopback only; bounded in count and time: some
// two minutes at full scale. Each case has a gateway of its own, and becomes a row of the table:
// what the clients did, what they were answered, the memory of the gateway's process before, at its
// height and after, and how long a GET /healthz took meanwhile (bench/probe.ts).
//
// A case holds if the answers are the ones that it demands and its bounds are kept; and always,
// when the clients have left: memory and descriptors come back, no request is in hand, no internal
// error and nothing but JSON stood on stderr, the books are right, and the process lives. Exit 1
// otherwise, and the reasons.

import { execFile, fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { cpus } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { bodyOf } from "./bench/body.ts";
import { memoryOf, openStreams, percentile } from "./bench/load.ts";
import { COLLECTS } from "../test/support/collecting.ts";
import type { Probed } from "./bench/probe.ts";
import { table } from "./bench/table.ts";
import { pinned, type Target } from "./bench/target.ts";
import { gateway, startProvider } from "./bench/targets.ts";
import {
  chatRequests,
  costlyReplies,
  FORMATS,
  FULL_SIZE,
  LARGE,
  LARGEST_REPLIES,
  messagesRequests,
  responsesRequests,
  startCostly,
} from "./hostile-json.ts";

const { values } = parseArgs({
  options: {
    file: { type: "string", default: "dist/chat-gateway.mjs" },
    scale: { type: "string", default: "1" },
    only: { type: "string" },
  },
});
const FILE = values.file;
const scale = Math.min(1, Number(values.scale));
/** So many at full scale. */
const scaled = (count: number): number => Math.max(1, Math.round(count * scale));
const MB = 1e6;
const mb = (bytes: number): string => (bytes / MB).toFixed(0);

// ---- Clients: sockets that send what they like.

interface Client {
  readonly socket: net.Socket;
  /** All that has come, unless the client does not read. */
  text: string;
  closed: boolean;
}

/**
 * Everything that is waited for has a deadline; false when that is over. For what no event tells:
 * the state of another process.
 */
async function until(check: () => boolean, ms: number): Promise<boolean> {
  for (const late = performance.now() + ms; !check(); await pause(20))
    if (performance.now() > late) return false;
  return true;
}

/** Waits until a figure has not changed for `quietMs`. */
async function atRest(figure: () => number, quietMs: number, ms: number): Promise<boolean> {
  let [last, since] = [figure(), performance.now()];
  return until(() => {
    const now = figure();
    if (now !== last) [last, since] = [now, performance.now()];
    return performance.now() - since > quietMs;
  }, ms);
}

/** Connects so many clients, each of which sends its bytes at once. */
async function connect(
  port: number,
  count: number,
  bytes: (at: number) => string | Buffer,
  { reads = true } = {},
): Promise<Client[]> {
  const clients: Client[] = [];
  while (clients.length < count) {
    // A listen queue holds some hundreds.
    const batch = Array.from({ length: Math.min(100, count - clients.length) }, async (_, i) => {
      const client: Client = {
        socket: net.connect({ port, host: "127.0.0.1", noDelay: true }),
        text: "",
        closed: false,
      };
      const { socket } = client;
      socket.on("error", () => undefined); // "close" tells it as well
      socket.on("close", () => (client.closed = true));
      if (reads) socket.on("data", (data: Buffer) => (client.text += data.toString("latin1")));
      const first = bytes(clients.length + i);
      await Promise.race([once(socket, "connect"), once(socket, "close")]);
      if (first.length > 0) socket.write(first);
      return client;
    });
    clients.push(...(await Promise.all(batch)));
  }
  return clients;
}

const leave = (clients: readonly Client[]): void =>
  clients.forEach(({ socket }) => {
    socket.destroy();
  });
const statusOf = ({ text }: Client): number => Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0);

/** `3 x 200, 2 x none`: what clients got, by whatever `of` says of each. */
function tally(
  clients: readonly Client[],
  of: (client: Client) => string | number = statusOf,
): string {
  const counts = new Map<string | number, number>();
  for (const client of clients) counts.set(of(client), (counts.get(of(client)) ?? 0) + 1);
  return (
    [...counts]
      .map(([what, times]) => `${times} x ${what === 0 ? "no answer" : what}`)
      .join(", ") || "nothing"
  );
}

const get = (path: string, more = ""): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
const head = ({ path, headers }: Target, more: string): string =>
  [
    `POST ${path} HTTP/1.1`,
    "Host: x",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `${more}\r\n`,
  ].join("\r\n");
const post = (target: Target, body: string, more = ""): string =>
  head(target, `${more}Content-Length: ${Buffer.byteLength(body)}\r\n`) + body;
const chat = (target: Target, words = "bytes=300"): string => bodyOf(words, target.model);

/** How many whole answers stand in a text one after the other. */
function answersIn(text: string): number {
  let answers = 0;
  for (let at = 0; at < text.length; answers += 1) {
    const end = text.indexOf("\r\n\r\n", at) + 4;
    if (end === 3) break;
    const lines = text.slice(at, end);
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(lines)?.[1] ?? NaN);
    if (!lines.startsWith("HTTP/1.1 ") || !(end + length <= text.length)) break;
    at = end + length;
  }
  return answers;
}

// ---- A provider that writes events of 64 KB for as long as it is let. Who asks for no stream gets
// a small reply.

const EVENT = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "x".repeat(65_000) }, finish_reason: null }] })}\n\n`;
const REPLY = JSON.stringify({
  choices: [{ index: 0, message: { role: "assistant", content: "small" }, finish_reason: "stop" }],
});

async function startEndless() {
  const streams = new Map<http.ServerResponse, () => number>();
  const server = http.createServer((req, res) => {
    let asked = "";
    req.setEncoding("utf8").on("data", (text: string) => (asked += text));
    req.on("end", () => {
      if (!asked.includes('"stream":true'))
        return res.writeHead(200, { "content-type": "application/json" }).end(REPLY);
      const { socket } = res;
      streams.set(res, () => socket!.bytesWritten - socket!.writableLength);
      res.once("close", () => streams.delete(res));
      res.writeHead(200, { "content-type": "text/event-stream" });
      const write = () => {
        if (res.destroyed) return;
        if (res.write(EVENT)) setImmediate(write);
        else res.once("drain", write);
      };
      return write();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Bytes that the gateway has taken of each stream that is open. */
    taken: () => [...streams.values()].map((bytes) => bytes()),
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

// ---- The cases.

interface Scene {
  readonly target: Target;
  readonly port: number;
  /** Resident bytes of the gateway now, and before the clients came. */
  readonly memory: () => number;
  readonly before: number;
  /** Its open descriptors. */
  readonly descriptors: () => number;
  readonly expect: (holds: boolean, reason: string) => void;
}

interface Case {
  readonly name: string;
  /** The gateway's configuration beside what all have. */
  readonly over?: object;
  /** Absent: the one of the benchmark. */
  readonly upstream?: string;
  /**
   * Bounds of the memory in MB, above what it was before: at its height, and when the clients have
   * left.
   */
  readonly heightMb: number;
  readonly afterMb: number;
  /** Options of Node for the gateway's process; absent: none. */
  readonly flags?: readonly string[];
  /** Descriptors that may stay: pooled connections to the provider. */
  readonly pooled?: number;
  /** Bounds of /healthz in ms; absent: 1,000 and 3,000. */
  readonly p99Ms?: number;
  readonly worstMs?: number;
  /** Ends when the clients have left; tells what they did, and what they were answered. */
  readonly run: (scene: Scene) => Promise<readonly [did: string, answered: string]>;
}

const text = (from: unknown): string => JSON.stringify(from);
const endless = await startEndless();
const costly = await startCostly();

/** The limit of descriptors that a process has. */
const limitOf = (pid: number): number =>
  Number(/Max open files\s+(\d+)/.exec(readFileSync(`/proc/${pid}/limits`, "utf8"))?.[1] ?? 1024);
const room = Math.min(limitOf(process.pid), 1e6) - 500;

async function chatAnswered({ target, port, expect }: Scene): Promise<void> {
  const [client] = await connect(port, 1, () => post(target, chat(target)));
  expect(
    (await until(() => answersIn(client!.text) > 0, 5_000)) && statusOf(client!) === 200,
    "a chat request is answered",
  );
  leave([client!]);
}

/** A client that has had its answer to one chat request, or that has waited for half a minute. */
async function answeredBy(
  { target, port, expect }: Scene,
  body: string,
  path = target.path,
): Promise<Client> {
  const [client] = await connect(port, 1, () => post({ ...target, path }, body));
  const done = () => client!.closed || answersIn(client!.text) > 0;
  expect(await until(done, 30_000), "a costly request is answered");
  leave([client!]);
  return client!;
}

const isAnswered = (client: Client): boolean => client.closed || answersIn(client.text) > 0;

const all = (clients: readonly Client[], ...statuses: number[]): boolean =>
  clients.every((client) => statuses.includes(statusOf(client)));

const cases: readonly Case[] = [
  {
    name: "idle connections",
    heightMb: 450 * scale + 40,
    afterMb: 150,
    async run(scene) {
      const count = Math.min(scaled(15_000), room, limitOf(scene.target.pid) - 500);
      const clients = await connect(scene.port, count, () => get("/healthz"));
      const done = await until(
        () => clients.every((client) => answersIn(client.text) === 1),
        20_000,
      );
      scene.expect(done && all(clients, 200), `each is answered: ${tally(clients)}`);
      await chatAnswered(scene);
      const kb = (scene.memory() - scene.before) / count / 1000;
      scene.expect(
        kb < 30 || scale < 0.5,
        `${kb.toFixed(1)} KB for each of the connections, expected less than 30`,
      );
      scene.expect(
        clients.every((client) => !client.closed),
        "none is closed meanwhile",
      );
      leave(clients);
      return [
        `${count} keep-alive connections, one /healthz each`,
        `${tally(clients)}; chat 200; ${kb.toFixed(1)} KB each`,
      ];
    },
  },
  {
    // In the end all leave in one turn of the event loop, with a bill each: /healthz waits as long.
    name: "open streams",
    heightMb: 500 * scale + 60,
    afterMb: 150,
    p99Ms: 6_000,
    worstMs: 6_000,
    async run(scene) {
      const count = Math.min(scaled(5_000), Math.floor(room / 2));
      const seconds = Math.max(1, 5 * scale);
      const kb = (await openStreams(scene.target, count, 1_000, seconds)).bytes / 1000;
      scene.expect(
        kb < 100 || scale < 0.5,
        `${kb.toFixed(1)} KB for each of the streams, expected less than 100`,
      );
      return [
        `${count} streams, an event a second each, for ${seconds} s`,
        `all of them run; ${kb.toFixed(1)} KB each`,
      ];
    },
  },
  {
    // A stream that nobody reads may hold what fits into the kernel's buffers of four sockets, and
    // an event or two in the gateway.
    name: "slow readers",
    upstream: endless.url,
    heightMb: 300 * scale + 60,
    afterMb: 150,
    p99Ms: 3_000,
    worstMs: 5_000,
    async run({ target, port, expect, descriptors }) {
      const count = scaled(200);
      // Until the kernel's buffers are full, and again when the clients have left, gigabytes pass
      // within seconds, and leave garbage.
      const collecting = setInterval(() => process.kill(target.pid, "SIGUSR2"), 50);
      const clients = await connect(port, count, () => post(target, chat(target, "events")), {
        reads: false,
      });
      expect(await until(() => endless.taken().length === count, 30_000), "all streams begin");
      const sum = () => endless.taken().reduce((total, bytes) => total + bytes, 0);
      expect(await atRest(sum, 1_000, 30_000), "the provider is held up");
      const most = Math.max(...endless.taken());
      expect(
        most < 24 * MB,
        `a stream that nobody reads has taken ${mb(most)} MB of the provider, expected less than 24`,
      );
      expect(
        clients.every((client) => !client.closed) && descriptors() > 2 * count,
        "the streams are still open",
      );
      leave(clients);
      const gone = await until(() => endless.taken().length === 0, 5_000);
      clearInterval(collecting);
      expect(gone, `the provider's connections close (${endless.taken().length} are open)`);
      const heldUp = `provider held up after at most ${(most / MB).toFixed(1)} MB; all closed when they left`;
      return [`${count} endless streams of 64 KB events, nothing read`, heldUp];
    },
  },
  // ---- What one client could once stop or fill: slow patterns, answers and logs that nobody
  // reads.
  {
    name: "large bodies",
    heightMb: 900,
    afterMb: 350,
    pooled: 20,
    async run(scene) {
      const { target, port, expect } = scene;
      const SIZE = 10_000_000;
      const say = (content: unknown, more = "") =>
        `{"model":"m"${more},"messages":[{"role":"user","content":${text(content)}}]}`;
      const nested = `${'{"aaaaaaaaaaaaaaaa":'.repeat(450_000)}1${"}".repeat(450_000)}`;
      const kinds: readonly (readonly [string, string, number])[] = [
        ["brackets", "[".repeat(SIZE), 400],
        ["one string", say(`bytes=300 ${"x".repeat(SIZE - 200)}`), 200],
        [
          "95,000 objects",
          say(
            Array.from({ length: 95_000 }, (_, at) => ({
              type: "text",
              text: at === 0 ? "bytes=300" : "",
            })),
          ),
          200,
        ],
        [
          "nested deeply",
          say(
            "bytes=300",
            `,"tools":[{"type":"function","function":{"name":"f","parameters":${nested}}}]`,
          ),
          400,
        ],
      ];
      const bodies = kinds.map(([, body]) => Buffer.from(post(target, body)));
      const count = Math.max(kinds.length, scaled(20));
      const clients = await connect(port, count, (at) => bodies[at % kinds.length]!);
      const done = await until(
        () => clients.every((client) => client.closed || answersIn(client.text) > 0),
        30_000,
      );
      expect(done, `all are answered: ${tally(clients)}`);
      const told = kinds.map(([name, , status], kind) => {
        const of = clients.filter((_, at) => at % kinds.length === kind);
        expect(all(of, status), `${status} for ${name}: ${tally(of)} ${of[0]!.text.slice(0, 500)}`);
        return `${name}: ${tally(of)}`;
      });
      leave(clients);
      await chatAnswered(scene); // a client's fault is no provider's: its breaker is closed
      return [`${count} bodies of 10 MB at once`, told.join("; ")];
    },
  },
  {
    // Each of them alone takes a good part of a second. Whoever finds no room is told so.
    name: "a hundred large bodies",
    over: { ...costly.config, apis: ["messages", "responses"] },
    heightMb: 3_000,
    afterMb: 500,
    pooled: 100,
    p99Ms: 1_000,
    worstMs: 1_000,
    async run(scene) {
      const bodies = LARGE.map(({ path, body }) =>
        Buffer.from(post({ ...scene.target, path }, body("anthropic"))),
      );
      const clients = await connect(scene.port, scaled(100), (at) => bodies[at % bodies.length]!);
      const done = await until(() => clients.every(isAnswered), 60_000);
      scene.expect(done && all(clients, 200, 503), `200 or 503: ${tally(clients)}`);
      leave(clients);
      await chatAnswered(scene);
      return [`${clients.length} bodies of 4.5 MB at once, to all APIs`, tally(clients)];
    },
  },
  {
    name: "a small heap",
    over: { ...costly.config, apis: ["messages", "responses"] },
    flags: ["--max-old-space-size=256"],
    heightMb: 600,
    afterMb: 250,
    pooled: 40,
    async run(scene) {
      const bodies = LARGE.map(({ path, body }) =>
        Buffer.from(post({ ...scene.target, path }, body("openai"))),
      );
      const clients = await connect(scene.port, 40, (at) => bodies[at % bodies.length]!);
      const done = await until(() => clients.every(isAnswered), 60_000);
      const served = clients.filter((client) => statusOf(client) === 200).length;
      scene.expect(done && all(clients, 200, 503), `200 or 503: ${tally(clients)}`);
      scene.expect(served > 0, "some are served");
      leave(clients);
      await chatAnswered(scene);
      return ["40 bodies of 4.5 MB at once, in a heap of 256 MB", tally(clients)];
    },
  },
  {
    name: "fast streams",
    upstream: endless.url,
    heightMb: 500,
    afterMb: 250,
    pooled: 150,
    worstMs: 1_000,
    async run(scene) {
      const { target, port, expect } = scene;
      const count = Math.max(50, scaled(150));
      const clients = await connect(port, count, () => post(target, chat(target, "events")), {
        reads: false,
      });
      let taken = 0;
      for (const { socket } of clients) socket.on("data", (data: Buffer) => (taken += data.length));
      const enough = await until(() => taken > count * 2 * MB, 60_000);
      expect(enough, `they run: ${mb(taken)} MB have come`);
      leave(clients);
      const gone = await until(() => endless.taken().length === 0, 10_000);
      expect(gone, `the provider's connections close (${endless.taken().length} are open)`);
      return [`${count} streams of 64 KB events, read as fast as they come`, "all run"];
    },
  },
  // JSON that costs more than it is long, one after the other: none may hold up the others for half
  // a second.
  {
    name: "costly requests",
    over: costly.config,
    heightMb: 600,
    afterMb: 350,
    pooled: 10,
    p99Ms: 500,
    worstMs: 500,
    async run(scene) {
      const told: string[] = [];
      const chats = chatRequests(FULL_SIZE);
      const requests = [...chats, ...responsesRequests(), ...messagesRequests()];
      for (const { name, path, body, status } of requests) {
        for (const model of FORMATS) {
          const client = await answeredBy(scene, body(model), path);
          scene.expect(
            statusOf(client) === status,
            `${name}, ${model}: ${status}, got ${client.text.slice(0, 500)}`,
          );
        }
        told.push(`${name}: ${status}`);
      }
      await chatAnswered(scene);
      return ["bodies of up to 10 MB, one at a time, to each format", told.join("; ")];
    },
  },
  {
    name: "costly replies",
    over: costly.config,
    heightMb: 600,
    afterMb: 350,
    pooled: 10,
    p99Ms: 500,
    worstMs: 500,
    async run(scene) {
      const replies = [...LARGEST_REPLIES, ...costlyReplies(15 * MB)];
      for (const { name, model, body } of replies) {
        costly.answer({ body: body() });
        const client = await answeredBy(scene, bodyOf("hi", model));
        const refused = statusOf(client) === 503 && client.text.includes('"upstream_error"');
        scene.expect(refused, `${name}: 503 upstream_error, got ${client.text.slice(0, 500)}`);
      }
      costly.answer(undefined);
      await chatAnswered(scene);
      return [
        `replies of up to 62 MB: ${replies.map(({ name }) => name).join("; ")}`,
        "503 upstream_error for each; chat 200",
      ];
    },
  },
];

// ---- A case from its gateway's start to its end.

const failures: string[] = [];

/** What the gateway's admin listener says of itself. */
async function inFlight(admin: string): Promise<number> {
  const res = await fetch(`${admin}/status`, { headers: { connection: "close" } });
  return ((await res.json()) as { in_flight: number }).in_flight;
}

const audit = (config: string): Promise<string | undefined> =>
  new Promise((resolve) => {
    const told = (error: Error | null, stdout: string, stderr: string) =>
      resolve(error ? `${stdout}${stderr}` : undefined);
    execFile(process.execPath, [FILE, "audit", "--config", config], told);
  });

const probe = fork(fileURLToPath(new URL("bench/probe.ts", import.meta.url)));
if (pinned) spawnSync("taskset", ["-cp", "1", String(process.pid)]); // as in the benchmark: the gateway has a core, the load another
const probed = async (message: number | "stop"): Promise<Probed | "begun"> => {
  const reply = once(probe, "message", { signal: AbortSignal.timeout(40_000) });
  probe.send(message);
  return ((await reply) as [Probed | "begun"])[0];
};

async function play(given: Case, upstream: string): Promise<string[]> {
  const {
    name,
    over: settings,
    run,
    heightMb,
    afterMb,
    pooled = 0,
    flags = [],
    p99Ms = 1_000,
    worstMs = 3_000,
  } = given;
  const expect = (holds: boolean, reason: string) => {
    if (!holds) failures.push(`${name}: ${reason}`);
  };
  const complaints: string[] = [];
  let admin = "";
  const target = await gateway(
    settings,
    FILE,
    {
      out(line) {
        admin ||= /admin on (http:[^\s;)]+)/.exec(line)?.[1] ?? "";
      },
      err(line) {
        if (!line.startsWith("{") || /unhandled|internal_error|"level":"error"/i.test(line))
          complaints.push(line);
      },
    },
    [...COLLECTS, ...flags],
  ).start(given.upstream ?? upstream);
  try {
    const { pid } = target;
    const port = Number(new URL(target.url).port);
    const memory = () => memoryOf(pid);
    const descriptors = () => readdirSync(`/proc/${pid}/fd`).length;
    await probed(port);
    writeFileSync(`/proc/${pid}/clear_refs`, "5"); // its height is counted from here
    const [before, openBefore] = [memory(), descriptors()];
    const [did, answered] = await run({
      target,
      port,
      memory,
      before,
      descriptors,
      expect,
    });
    const left = await until(() => descriptors() <= openBefore + pooled, 10_000);
    expect(
      left,
      `${descriptors()} descriptors, ${openBefore} before and ${pooled} pooled, when the clients have left`,
    );
    const { times, lost } = (await probed("stop")) as Probed;
    const [p50, p99, worst] = [percentile(times, 0.5), percentile(times, 0.99), Math.max(...times)];
    expect(
      lost === 0 && times.length > 0,
      `${lost} of the questions for /healthz were not answered`,
    );
    const alive = p99 <= p99Ms && worst <= worstMs;
    expect(
      alive,
      `/healthz: p99 ${p99.toFixed(0)} ms, worst ${worst.toFixed(0)} ms, expected ${p99Ms} and ${worstMs}`,
    );
    const height =
      Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) * 1024;
    expect(
      height - before <= heightMb * MB,
      `memory grew by ${mb(height - before)} MB, expected at most ${heightMb.toFixed(0)}`,
    );
    let open = NaN;
    for (
      const late = performance.now() + 10_000;
      open !== 0 && performance.now() < late;
      await pause(20)
    )
      open = await inFlight(admin);
    expect(open === 0, `${open} requests are still in hand`);
    const back = () => memory() <= before + afterMb * MB;
    for (let times = 0; times < 5 && !back(); times += 1) {
      process.kill(pid, "SIGUSR2");
      await until(back, 1_000);
    }
    const after = memory();
    expect(
      back(),
      `${mb(after - before)} MB of memory are still held, expected at most ${afterMb.toFixed(0)}`,
    );
    const books = await audit(join(target.folder!, "gateway.json"));
    expect(books === undefined, `the books: ${books}`);
    expect(complaints.length === 0, `on stderr: ${complaints.slice(0, 5).join("\n")}`);
    return [
      name,
      did,
      answered,
      `${mb(before)} / ${mb(height)} / ${mb(after)}`,
      p50.toFixed(1),
      p99.toFixed(0),
      worst.toFixed(0),
    ];
  } finally {
    await target.stop();
  }
}

const startedAt = performance.now();
const cores = pinned ? "one core each for the gateway and for its clients" : "not pinned to cores";
console.log(
  `hostile: scale ${scale}, Node ${process.version}, ${cpus()[0]?.model.trim()}, ${cores}`,
);
const upstream = await startProvider();
const rows = [
  [
    "case",
    "what the clients did",
    "what came of it",
    "MB before / height / after",
    "/healthz p50, ms",
    "p99",
    "worst",
  ],
];
try {
  for (const each of cases) {
    if (values.only && !each.name.startsWith(values.only)) continue;
    const began = performance.now();
    const known = failures.length;
    rows.push(
      await play(each, upstream.url).catch((error: Error) => {
        failures.push(`${each.name}: ${error.stack}`);
        return [each.name, "", "broken off", "", "", "", ""];
      }),
    );
    const took = ((performance.now() - began) / 1000).toFixed(1);
    console.log(
      `  ${each.name}: ${failures.length === known ? "holds" : "FAILED"} after ${took} s`,
    );
    for (const failure of failures.slice(known)) console.log(`    ${failure}`);
  }
} finally {
  endless.close();
  costly.close();
  probe.disconnect();
  await upstream.stop();
}
console.log(`\n${table(rows)}\n`);
for (const failure of failures) console.log(`FAILED: ${failure}`);
console.log(
  `hostile: ${failures.length === 0 ? "passed" : "failed"} after ${((performance.now() - startedAt) / 1000).toFixed(0)} s`,
);
process.exitCode = failures.length === 0 ? 0 : 1;
