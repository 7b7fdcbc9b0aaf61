// A soak: the built gateway between a few hundred clients a second and providers that fail at
// random, for ten minutes: `npm run build && node --import tsx scripts/soak.ts [SECONDS]
// [REQUESTS_A_SECOND]`. Loopback only; bounded in time and count.
//
// It holds if every request is answered as its kind demands (a whole reply, a complete stream, a
// stream with an error in it, or an error body with a request id), nothing is unhandled, and
// neither memory nor descriptors grow after the warm-up. Exit 1 otherwise. The seed is printed;
// SOAK_SEED sets it.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const seconds = Math.min(3_600, Number(process.argv[2] ?? 600));
const rate = Math.min(2_000, Number(process.argv[3] ?? 300));
const seed = Number(process.env["SOAK_SEED"] ?? Date.now() % 1_000_000);

/** Mulberry32: the same seed, the same faults. */
let state = seed;
function random(): number {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
}
const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)]!;

const chunk = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
const usage = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 };
const reply = JSON.stringify({
  choices: [
    { index: 0, message: { role: "assistant", content: "one two three" }, finish_reason: "stop" },
  ],
  usage,
});

type Answer = (res: http.ServerResponse, streaming: boolean) => void;
const well: Answer = (res, streaming) => {
  if (!streaming) {
    res.writeHead(200, { "content-type": "application/json" }).end(reply);
    return;
  }
  res.writeHead(200, { "content-type": "text/event-stream" });
  let sent = 0;
  const beat = setInterval(() => {
    if (res.destroyed) {
      clearInterval(beat);
      return;
    }
    res.write(chunk({ content: `word ${sent} ` }));
    sent += 1;
    if (sent < 5) return;
    clearInterval(beat);
    res.end(
      `${chunk({}, "stop")}data: ${JSON.stringify({ choices: [], usage })}\n\ndata: [DONE]\n\n`,
    );
  }, 10);
};
const begin = (res: http.ServerResponse) =>
  res.writeHead(200, { "content-type": "text/event-stream" });
/** A stream that ends after these bytes. */
const streamOf =
  (bytes: string): Answer =>
  (res) => {
    begin(res).end(bytes);
  };
const FAULTS: readonly Answer[] = [
  (res) => res.writeHead(429, { "retry-after": pick(["0", "1", "60"]) }).end("{}"),
  (res) => res.writeHead(500).end("oops"),
  (res) => res.writeHead(503).end("{}"),
  (res) => res.socket?.resetAndDestroy(),
  (res) => res.socket?.end("nonsense\r\n\r\n"),
  (res) => res.writeHead(200, { "content-type": "text/html" }).end("<html>"),
  (res) => res.writeHead(200, { "content-type": "application/json" }).end('{"choices":[{'),
  (res) => res.writeHead(400).end('{"error":{"message":"no such field"}}'),
  (res) => res.writeHead(401).end("{}"),
  () => undefined, // silence, until the gateway's deadline
  (res) => begin(res).flushHeaders(),
  streamOf(chunk({ content: "cut" })),
  (res) => {
    begin(res).write(chunk({ content: "reset" }), () => res.socket?.resetAndDestroy());
  },
  (res) => {
    begin(res).write(chunk({ content: "stalled" }));
  },
  (res) => {
    res.writeHead(401, { "content-length": "99" }).write("{"); // an error whose body never comes
  },
  (res) => {
    begin(res).write(chunk({ content: "done" }, "stop"));
    const beat = setInterval(() => res.write(": ping\n\n"), 100);
    res.on("close", () => clearInterval(beat));
  },
  streamOf('data: {"error":{"message":"first"}}\n\n'),
  streamOf(`${chunk({ content: "a" })}data: {{{\n\n${chunk({ content: "b" }, "stop")}`),
];

function provider(failing: number): http.Server {
  return http.createServer({ noDelay: true }, (req, res) => {
    let body = "";
    req.setEncoding("utf8").on("data", (text: string) => {
      body += text;
    });
    req.on("end", () =>
      (random() < failing ? pick(FAULTS) : well)(res, body.includes('"stream":true')),
    );
    res.on("error", () => undefined);
  });
}

