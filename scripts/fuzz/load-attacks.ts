// The attacks of scripts/fuzz.ts by load: thousands of connections, streams that nobody reads, and
// large or costly JSON. Each has a provider behind the gateway that makes the attack possible.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import net from "node:net";
import { endless, event, chunk, speak, startProvider } from "../../test/support/provider.ts";
import type { Provider } from "../../test/support/provider.ts";
import type { Scope } from "../../test/support/scope.ts";
import { settled } from "../../test/support/wait.ts";
import { openStreams } from "../bench/load.ts";
import { counted } from "../bench/table.ts";
import { AUTHORIZED, bodyOf, CALL, gatewayConfig } from "../bench/targets.ts";
import { startProvider as startBenchProvider } from "../bench/targets.ts";
import { MB, mb, until, type Attack, type AttackedGateway } from "./attack.ts";
import { COSTLY_REPLIES, FORMATS, LARGE, startCostly, type CostlyRequest } from "./costly.ts";
import { chatRequests, messagesRequests, responsesRequests } from "./costly.ts";
import { runCase, type CaseResult } from "./run-case.ts";

const LINES = Object.entries(AUTHORIZED).map(([name, value]) => `${name}: ${value}\r\n`);
const post = (path: string, body: string, more = ""): Buffer =>
  Buffer.from(
    `POST ${path} HTTP/1.1\r\nHost: x\r\n${LINES.join("")}${more}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );

/** Sends a request on a connection of its own. `expected`: the statuses that it may get. */
const ask = (gateway: AttackedGateway, path: string, body: string, expected: readonly number[]) =>
  runCase(gateway.port, {
    pieces: [post(path, body, "Connection: close\r\n")],
    ending: "server",
    patience: 0,
    expected,
  });

/** Sends a request that must get the given status. Returns the answer. */
async function demand(gateway: AttackedGateway, body: string, row: Omit<CostlyRequest, "body">) {
  const { name, path, status } = row;
  const { statuses, text, fault } = await ask(gateway, path, body, [status]);
  const got = `${fault ?? statuses.join()} ${text.slice(0, 500)}`;
  gateway.expect(fault === undefined && statuses[0] === status, `${name}: ${status}, got ${got}`);
  return text;
}
const expectChat = (gateway: AttackedGateway): Promise<string> =>
  demand(gateway, bodyOf("bytes=300", "m"), { ...CALL, name: "a chat request", status: 200 });

/** The number of answers with each status: `3 x 200, 2 x 503`. */
const countStatuses = (answers: readonly CaseResult[]): string =>
  counted(answers.map(({ statuses, end }) => String(statuses[0] ?? end)));

/** Opens sockets, and sends these bytes on each. */
async function openSockets(port: number, count: number, bytes: Buffer | string) {
  const sockets: net.Socket[] = [];
  while (sockets.length < count) {
    const size = Math.min(100, count - sockets.length); // a listen queue holds a few hundred
    const batch = Array.from({ length: size }, async () => {
      const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
      socket.on("error", () => undefined); // "close" follows
      await Promise.race([once(socket, "connect"), once(socket, "close")]);
      socket.write(bytes);
      return socket;
    });
    sockets.push(...(await Promise.all(batch)));
  }
  return sockets;
}
const areOpen = (sockets: readonly net.Socket[]): boolean => sockets.every(({ closed }) => !closed);

/** The most descriptors that a process may have. */
const limitOf = (pid: number): number =>
  Number(/Max open files\s+(\d+)/.exec(readFileSync(`/proc/${pid}/limits`, "utf8"))?.[1] ?? 1024);
const room = Math.min(limitOf(process.pid), 1e6) - 500;

const EVENT = event(chunk({ content: "x".repeat(65_000) }));

type Costly = Awaited<ReturnType<typeof startCostly>>;

/** The attacks, with providers that run until the scope ends. `scale`: 1 for the full load. */
export async function startLoadAttacks(t: Scope, scale: number): Promise<Attack[]> {
  const costly = await startCostly(t);
  const patient = await startBenchProvider();
  t.after(patient.stop);
  const eager = await startProvider(t, (asked) =>
    (asked.body["stream"] ? endless("text/event-stream", EVENT) : speak("small"))(asked),
  );
  return [...attacksOfConnections(scale, eager, patient.url), ...attacksOfBodies(scale, costly)];
}

/** A number of connections or requests at this scale. */
const scaled = (count: number, scale: number): number => Math.max(1, Math.round(count * scale));
const behind = (name: string, url: string, over: object = {}) => ({
  name,
  config: (folder: string) => ({ ...gatewayConfig(url, folder), server: { port: 0 }, ...over }),
  mayBeBusy: false,
});

function attacksOfConnections(scale: number, eager: Provider, patientUrl: string): Attack[] {
  const idle: Attack = {
    ...behind("idle connections", eager.url),
    heightMb: 450 * scale + 40,
    afterMb: 150,
    async run(gateway) {
      const count = Math.min(scaled(15_000, scale), room, limitOf(gateway.pid) - 500);
      const sockets = await openSockets(
        gateway.port,
        count,
        "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
      );
      let answered = 0;
      for (const socket of sockets)
        socket.once("data", (data: Buffer) => {
          if (data.includes("HTTP/1.1 200 OK")) answered += 1;
        });
      gateway.expect(await until(() => answered === count, 20_000), `${answered} are answered`);
      await expectChat(gateway);
      const kb = (gateway.memory() - gateway.before) / count / 1000;
      // The memory per connection can only be measured with many connections.
      const isSmall = kb < 30 || scale < 0.5;
      gateway.expect(isSmall, `${kb.toFixed(1)} KB a connection, expected 30`);
      gateway.expect(areOpen(sockets), "none is closed meanwhile");
      for (const socket of sockets) socket.destroy();
      return [`${count} keep-alive connections`, `all answered; ${kb.toFixed(1)} KB each`];
    },
  };
  const open: Attack = {
    ...behind("open streams", patientUrl),
    heightMb: 500 * scale + 60,
    afterMb: 150,
    // All clients leave in one turn of the event loop, and /healthz waits until all are billed.
    p99Ms: 6_000,
    worstMs: 6_000,
    async run({ pid, port, expect }) {
      const count = Math.min(scaled(5_000, scale), Math.floor(room / 2));
      const seconds = Math.max(1, 5 * scale);
      const call = { ...CALL, headers: AUTHORIZED, startMs: 0, stop: async () => {} };
      const target = { ...call, name: "the gateway", url: `http://127.0.0.1:${port}`, pid };
      const kb = (await openStreams(target, count, seconds)).bytes / 1000;
      expect(kb < 100 || scale < 0.5, `${kb.toFixed(1)} KB a stream, expected 100`);
      const did = `${count} streams, an event a second each, for ${seconds} s`;
      return [did, `all run; ${kb.toFixed(1)} KB each`];
    },
  };
  /** The bytes that the gateway has read from each open stream of the provider. */
  const taken = (): number[] =>
    eager.asked
      .filter(({ body, closed }) => body["stream"] && !closed())
      .map(({ socket }) => socket.bytesWritten - socket.writableLength);
  const sum = () => taken().reduce((total, bytes) => total + bytes, 0);
  const slow: Attack = {
    ...behind("slow readers", eager.url),
    // An unread stream may fill the kernel's buffers of four sockets, and the gateway retains an
    // event or two of it.
    heightMb: 300 * Math.max(0.25, scale) + 60,
    afterMb: 150,
    p99Ms: 3_000,
    worstMs: 5_000,
    async run({ port, collect, descriptors, expect }) {
      const count = Math.max(50, scaled(200, scale));
      // Until the kernel's buffers are full, and again after the clients have left, the gateway
      // reads gigabytes within seconds, which become garbage.
      const collecting = setInterval(collect, 50);
      const sockets = await openSockets(port, count, post(CALL.path, bodyOf("events", "m")));
      expect(await until(() => taken().length === count, 30_000), "all streams begin");
      await settled(sum, "the provider to be held up", 1_000);
      const most = Math.max(...taken());
      expect(most < 24 * MB, `a stream that nobody reads has taken ${mb(most)} MB, expected 24`);
      expect(areOpen(sockets) && descriptors() > 2 * count, "the streams are still open");
      for (const socket of sockets) socket.destroy();
      const areLeft = await until(() => taken().length === 0, 10_000);
      expect(areLeft, `the provider's connections close (${taken().length} are open)`);
      clearInterval(collecting);
      const did = `${count} endless streams of 64 KB events, nothing read`;
      return [did, `provider held up after at most ${mb(most)} MB`];
    },
  };
  return [idle, open, slow];
}

