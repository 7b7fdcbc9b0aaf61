// The transcript of one built file for scripts/compare.ts: what it answers to some hundreds of
// exchanges, what it asks of its providers, what stands in its logs and books afterwards, and what
// its commands print. What differs from run to run is replaced (normalise.ts).
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { within } from "../../test/support/wait.ts";
import { makeCase, type Case } from "../fuzz/cases.ts";
import { normalise } from "./normalise.ts";
import { startProvider } from "./provider.ts";
import { FORMATS, scriptsOf } from "./replies.ts";

const KEY = "sk-compare-client";
/** No exchange may take longer. */
const DEADLINE_MS = 20_000;
const AT_ONCE = 16;

const user = { role: "user", content: "What time is it in Oslo?" };
const tool = {
  type: "function",
  function: {
    name: "get_time",
    parameters: { type: "object", properties: { city: { type: "string" } } },
  },
};
/** What is asked of each script. */
const REQUESTS: Readonly<Record<string, object>> = {
  whole: {},
  stream: { stream: true, stream_options: { include_usage: true }, temperature: 0.5, stop: "END" },
  thinking: {
    stream: true,
    thinking: { type: "enabled" },
    reasoning_effort: "low",
    max_tokens: 2000,
  },
  tools: {
    messages: [
      { role: "system", content: "Be brief." },
      user,
      {
        role: "assistant",
        content: null,
        tool_calls: [
          {
            id: "call_7",
            type: "function",
            function: { name: "get_time", arguments: '{"city":"Oslo"}' },
          },
        ],
      },
      { role: "tool", tool_call_id: "call_7", content: "14:05" },
    ],
    tools: [tool],
    tool_choice: "auto",
    user: "ada",
    seed: 7,
  },
};

/**
 * A model for each script in each format, and an alias that falls back from each fault to a good
 * one.
 */
function configuration(url: string, dataDir: string): object {
  const models = FORMATS.flatMap((format) =>
    scriptsOf(format).map((script) => [
      `${format}/${script}`,
      {
        provider: format,
        upstream_model: `up__${script}`,
        reasoning: true,
        context_tokens: 100_000,
        price: { input_cache_hit: 0.1, input_cache_miss: 1, output: 2 },
      },
    ]),
  );
  const aliases = models.map(([name]) => [
    `auto/${String(name)}`,
    { models: [name, "openai/text"].filter((each, at, all) => all.indexOf(each) === at) },
  ]);
  return {
    server: { port: 0, receive_ms: 1_000, max_body_bytes: 65_536 },
    admin: { port: 0 },
    data_dir: dataDir,
    providers: {
      openai: {
        vendor: "generic",
        base_url: url,
        api_key: "sk-compare-provider",
        thinking: "thinking",
      },
      anthropic: { vendor: "anthropic", base_url: url, api_key: "sk-compare-provider" },
      gemini: { vendor: "gemini", base_url: url, api_key: "sk-compare-provider" },
      demo: { dialect: "demo", pace_ms: 0 },
    },
    models: {
      ...Object.fromEntries(models),
      "demo-chat": {
        provider: "demo",
        quality_score: 50,
        price: { input_cache_miss: 0.1, output: 0.2 },
      },
      "demo-reasoner": { provider: "demo", reasoning: true, reasoning_score: 50 },
    },
    aliases: {
      ...Object.fromEntries(aliases),
      "auto/chat": { policy: "value" },
      "auto/reasoning": { policy: "reasoning" },
    },
    keys: [
      { account: "acme", key: KEY },
      { account: "demo", key: "sk-demo" },
      { account: "narrow", key: "sk-compare-narrow", rpm: 1, models: ["auto/chat"] },
    ],
    limits: { rpm: null },
    retry: { max_retries: 0 },
    // A refused key opens a breaker at once; it then stays as it is to the end.
    breaker: { failures: 1_000_000, cooldown_ms: 86_400_000 },
  };
}

/** All that comes back on a connection on which these bytes are sent. */
function talk(port: number, pieces: readonly Buffer[], ending: Case["ending"]): Promise<string> {
  return new Promise((resolve) => {
    const received: Buffer[] = [];
    const socket = net.connect({ port, host: "127.0.0.1", noDelay: true });
    const deadline = setTimeout(() => socket.destroy(), DEADLINE_MS);
    socket.on("data", (data: Buffer) => received.push(data));
    socket.on("error", () => undefined);
    socket.on("close", () => {
      clearTimeout(deadline);
      resolve(Buffer.concat(received).toString("latin1"));
    });
    // In one packet: where packets end may decide what is answered.
    socket.write(Buffer.concat(pieces));
    if (ending === "half") socket.end();
  });
}