const counts: Record<string, number> = {};
function count(what: string): void {
  counts[what] = (counts[what] ?? 0) + 1;
}
const wrong: string[] = [];

function ask(url: string, agent: http.Agent): Promise<void> {
  const streaming = random() < 0.5;
  const model = pick(["flaky", "auto/x", "auto/x", "auto/x"]);
  const leaves = random() < 0.05 ? random() * 60 : undefined;
  const body = JSON.stringify({
    model,
    stream: streaming,
    messages: [{ role: "user", content: "hello" }],
  });
  return new Promise((resolve) => {
    const headers = {
      authorization: "Bearer sk-soak",
      "content-type": "application/json",
      "content-length": body.length,
    };
    const req = http.request(
      `${url}/v1/chat/completions`,
      { method: "POST", agent, headers },
      (res) => {
        let text = "";
        res.setEncoding("utf8").on("data", (piece: string) => {
          text += piece;
        });
        res.on("error", () => undefined);
        res.on("close", () => {
          const verdict =
            leaves !== undefined && !res.complete ? "left" : judge(res, text, streaming);
          count(verdict);
          if (verdict.startsWith("WRONG"))
            wrong.push(`${verdict} ${res.statusCode} ${text.slice(0, 300)}`);
          resolve();
        });
      },
    );
    req.setTimeout(20_000, () => {
      wrong.push(`WRONG: no end within 20 s (${model})`);
      req.destroy();
    });
    req.on("error", (error) => {
      count(leaves === undefined ? `WRONG: ${error.message}` : "left");
      if (leaves === undefined) wrong.push(error.message);
      resolve();
    });
    if (leaves !== undefined) setTimeout(() => req.destroy(), leaves);
    req.end(body);
  });
}

function judge(res: http.IncomingMessage, text: string, streaming: boolean): string {
  if (typeof res.headers["x-request-id"] !== "string") return "WRONG: no request id";
  if (!res.complete) return "WRONG: cut";
  try {
    if (res.statusCode !== 200) return `${res.statusCode} ${JSON.parse(text).error.code}`;
    if (!streaming)
      return JSON.parse(text).choices[0].finish_reason === "stop" ? "whole" : "WRONG: no finish";
    const last = text.trimEnd().split("\n\n").at(-1)!;
    if (last === "data: [DONE]")
      return text.includes('"finish_reason":"stop"') && !text.includes('{"error"')
        ? "stream"
        : "WRONG: [DONE] without a finish";
    return `stream with ${JSON.parse(last.slice(6)).error.code}`;
  } catch {
    return "WRONG: unreadable";
  }
}

const listening = async (server: http.Server) => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

const flaky = provider(0.4);
const steady = provider(0.02);
const folder = mkdtempSync(join(tmpdir(), "soak-"));
const config = join(folder, "gateway.json");
const dialect = "openai";
writeFileSync(
  config,
  JSON.stringify({
    admin: { port: 0 },
    data_dir: join(folder, "data"),
    providers: {
      flaky: { dialect, base_url: await listening(flaky) },
      steady: { dialect, base_url: await listening(steady) },
    },
    models: { flaky: { provider: "flaky" }, steady: { provider: "steady" } },
    aliases: { "auto/x": { models: ["flaky", "steady"] } },
    keys: [{ account: "soak", key: "sk-soak" }],
    limits: { rpm: null },
    timeouts: { connect_ms: 1_000, first_token_ms: 1_000, idle_ms: 1_000, total_ms: 10_000 },
    retry: { max_retries: 1, backoff_ms: 20, max_wait_ms: 1_000 },
    breaker: { failures: 20, cooldown_ms: 500 },
  }),
);

