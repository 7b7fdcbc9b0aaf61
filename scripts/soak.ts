// A soak: the built gateway between a few hundred clients a second and providers that fail at
// random, for ten minutes: `npm run build && node --import tsx scripts/soak.ts [SECONDS]
// [REQUESTS_A_SECOND]`. Loopback only; bounded in time and count.
//
// It holds if every request is answered as its kind demands (a whole reply, a complete stream, a
// stream with an error in it, or an error body with a request id), nothing is unhandled, and
// neither memory nor descriptors grow after the warm-up. Exit 1 otherwise. The seed is printed;
// SOAK_SEED sets it.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { launch } from "../test/support/program.ts";
import {
  chunk,
  completion,
  event,
  rawStream,
  reset,
  silent,
  startProvider,
  status,
  stream,
  usageChunk,
  type Behaviour,
} from "../test/support/provider.ts";
import { createRandom } from "../test/support/random.ts";
import { within } from "../test/support/wait.ts";
import { createClient } from "./conformance/client.ts";
import { exchangeOf, type Exchange } from "./conformance/exchange.ts";
import { first } from "./conformance/shapes.ts";
import { CHAT, question } from "./conformance/suite.ts";

const seconds = Math.min(3_600, Number(process.argv[2] ?? 600));
const rate = Math.min(2_000, Number(process.argv[3] ?? 300));
const seed = Number(process.env["SOAK_SEED"] ?? Date.now() % 1_000_000);
const { random, pick } = createRandom(seed);
/** No request may take longer, from its first byte to the last of its answer. */
const END_MS = 20_000;
/** Requests that are open at a time, at most. */
const MOST = 2_000;
const WORDS = 5;

const text = (content: string, finish: string | null = null) => chunk({ content }, finish);
const FAULTS: readonly Behaviour[] = [
  (asked) => status(429, {}, { "retry-after": pick(["0", "1", "60"]) })(asked),
  status(500, "oops"),
  status(503),
  status(400, { error: { message: "no such field" } }),
  status(401),
  status(200, "<html>", { "content-type": "text/html" }),
  status(200, '{"choices":[{'),
  reset,
  ({ socket }) => {
    socket.end("nonsense\r\n\r\n");
  },
  silent, // until the gateway's deadline
  stream([], "open"),
  stream([text("cut")], "eof"),
  stream([text("reset")], "cut"),
  stream([text("stalled")], "open"),
  ({ res }) => {
    res.writeHead(401, { "content-length": "99" }).write("{"); // an error whose body never comes
  },
  ({ res }) => {
    res.writeHead(200, { "content-type": "text/event-stream" }).write(event(text("done", "stop")));
    const beat = setInterval(() => res.write(": ping\n\n"), 100);
    res.on("close", () => clearInterval(beat));
  },
  stream([{ error: { message: "first" } }], "eof"),
  rawStream(`${event(text("a"))}data: {{{\n\n${event(text("b", "stop"))}`),
];
/** A word every ten milliseconds, so that clients leave and connections end in mid-stream. */
const drips: Behaviour = ({ res }) => {
  res.writeHead(200, { "content-type": "text/event-stream" });
  let sent = 0;
  const beat = setInterval(() => {
    res.write(event(text(`word ${sent} `)));
    sent += 1;
    if (sent < WORDS) return;
    clearInterval(beat);
    res.end([chunk({}, "stop"), usageChunk(), "[DONE]"].map(event).join(""));
  }, 10);
  res.on("close", () => clearInterval(beat));
};
const well: Behaviour = (asked) =>
  (asked.body["stream"] ? drips : status(200, completion({ content: "one two three" })))(asked);

const ends: (() => unknown)[] = [];
const scope = { after: (end: () => unknown) => ends.push(end) };
/** A provider of whose answers so many fail. */
const provider = async (failing: number) => {
  const { url, asked } = await startProvider(scope, (request) => {
    asked.length = 0; // it would keep a hundred thousand requests
    return (random() < failing ? pick(FAULTS) : well)(request);
  });
  return { dialect: "openai", base_url: url };
};

/** What came of a request, in words. */
function verdictOf({ answer, headers, streamed, status: code, ...reply }: Exchange): string {
  if (headers["x-request-id"] === undefined) return "WRONG: no request id";
  if (!answer.whole) return "WRONG: cut";
  const isFinished = reply.finish === "stop" && reply.error === undefined;
  if (code === 200 && !streamed) return isFinished ? "whole" : "WRONG: no finish";
  if (reply.rest !== "") return "WRONG: unreadable";
  const last = reply.events.at(-1);
  if (last?.data === "[DONE]") return isFinished ? "stream" : "WRONG: [DONE] without a finish";
  // A stream that fails ends with its error.
  const error = first((last ?? reply).json, "error.code");
  if (error === undefined) return "WRONG: unreadable";
  return `${streamed ? "stream with" : code} ${error}`;
}

const counts = new Map<string, number>();
const wrong: string[] = [];
function count(what: string, shown = ""): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
  if (what.startsWith("WRONG")) wrong.push(`${what} ${shown.slice(0, 300)}`);
}