function request(method: string, path: string, headers: readonly string[], body = ""): Buffer {
  const lines = [`${method} ${path} HTTP/1.1`, "Host: localhost", "Connection: close", ...headers];
  if (body !== "")
    lines.push("Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`);
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

interface Exchange {
  readonly name: string;
  readonly admin: boolean;
  readonly pieces: readonly Buffer[];
  readonly ending: Case["ending"];
}

const single = (name: string, bytes: Buffer, admin = false): Exchange => ({
  name,
  admin,
  pieces: [bytes],
  ending: "server",
});

/**
 * What a client that leaves had got by then, how much of a flood of headers was read, and figures
 * of the moment are a matter of chance.
 */
function isRepeatable({ ending, told, pieces }: Case): boolean {
  if (ending === "leave" || told.includes("flood")) return false;
  return !/(status|metrics|events|usage|costs|trace)/i.test(
    Buffer.concat(pieces).toString("latin1"),
  );
}

function exchanges(cases: number, seed: number): Exchange[] {
  const list: Exchange[] = [];
  for (const format of FORMATS) {
    for (const script of scriptsOf(format)) {
      for (const [variant, fields] of Object.entries(REQUESTS)) {
        for (const model of [`${format}/${script}`, `auto/${format}/${script}`]) {
          const name = `${model} ${variant}`;
          const body = JSON.stringify({ model, messages: [user], ...fields });
          const headers = [`Authorization: Bearer ${KEY}`, `X-Request-Id: ${name}`];
          list.push(single(name, request("POST", "/v1/chat/completions", headers, body)));
        }
      }
    }
  }
  for (const path of ["/healthz", "/readyz", "/openapi.json", "/v1/models", "/nowhere"])
    list.push(single(`GET ${path}`, request("GET", path, [`Authorization: Bearer ${KEY}`])));
  for (const path of ["/", "/nowhere", "/costs?month=x"])
    list.push(single(`admin GET ${path}`, request("GET", path, []), true));
  for (let number = 0; list.length < cases; number += 1) {
    const sent = makeCase(seed, number);
    if (!isRepeatable(sent)) continue;
    list.push({
      name: `case ${number}: ${sent.told}`,
      admin: sent.admin,
      pieces: sent.pieces,
      ending: sent.ending,
    });
  }
  return list;
}

async function command(file: string, args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [file, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  child.stdout.on("data", (data: Buffer) => {
    said += data.toString();
  });
  child.stderr.on("data", (data: Buffer) => {
    said += data.toString();
  });
  const [code] = await once(child, "close");
  return `${said}exit ${code}`;
}

/** The gateway as a process that has said where it listens. */
async function start(file: string, config: string) {
  const child = spawn(process.execPath, [file, "serve", "--config", config], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  const access: string[] = [];
  const diagnostics: string[] = [];
  createInterface(child.stderr).on("line", (line) => diagnostics.push(line));
  const lines = createInterface(child.stdout);
  const [first] = (await within(once(lines, "line"), "the gateway to listen", DEADLINE_MS)) as [
    string,
  ];
  lines.on("line", (line) => access.push(line));
  const ports = [...first.matchAll(/http:\/\/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port));
  const stop = async (): Promise<void> => {
    const closed = once(child, "close");
    child.kill("SIGTERM");
    await within(closed, "the end after SIGTERM", DEADLINE_MS);
  };
  return { publicPort: ports[0]!, adminPort: ports[1]!, access, diagnostics, stop };
}

/** By the name of each exchange, or of what else was looked at, what was seen. */
export async function transcriptOf(
  file: string,
  cases: number,
  seed: number,
): Promise<ReadonlyMap<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), "compare-"));
  const provider = await startProvider();
  const seen = new Map<string, string>();
  try {
    const config = join(folder, "gateway.json");
    const dataDir = join(folder, "data");
    writeFileSync(config, JSON.stringify(configuration(provider.url, dataDir)));
    const gateway = await start(file, config);
    const waiting = exchanges(cases, seed);
    const exchange = async ({ name, admin, pieces, ending }: Exchange): Promise<void> => {
      const port = admin ? gateway.adminPort : gateway.publicPort;
      seen.set(name, normalise(await talk(port, pieces, ending)));
    };
    // One after the other as long as breakers matter, then many at once: a request that never comes
    // to its end takes a second.
    const scripted = waiting.filter(({ name }) => !name.startsWith("case "));
    const others = waiting.filter(({ name }) => name.startsWith("case "));
    for (const each of scripted) await exchange(each);
    const worker = async (): Promise<void> => {
      for (let next = others.shift(); next !== undefined; next = others.shift())
        await exchange(next);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    await gateway.stop();
    for (const [model, requests] of provider.received) {
      const lines = requests.map((each) => normalise(JSON.stringify(each))).sort();
      seen.set(`asked of the provider: ${model}`, lines.join("\n"));
    }
    const spend = join(dataDir, "spend");
    const books = readdirSync(spend)
      .filter((name) => name.endsWith(".jsonl"))
      .flatMap((name) => readFileSync(join(spend, name), "utf8").trim().split("\n"));
    seen.set("spend log", books.map(normalise).sort().join("\n"));
    seen.set("access log", gateway.access.map(normalise).sort().join("\n"));
    seen.set("diagnostics", gateway.diagnostics.map(normalise).sort().join("\n"));
    const month = new Date().toISOString().slice(0, 7);
    for (const words of [
      "help",
      "check",
      "check --json",
      "explain auto/chat",
      "keys list",
      `billing statement --account acme --month ${month}`,
      "audit",
      "audit --json",
      "nonsense",
    ]) {
      const args =
        words === "help" || words === "nonsense"
          ? [words]
          : [...words.split(" "), "--config", config];
      seen.set(
        `command ${words}`,
        normalise((await command(file, args)).replaceAll(folder, "FOLDER")),
      );
    }
  } finally {
    await provider.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return seen;
}