/** Sends bodies of 4.5 MB to all APIs at once. */
async function largeBodies(gateway: AttackedGateway, count: number, model: string) {
  const bodies = LARGE.map(({ path, body }) => ({ path, text: body(model) }));
  const answers = await Promise.all(
    Array.from({ length: count }, (_, at) => {
      const { path, text } = bodies[at % bodies.length]!;
      return ask(gateway, path, text, [200, 503]);
    }),
  );
  const faults = answers.flatMap(({ fault }) => fault ?? []);
  const areAnswered = answers.every(({ statuses }) => statuses.length === 1);
  gateway.expect(areAnswered, `200 or 503: ${countStatuses(answers)}; ${faults[0] ?? ""}`);
  const isServed = answers.some(({ statuses }) => statuses[0] === 200);
  gateway.expect(isServed, "some are served");
  await expectChat(gateway); // a client's fault must not open the breaker
  return [`${count} bodies of 4.5 MB at once, to all APIs`, countStatuses(answers)] as const;
}

/** Sends costly requests and replies one after another. None may block /healthz for 0.5 s. */
async function costlyJson(gateway: AttackedGateway, answer: Costly["answer"]) {
  const requests = [...chatRequests(), ...responsesRequests(), ...messagesRequests()];
  for (const each of requests)
    for (const model of FORMATS)
      await demand(gateway, each.body(model), { ...each, name: `${each.name}, ${model}` });
  for (const { name, model, body } of COSTLY_REPLIES) {
    answer({ body: body() });
    const text = await demand(gateway, bodyOf("hi", model), { ...CALL, name, status: 503 });
    gateway.expect(text.includes('"upstream_error"'), `${name}: upstream_error, got ${text}`);
  }
  answer(undefined);
  await expectChat(gateway);
  const did = `${requests.length} requests of up to 10 MB to each format, one at a time`;
  return [did, `as demanded; 503 for each of ${COSTLY_REPLIES.length} costly replies`] as const;
}

function attacksOfBodies(scale: number, costly: Costly): Attack[] {
  const common = (name: string) => ({ ...behind(name, "", costly.config), mayBeBusy: true });
  return [
    {
      // Each body alone takes a good part of a second. The gateway rejects those beyond its
      // capacity.
      ...common("a hundred large bodies"),
      heightMb: 3_000,
      afterMb: 500,
      pooled: 100,
      worstMs: 1_000,
      run: (gateway) => largeBodies(gateway, scaled(100, scale), "anthropic"),
    },
    {
      ...common("a small heap"),
      flags: ["--max-old-space-size=256"],
      heightMb: 600,
      afterMb: 250,
      pooled: 40,
      run: (gateway) => largeBodies(gateway, 40, "openai"),
    },
    {
      ...common("costly JSON"),
      heightMb: 600,
      afterMb: 350,
      pooled: 10,
      p99Ms: 500,
      worstMs: 500,
      run: (gateway) => costlyJson(gateway, costly.answer),
    },
  ];
}
