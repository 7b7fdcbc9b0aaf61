// The transcript of one built file for scripts/compare.ts: what it answers to some hundreds of
// exchanges, what it asks of its providers, what stands in its logs and books afterwards, and what
// its commands print. What differs from run to run is replaced (normalise.ts).
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lines } from "../../test/support/command.ts";
import { launch, runToEnd } from "../../test/support/program.ts";
import { within } from "../../test/support/wait.ts";
import { TOOLS } from "../conformance/suite.ts";
import { makeCase, type Case } from "../fuzz/cases.ts";
import { normalise } from "./normalise.ts";
import { FORMATS, SCRIPT_NAMES, scriptOf, startProvider } from "./provider.ts";

const KEY = "sk-compare-client";
/** No exchange may take longer. */
const DEADLINE_MS = 20_000;
const AT_ONCE = 16;

const user = { role: "user", content: "What time is it in Oslo?" };
const call = {
  id: "call_7",
  type: "function",
  function: { name: "get_time", arguments: '{"city":"Oslo"}' },
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
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: "call_7", content: "14:05" },
    ],
    ...TOOLS,
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
    SCRIPT_NAMES.map((script) => [
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
  const server = { base_url: url, api_key: "sk-compare-provider" };
  return {
    server: { port: 0, receive_ms: 1_000, max_body_bytes: 65_536 },
    admin: { port: 0 },
    data_dir: dataDir,
    providers: {
      openai: { vendor: "generic", thinking: "thinking", ...server },
      anthropic: { vendor: "anthropic", ...server },
      gemini: { vendor: "gemini", ...server },
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
    for (const script of SCRIPT_NAMES) {
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

const COMMANDS = [
  ...["help", "check", "check --json", "explain auto/chat", "keys list", "audit", "audit --json"],
  ...[`billing statement --account acme --month ${new Date().toISOString().slice(0, 7)}`],
  "nonsense",
];
const sorted = (texts: readonly string[]): string => texts.map(normalise).sort().join("\n");

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
    const program = { args: [file], cwd: process.cwd() };
    const env = { NODE_NO_WARNINGS: "0" };
    const gateway = launch(program, ["serve", "--config", config], { env });
    const url = await within(gateway.address, "the gateway to listen", DEADLINE_MS);
    const waiting = exchanges(cases, seed);
    const exchange = async ({ name, admin, pieces, ending }: Exchange): Promise<void> => {
      const port = Number(new URL(admin ? gateway.admin() : url).port);
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
    gateway.child.kill("SIGTERM");
    const { stdout, stderr } = await within(gateway.ended, "the end after SIGTERM", DEADLINE_MS);
    for (const script of new Set(provider.asked.map(scriptOf))) {
      const requests = provider.asked.filter((each) => scriptOf(each) === script);
      const shown = requests.map(({ path, headers, body }) =>
        JSON.stringify({ path, headers, body }),
      );
      seen.set(`asked of the provider: ${script}`, sorted(shown));
    }
    const spend = join(dataDir, "spend");
    const books = readdirSync(spend)
      .filter((name) => name.endsWith(".jsonl"))
      .flatMap((name) => lines(readFileSync(join(spend, name), "utf8")));
    seen.set("spend log", sorted(books));
    seen.set("access log", sorted(lines(stdout).slice(1)));
    seen.set("diagnostics", sorted(lines(stderr)));
    for (const words of COMMANDS) {
      const isBare = words === "help" || words === "nonsense";
      const args = isBare ? [words] : [...words.split(" "), "--config", config];
      const { code, ...said } = await runToEnd(program, args);
      const shown = `${said.stdout}${said.stderr}exit ${code}`;
      seen.set(`command ${words}`, normalise(shown.replaceAll(folder, "FOLDER")));
    }
  } finally {
    await provider.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return seen;
}