async function ask(client: ReturnType<typeof createClient>): Promise<void> {
  const model = pick(["flaky", "auto/x", "auto/x", "auto/x"]);
  const asked = { model, stream: random() < 0.5, messages: question("hello") };
  const leave = new AbortController();
  const leaves = random() < 0.05;
  if (leaves) setTimeout(() => leave.abort(), random() * 60);
  const headers = { authorization: "Bearer sk-soak", "content-type": "application/json" };
  const body = JSON.stringify(asked);
  const request = { method: "POST", path: CHAT, headers, body, signal: leave.signal };
  try {
    const answer = await within(client.send(request), `the end of a reply by ${model}`, END_MS);
    if (leaves && !answer.whole) return count("left");
    const { status: code, text: said = "" } = answer;
    count(verdictOf(exchangeOf("", { ...request, asked }, answer)), `${code} ${said}`);
  } catch (error) {
    leave.abort();
    count(leaves ? "left" : `WRONG: ${(error as Error).message}`);
  }
}

const folder = mkdtempSync(join(tmpdir(), "soak-"));
const file = join(folder, "gateway.json");
const config = {
  admin: { port: 0 },
  data_dir: join(folder, "data"),
  providers: { flaky: await provider(0.4), steady: await provider(0.02) },
  models: { flaky: { provider: "flaky" }, steady: { provider: "steady" } },
  aliases: { "auto/x": { models: ["flaky", "steady"] } },
  keys: [{ account: "soak", key: "sk-soak" }],
  limits: { rpm: null },
  timeouts: { connect_ms: 1_000, first_token_ms: 1_000, idle_ms: 1_000, total_ms: 10_000 },
  retry: { max_retries: 1, backoff_ms: 20, max_wait_ms: 1_000 },
  breaker: { failures: 20, cooldown_ms: 500 },
};
writeFileSync(file, JSON.stringify(config));
const strict = ["--unhandled-rejections=strict", "--trace-warnings"];
const program = { args: [...strict, "dist/chat-gateway.mjs"], cwd: process.cwd() };
const complaints: string[] = [];
const gateway = launch(program, ["serve", "--config", file, "--port", "0"], {
  env: { NODE_NO_WARNINGS: "0" },
  heard: (line, from) =>
    from === "stderr" && line !== "" && !line.startsWith("{") && complaints.push(line),
});
const { child } = gateway;
const client = createClient(await within(gateway.address, "the gateway to listen"), END_MS);
const isAlive = () => child.exitCode === null && child.signalCode === null;

const sample = () => ({
  rss: Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024,
  fds: readdirSync(`/proc/${child.pid}/fd`).length,
});

console.log(`soak: ${seconds} s, ${rate} requests a second, seed ${seed}, Node ${process.version}`);
const startedAt = performance.now();
const elapsed = () => (performance.now() - startedAt) / 1000;
const samples: ReturnType<typeof sample>[] = [];
let sent = 0;
let open = 0;
while (isAlive() && elapsed() < seconds) {
  for (; sent < elapsed() * rate && open < MOST; sent += 1) {
    open += 1;
    ask(client).finally(() => {
      open -= 1;
    });
  }
  if (elapsed() > samples.length * (seconds / 40)) samples.push(sample());
  await pause(5);
}
while (isAlive() && open > 0 && elapsed() < seconds + 30) await pause(20);
client.close();
child.kill("SIGTERM");
const { code } = await gateway.ended;
for (const end of ends) await end();
rmSync(folder, { recursive: true });

console.log(`sent ${sent}, unanswered ${open}, exit code after SIGTERM ${code}`);
for (const [what, times] of [...counts].sort((a, b) => b[1] - a[1]))
  console.log(`  ${String(times).padStart(8)}  ${what}`);
/** The mean of a figure in the second quarter of the samples, and in the last. */
const means = (field: "rss" | "fds") =>
  [0.25, 0.75].map((from) => {
    const part = samples.slice(samples.length * from, samples.length * (from + 0.25));
    return part.reduce((sum, each) => sum + each[field], 0) / part.length;
  }) as [number, number];
const [memory, descriptors] = [means("rss"), means("fds")];
const shown = (figures: readonly number[]) => figures.map((each) => each.toFixed(0)).join(", ");
console.log(`second and last quarter: memory (MB) ${shown(memory)}; fds ${shown(descriptors)}`);
const failures = [
  ...wrong.slice(0, 10),
  ...(open > 0 ? [`${open} requests were never answered`] : []),
  ...(code !== 0 ? [`the gateway ended with ${code}`] : []),
  ...complaints.slice(0, 10).map((line) => `unexpected on stderr: ${line}`),
  ...(memory[1] > memory[0] * 1.2 + 10 ? ["memory grew"] : []),
  ...(descriptors[1] > descriptors[0] * 1.2 + 20 ? ["descriptors grew"] : []),
];
for (const failure of failures) console.log(`FAILED: ${failure}`);
console.log(failures.length === 0 ? "soak: passed" : "soak: failed");
process.exitCode = failures.length === 0 ? 0 : 1;