const gateway = spawn(
  process.execPath,
  [
    "--unhandled-rejections=strict",
    "--trace-warnings",
    "dist/chat-gateway.mjs",
    "serve",
    "--config",
    config,
    "--port",
    "0",
  ],
  { stdio: ["ignore", "pipe", "pipe"] },
);
let complaints = "";
gateway.stderr.setEncoding("utf8").on("data", (text: string) => {
  for (const line of text.split("\n"))
    if (line !== "" && !line.startsWith("{") && complaints.length < 10_000)
      complaints += `${line}\n`;
});
gateway.once("exit", () => complaints !== "" && console.error(complaints));
const [firstLine] = (await Promise.race([
  once(createInterface(gateway.stdout), "line"),
  once(gateway, "exit"),
])) as [string | number];
if (typeof firstLine !== "string")
  throw new Error("the gateway did not start: has `npm run build` been run?");
gateway.stdout.resume();
const url = /http:\S+/.exec(firstLine)![0];
let ended = false;
gateway.once("exit", () => {
  ended = true;
});

const sample = () => ({
  rss:
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${gateway.pid}/status`, "utf8"))?.[1]) / 1024,
  fds: readdirSync(`/proc/${gateway.pid}/fd`).length,
});

console.log(`soak: ${seconds} s, ${rate} requests a second, seed ${seed}, Node ${process.version}`);
const agent = new http.Agent({ keepAlive: true });
const startedAt = performance.now();
const samples: { at: number; rss: number; fds: number }[] = [];
let sent = 0;
let open = 0;
while (!ended && performance.now() - startedAt < seconds * 1000) {
  const elapsed = (performance.now() - startedAt) / 1000;
  for (; sent < elapsed * rate && open < 2_000; sent += 1) {
    open += 1;
    ask(url, agent).then(() => {
      open -= 1;
    });
  }
  if (elapsed > samples.length * (seconds / 40))
    samples.push({ at: Math.round(elapsed), ...sample() });
  await new Promise((resolve) => setTimeout(resolve, 5));
}
while (!ended && open > 0 && performance.now() - startedAt < seconds * 1000 + 30_000)
  await new Promise((resolve) => setTimeout(resolve, 20));
agent.destroy();
const half = (from: number, to: number) =>
  samples.slice(Math.floor(samples.length * from), Math.floor(samples.length * to));
const mean = (list: { rss: number; fds: number }[], field: "rss" | "fds") =>
  list.reduce((sum, each) => sum + each[field], 0) / list.length;
const [early, late] = [half(0.25, 0.5), half(0.75, 1)];
if (!ended) gateway.kill("SIGTERM");
const code = ended ? gateway.exitCode : (await once(gateway, "exit"))[0];
flaky.closeAllConnections();
steady.closeAllConnections();
flaky.close();
steady.close();
rmSync(folder, { recursive: true });

console.log(`sent ${sent}, unanswered ${open}, exit code after SIGTERM ${code}`);
for (const [what, times] of Object.entries(counts).sort((a, b) => b[1] - a[1]))
  console.log(`  ${String(times).padStart(8)}  ${what}`);
console.log(
  `memory (MB): second quarter ${mean(early, "rss").toFixed(1)}, last quarter ${mean(late, "rss").toFixed(1)}; descriptors: ${mean(early, "fds").toFixed(0)}, ${mean(late, "fds").toFixed(0)}`,
);
const failures = [
  ...wrong.slice(0, 10),
  ...(open > 0 ? [`${open} requests were never answered`] : []),
  ...(code !== 0 ? [`the gateway ended with ${code}`] : []),
  ...(complaints !== "" ? [`unexpected on stderr: ${complaints}`] : []),
  ...(mean(late, "rss") > mean(early, "rss") * 1.2 + 10 ? ["memory grew"] : []),
  ...(mean(late, "fds") > mean(early, "fds") * 1.2 + 20 ? ["descriptors grew"] : []),
];
for (const failure of failures) console.log(`FAILED: ${failure}`);
console.log(failures.length === 0 ? "soak: passed" : "soak: failed");
process.exitCode = failures.length === 0 ? 0 : 1;
