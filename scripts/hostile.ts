// The built gateway against clients that mean it no good: `npm run build && node --import tsx
// scripts/hostile.ts [--file FILE] [--scale 0.1] [--only NAME]`. Loopback only; bounded in count and time: some
// two minutes at full scale. Each case has a gateway of its own, and becomes a row of the table:
// what the clients did, what they were answered, the memory of the gateway's process before, at its
// height and after, and how long a GET /healthz took meanwhile (bench/probe.ts).
//
// A case holds if the answers are the ones that it demands and its bounds are kept; and always,
// when the clients have left: memory and descriptors come back, no request is in hand, no internal
// error and nothing but JSON stood on stderr, the books are right, and the process lives. Exit 1
// otherwise, and the reasons.

import { execFile, fork, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { cpus, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { bodyOf } from "./bench/body.ts";
import { cpuOf, memoryOf, openStreams, percentile, wholeReplies } from "./bench/load.ts";
import { COLLECTS } from "../test/support/collecting.ts";
import type { Probed } from "./bench/probe.ts";
import { table } from "./bench/table.ts";
import { pinned, type Target } from "./bench/target.ts";
import { gateway, startProvider } from "./bench/targets.ts";
import { BAD_ADDRESS, FORMATS, LARGE, REPLIES, REQUESTS, startCostly } from "./hostile-json.ts";

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

/** The ids of requests of which the access log is asked. */
const idOf = (at: number | ""): string => `watched-${at}`;
const watched = (at: number): string => `X-Request-Id: ${idOf(at)}\r\n`;

interface Answer {
  readonly status: number;
  readonly ids: readonly string[];
  readonly body: string;
}

/** The answers that stand in a text one after the other; stops where one is not whole. */
function answersIn(text: string): Answer[] {
  const answers: Answer[] = [];
  for (let at = 0; at < text.length; ) {
    const end = text.indexOf("\r\n\r\n", at) + 4;
    if (end === 3) break;
    const lines = text.slice(at, end);
    const length = Number(/\r\ncontent-length: *(\d+)/i.exec(lines)?.[1] ?? NaN);
    if (!lines.startsWith("HTTP/1.1 ") || !(end + length <= text.length)) break;
    const ids = [...lines.matchAll(/\r\nx-request-id: *([^\r]*)/gi)].map((found) => found[1]!);
    answers.push({ status: Number(lines.slice(9, 12)), ids, body: text.slice(end, end + length) });
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
  /** The status that the access log has for a request, by its id. */
  readonly access: ReadonlyMap<string, number>;
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
  /** The descriptors that the gateway's process may have; absent: as many as this one. */
  readonly files?: number;
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
    (await until(() => answersIn(client!.text).length > 0, 5_000)) && statusOf(client!) === 200,
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
  const done = () => client!.closed || answersIn(client!.text).length > 0;
  expect(await until(done, 30_000), "a costly request is answered");
  leave([client!]);
  return client!;
}

const RECEIVE_MS = 2_000;
/** The gateway looks for what is late every `receive_ms / 2`; the rest is for a busy machine. */
const CLOSED_MS = RECEIVE_MS * 1.5 + 3_000;
const short = { server: { receive_ms: RECEIVE_MS, max_body_bytes: 1_000_000 } };

/** All are closed by the gateway in time: the seconds that the last one took. */
async function closedIn(
  clients: readonly Client[],
  ms: number,
  { expect }: Scene,
  who: string,
): Promise<string> {
  const began = performance.now();
  const closed = await until(() => clients.every((client) => client.closed), ms);
  expect(
    closed,
    `${who} are closed within ${ms} ms (${clients.filter((client) => !client.closed).length} are not)`,
  );
  return `${((performance.now() - began) / 1000).toFixed(1)} s`;
}

const isAnswered = (client: Client): boolean => client.closed || answersIn(client.text).length > 0;

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
        () => clients.every((client) => answersIn(client.text).length === 1),
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
    name: "full load",
    heightMb: 250,
    afterMb: 100,
    pooled: 64,
    async run({ target }) {
      const seconds = Math.max(1, 5 * scale);
      const { count, perSecond } = await wholeReplies(target, 64, { seconds }, chat(target));
      return [
        `64 at a time, whole replies, ${seconds} s`,
        `${count} x 200, ${perSecond.toFixed(0)} a second`,
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
  {
    name: "slow writers",
    over: short,
    heightMb: 80,
    afterMb: 60,
    async run(scene) {
      const clients = await connect(scene.port, scaled(500), () =>
        head(scene.target, "Content-Length: 1000\r\n"),
      );
      const beat = setInterval(
        () =>
          clients.forEach(({ socket, closed }) => {
            if (!closed) socket.write("{");
          }),
        100,
      );
      const took = await closedIn(clients, CLOSED_MS, scene, "they");
      clearInterval(beat);
      scene.expect(all(clients, 408), `all get 408: ${tally(clients)}`);
      return [
        `${clients.length} send a byte of a body every 100 ms, receive_ms ${RECEIVE_MS}`,
        `${tally(clients)}; closed after ${took}`,
      ];
    },
  },
  {
    // An answer that is not taken has until timeouts.total_ms, and one second; 6 MB are more than
    // the kernel takes in the client's place. One that fits there has been given: its connection is
    // idle, and ends after 75 s or with the client. That does no harm.
    name: "half-open",
    over: { ...short, timeouts: { total_ms: 3_000 } },
    heightMb: 900 * scale + 150,
    afterMb: 250,
    pooled: 100,
    p99Ms: 2_000,
    worstMs: 4_000,
    async run(scene) {
      const { port, target, expect, access } = scene;
      const [half, silent, large, small] = await Promise.all([
        connect(port, scaled(500), () => "GET /heal"),
        connect(port, scaled(500), () => ""),
        connect(
          port,
          scaled(20),
          (at) => post(target, chat(target, "bytes=6000000"), watched(at)),
          { reads: false },
        ),
        connect(port, scaled(80), () => post(target, chat(target)), { reads: false }),
      ]);
      const took = await closedIn(
        [...half, ...silent],
        CLOSED_MS,
        scene,
        "half a request and silence",
      );
      expect(all(half, 408), `408 for half a request: ${tally(half)}`);
      expect(all(silent, 408, 0), `408 or nothing for silence: ${tally(silent)}`);
      const began = performance.now();
      const gone = await until(
        () => large.every((_, at) => access.has(idOf(at))),
        3_000 + 1_000 + 3_000,
      );
      expect(
        gone,
        `who does not take its answer is closed within total_ms and a second: ${access.size} of ${large.length}`,
      );
      expect(
        [...access.values()].every((status) => status === 499),
        `logged as 499: ${[...new Set(access.values())].join()}`,
      );
      const last = ((performance.now() - began) / 1000).toFixed(1);
      leave([...half, ...silent, ...large, ...small]);
      return [
        `${half.length} half a request line, ${silent.length} silent, ${large.length} leave 6 MB unread and ${small.length} 300 bytes`,
        `half: ${tally(half)}; silent: ${tally(silent)}; closed after ${took}, the 6 MB ${last} s later; the 300 bytes: idle, harmless`,
      ];
    },
  },
  {
    name: "header floods",
    heightMb: 100,
    afterMb: 60,
    async run(scene) {
      const flood = Buffer.from(
        `${get("/healthz").slice(0, -2)}${`X-Flood: ${"a".repeat(1_000)}\r\n`.repeat(1_000)}\r\n`,
      );
      const clients = await connect(scene.port, scaled(200), () => flood);
      const took = await closedIn(clients, 5_000, scene, "they");
      // Who goes on sending after the end may lose the answer to it: the connection is reset then,
      // and what is on its way with it.
      const told = clients.filter((client) => statusOf(client) === 431).length;
      scene.expect(
        all(clients, 431, 0) && told > clients.length / 2,
        `most get 431, and nobody anything else: ${tally(clients)}`,
      );
      return [`${clients.length} send 1 MB of headers`, `${tally(clients)}; closed after ${took}`];
    },
  },
  {
    name: "pipelining",
    over: { upstream: { max_connections: 64 }, server: { max_in_flight: 200_000 } },
    heightMb: 300 * scale + 100,
    afterMb: 150,
    pooled: 64,
    p99Ms: 3_000,
    worstMs: 3_000,
    async run({ target, port, expect }) {
      const EACH = 1_000;
      const id = (at: number, nth: number) => `${at}-${nth}`;
      const isChat = (nth: number) => nth % 20 === 7;
      const ask = (at: number, nth: number) => {
        const named = `X-Request-Id: ${id(at, nth)}\r\n`;
        return isChat(nth) ? post(target, chat(target, "bytes=30"), named) : get("/healthz", named);
      };
      const requests = (at: number) =>
        Array.from({ length: EACH }, (_, nth) => ask(at, nth)).join("");
      const clients = await connect(port, scaled(100), requests);
      const last = (at: number) => `\r\nX-Request-Id: ${id(at, EACH - 1)}\r\n`;
      const ended = ({ text, closed }: Client, at: number) =>
        closed || (text.slice(-1_000).includes(last(at)) && text.endsWith("}"));
      const whole = await until(() => clients.every(ended), 60_000);
      let [right, total] = [0, 0];
      for (const [at, client] of clients.entries()) {
        for (const [nth, { status, ids, body }] of answersIn(client.text).entries()) {
          total += 1;
          const fits = isChat(nth)
            ? body.includes('"chat.completion"')
            : body === '{"status":"ok"}';
          if (status === 200 && ids.length === 1 && ids[0] === id(at, nth) && fits) right += 1;
        }
      }
      const wanted = clients.length * EACH;
      const complete = whole && total === wanted && right === wanted;
      expect(
        complete,
        `${wanted} answers in their order, with one id each: ${total} came, ${right} are right`,
      );
      leave(clients);
      return [
        `${clients.length} write ${EACH} requests at once, a twentieth are chat`,
        `${right} x 200 in order, one X-Request-Id each`,
      ];
    },
  },
  {
    // 16 requests of a connection are taken, and an answer waits for its reader; the rest stays
    // unread.
    name: "pipelining, unread",
    heightMb: 50 * scale + 40,
    afterMb: 80,
    p99Ms: 3_000,
    worstMs: 3_000,
    async run({ target, port, expect }) {
      const bytes = Buffer.from(get("/openapi.json").repeat(2_000));
      const clients = await connect(port, scaled(100), () => bytes, { reads: false });
      for (const { socket } of clients) {
        const write = (): void => {
          while (!socket.destroyed && socket.write(bytes));
        };
        socket.on("drain", write);
        write();
      }
      const sent = () =>
        clients.reduce((sum, { socket }) => sum + socket.bytesWritten - socket.writableLength, 0);
      // The rest is what the probe costs.
      const busy = () => Math.round(cpuOf(target.pid) / 100_000);
      expect(
        await atRest(() => sent() + busy(), 1_000, 40_000),
        "they are held up, and nothing more is done for them",
      );
      const most = sent() / clients.length;
      expect(most < 24 * MB, `${mb(most)} MB are taken from each, expected less than 24`);
      const closed = clients.filter((client) => client.closed).length;
      leave(clients);
      const came = `held up after ${(most / MB).toFixed(1)} MB each, ${closed} closed by the gateway`;
      return [`${clients.length} write GET /openapi.json without end, nothing read`, came];
    },
  },
  // ---- What one client could once stop or fill: slow patterns, answers and logs that nobody
  // reads.
  {
    name: "blanks in a head",
    heightMb: 60,
    afterMb: 50,
    p99Ms: 500,
    worstMs: 500,
    async run(scene) {
      const blanks = " ".repeat(40_000);
      const heads = [
        `GARBAGE\r\nX-Request-Id:${blanks}\x01`,
        `GARBAGE\r\nX-Request-Id:${blanks}\x01\r\n\r\n`,
        `GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${blanks.slice(0, 8_000)}\x7f\r\n\r\n`,
      ];
      const clients = await connect(scene.port, scaled(300), (at) => heads[at % heads.length]!);
      const took = await closedIn(clients, 5_000, scene, "they");
      const told = clients.filter((client) => statusOf(client) === 400).length;
      scene.expect(
        all(clients, 400, 0) && told > clients.length / 2,
        `most get 400, and nobody anything else: ${tally(clients)}`,
      );
      await chatAnswered(scene);
      return [
        `${clients.length} send 40,000 blanks where a request id should be`,
        `${tally(clients)}; closed after ${took}`,
      ];
    },
  },
  {
    name: "answers unread",
    over: { server: { max_in_flight: 10, send_ms: 2_000 } },
    heightMb: 50 * scale + 40,
    afterMb: 80,
    async run(scene) {
      const bytes = get("/openapi.json").repeat(900);
      const clients = await connect(scene.port, scaled(100), () => bytes, { reads: false });
      await chatAnswered(scene); // although far more than max_in_flight answers wait
      const { length } = clients;
      const before = scene.descriptors();
      // Progress is looked for every send_ms: what was taken in the first of two looks puts the end
      // off.
      const closed = () => scene.descriptors() <= before - length / 2;
      const gone = await until(closed, 2 * 2_000 + 5_000);
      scene.expect(
        gone,
        `connections that take nothing are closed: ${scene.descriptors()} are open`,
      );
      leave(clients);
      return [
        `${length} write 900 GET /openapi.json and read nothing; max_in_flight 10, send_ms 2000`,
        "chat 200 meanwhile; closed by the gateway",
      ];
    },
  },
  {
    // Of a gateway of its own, whose output is not read: the one of all cases has a reader.
    name: "log unread",
    heightMb: 60,
    afterMb: 50,
    async run({ expect }) {
      const cwd = mkdtempSync(join(tmpdir(), "hostile-"));
      const child = spawn(process.execPath, [...COLLECTS, resolve(FILE), "serve", "--port", "0"], {
        cwd,
        stdio: ["ignore", "pipe", "pipe"],
      });
      let [out, err] = ["", ""];
      child.stdout.on("data", (data: Buffer) => (out += data.toString("latin1")));
      child.stderr.on("data", (data: Buffer) => (err += data.toString("latin1")));
      try {
        const portOf = () => Number(/listens on http:\/\/[^:]+:(\d+)/.exec(out)?.[1] ?? 0);
        expect(await until(() => portOf() > 0, 10_000), "it listens");
        child.stdout.pause();
        const before = memoryOf(child.pid!);
        const EACH = 1_000;
        const path = `/${"p".repeat(8_000)}`;
        const clients = await connect(portOf(), 20, () => get(path).repeat(EACH));
        const whole = ({ text }: Client) => text.split("HTTP/1.1 404").length - 1 === EACH;
        expect(await until(() => clients.every(whole), 60_000), "all requests are answered");
        leave(clients);
        // What is held is what is left when the garbage was taken away.
        const grown = () => memoryOf(child.pid!) - before;
        const isSmall = () => grown() < 100 * MB;
        for (let times = 0; times < 5 && !isSmall(); times += 1) {
          child.kill("SIGUSR2");
          await until(isSmall, 1_000);
        }
        const kept = grown();
        expect(isSmall(), `it keeps ${mb(kept)} MB, expected less than 100`);
        out = "";
        child.stdout.resume();
        const told = await until(() => err.includes('"log_lines_dropped"'), 10_000);
        expect(told, "it tells that lines were dropped");
        const dropped = Number(/"lines":(\d+)/.exec(err)?.[1] ?? NaN);
        const lines = () => out.split('"path":"/ppp').length - 1;
        const complete = await until(() => lines() + dropped === 20 * EACH, 10_000);
        expect(complete, `each line is written or counted: ${lines()} and ${dropped}`);
        return [
          `${20 * EACH} GETs of 8 KB paths, stdout not read`,
          `${dropped} lines dropped and told, ${mb(kept)} MB kept`,
        ];
      } finally {
        child.kill("SIGKILL");
        await once(child, "close");
        rmSync(cwd, { recursive: true, force: true });
      }
    },
  },
  {
    name: "bodies that lie",
    over: short,
    heightMb: 250,
    afterMb: 150,
    pooled: 100,
    async run(scene) {
      const { target, port, expect, access } = scene;
      const count = scaled(50);
      const body = chat(target, "bytes=30");
      const length = (more: number) => `Content-Length: ${body.length + more}\r\n`;
      const lie = (bytes: string) => connect(port, count, () => bytes);
      const [shorter, both, two, endlessBody, trickle, half, reset] = await Promise.all([
        lie(`${post(target, body)} and more\r\n\r\n`),
        lie(
          `${head(target, `${length(0)}Transfer-Encoding: chunked\r\n`)}${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`,
        ),
        lie(head(target, length(0) + length(1)) + body),
        lie(`${head(target, "Transfer-Encoding: chunked\r\n")}`),
        lie(`${head(target, "Transfer-Encoding: chunked\r\n")}1\r\n{\r\n`),
        lie(head(target, length(9)) + body),
        connect(port, count, (at) => head(target, length(9) + watched(at)) + body),
      ]);
      half.forEach(({ socket }) => {
        socket.end();
      });
      const chunk = Buffer.from(`10000\r\n${" ".repeat(0x10000)}\r\n`);
      for (const { socket } of endlessBody) {
        const write = (): void => {
          while (!socket.destroyed && socket.write(chunk));
        };
        socket.on("drain", write);
        write();
      }
      const beat = setInterval(
        () =>
          trickle.forEach(({ socket, closed }) => {
            if (!closed) socket.write("1\r\n \r\n");
          }),
        100,
      );
      const logged = () => Array.from({ length: count }, (_, at) => access.get(idOf(at)));
      const [shut, , over, late] = await Promise.all([
        closedIn(
          [...shorter, ...half, ...both, ...two],
          CLOSED_MS,
          scene,
          "lengths that are wrong, of both kinds, and two",
        ),
        // The gateway has read these when it has answered somebody who came later.
        chatAnswered(scene).then(() =>
          reset.forEach(({ socket }) => {
            socket.resetAndDestroy();
          }),
        ),
        closedIn(endlessBody, CLOSED_MS, scene, "endless chunks"),
        closedIn(trickle, CLOSED_MS, scene, "chunks that trickle"),
      ]);
      clearInterval(beat);
      const lines = ({ text }: Client) => text.match(/HTTP\/1\.1 \d+/g)?.join() ?? 0;
      const once200 = shorter.every((client) => lines(client) === "HTTP/1.1 200");
      expect(once200, `what follows a whole body is no request: ${tally(shorter, lines)}`);
      expect(all(both, 400), `400 for both kinds of length: ${tally(both)}`);
      expect(all(two, 400), `400 for two lengths: ${tally(two)}`);
      expect(all(endlessBody, 413, 408), `413 or 408 for endless chunks: ${tally(endlessBody)}`);
      expect(all(trickle, 408), `408 for chunks that trickle: ${tally(trickle)}`);
      expect(
        all(half, 400),
        `400 for a client that says that it ends before its body has: ${tally(half)}`,
      );
      const left = await until(() => logged().every((status) => status === 499), 5_000);
      expect(
        left,
        `499 in the log for a client that is gone before its body has come: ${[...new Set(logged())].join()}`,
      );
      return [
        `${count} each: length too short, too long and ended, and reset, both kinds, two, endless chunks, trickling ones`,
        `short: ${tally(shorter)}; long: ${tally(half)}, 499 in the log; both: ${tally(both)}; two: ${tally(two)}; closed after ${shut}; ` +
          `endless: ${tally(endlessBody)} after ${over}; trickling: ${tally(trickle)} after ${late}`,
      ];
    },
  },
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
        () => clients.every((client) => client.closed || answersIn(client.text).length > 0),
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
  {
    // Whoever is idle for longest makes room, so that others are served.
    name: "few descriptors",
    files: 256,
    heightMb: 60,
    afterMb: 50,
    pooled: 64,
    async run(scene) {
      const clients = await connect(scene.port, 400, () => "");
      for (let times = 0; times < 5; times += 1) await chatAnswered(scene);
      const kept = clients.filter(({ closed }) => !closed).length;
      scene.expect(kept > 50, `connections stay while there is room: ${kept} have`);
      leave(clients);
      return ["400 idle connections, 256 descriptors", `chat 200; ${kept} stay connected`];
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
      for (const { name, path, body, status } of REQUESTS) {
        for (const model of FORMATS) {
          const client = await answeredBy(scene, body(model), path);
          scene.expect(
            statusOf(client) === status,
            `${name}, ${model}: ${status}, got ${client.text.slice(0, 500)}`,
          );
        }
        told.push(`${name}: ${status}`);
      }
      for (const model of ["anthropic", "gemini"]) {
        const client = await answeredBy(scene, BAD_ADDRESS(model));
        const refused = statusOf(client) === 400 && client.text.includes('"upstream_rejected"');
        scene.expect(refused, `a bad address, ${model}: 400, got ${client.text.slice(0, 500)}`);
      }
      told.push("a bad data: address: 400");
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
      for (const { name, model, body } of REPLIES) {
        costly.answer(body());
        const client = await answeredBy(scene, bodyOf("hi", model));
        const refused = statusOf(client) === 503 && client.text.includes('"upstream_error"');
        scene.expect(refused, `${name}: 503 upstream_error, got ${client.text.slice(0, 500)}`);
      }
      costly.answer(undefined);
      await chatAnswered(scene);
      return [
        `replies of up to 62 MB: ${REPLIES.map(({ name }) => name).join("; ")}`,
        "503 upstream_error for each; chat 200",
      ];
    },
  },
  ...(
    [
      ["server.max_in_flight", { server: { max_in_flight: 100 } }, 503],
      ["accounts.A.max_in_flight", { accounts: { bench: { max_in_flight: 100 } } }, 429],
    ] as const
  ).map(
    ([name, over, refusal]): Case => ({
      name,
      over,
      heightMb: 100,
      afterMb: 80,
      async run(scene) {
        const { target, port, expect } = scene;
        const count = Math.max(200, scaled(1_000));
        const began = performance.now();
        const clients = await connect(port, count, () =>
          post(target, chat(target, "events=1000000 every=1000")),
        );
        const answered = await until(() => clients.every((client) => statusOf(client) > 0), 5_000);
        const took = performance.now() - began;
        expect(answered, `each is answered at once: ${tally(clients)}`);
        const streams = clients.filter((client) => statusOf(client) === 200);
        const refused = clients.filter((client) => statusOf(client) === refusal);
        // The probe's own request may be the hundredth.
        const most = streams.length === 100 || streams.length === 99;
        expect(
          most && streams.length + refused.length === count,
          `100 stream, the others get ${refusal}: ${tally(clients)}`,
        );
        expect(
          refused.every(({ text }) => /\r\nRetry-After: [1-9]\d*\r\n/i.test(text)),
          `Retry-After with each ${refusal}`,
        );
        const run = await until(
          () => streams.every(({ text }) => text.split("happy").length > 2),
          5_000,
        );
        expect(run, "the streams that were let in run on");
        leave(clients);
        expect(await until(() => scene.descriptors() < 100, 5_000), "the connections end");
        await chatAnswered(scene);
        return [
          `${count} streams at once`,
          `${tally(clients)} within ${took.toFixed(0)} ms; chat 200 when they had left`,
        ];
      },
    }),
  ),
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
    files,
    p99Ms = 1_000,
    worstMs = 3_000,
  } = given;
  const expect = (holds: boolean, reason: string) => {
    if (!holds) failures.push(`${name}: ${reason}`);
  };
  const access = new Map<string, number>();
  const complaints: string[] = [];
  let admin = "";
  const target = await gateway(
    settings,
    FILE,
    {
      out(line) {
        admin ||= /admin on (http:[^\s;)]+)/.exec(line)?.[1] ?? "";
        if (!line.includes(`"${idOf("")}`)) return; // of all others nobody asks
        const { request_id, status } = JSON.parse(line) as { request_id: string; status: number };
        access.set(request_id, status);
      },
      err(line) {
        if (!line.startsWith("{") || /unhandled|internal_error|"level":"error"/i.test(line))
          complaints.push(line);
      },
    },
    {
      flags: [...COLLECTS, ...flags],
      prefix: files === undefined ? [] : ["prlimit", `--nofile=${files}`],
    },
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
      access,
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
