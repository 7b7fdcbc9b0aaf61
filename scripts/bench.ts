// What the gateway costs against a bare node:http relay, in one run on one machine: `npm run bench`. Whole replies a second,
// and CPU time per streamed event. Loopback only; bounded: about a minute.
//
// Four processes: the measured one (the gateway from the built file, or the relay) on one core; the provider and this load
// generator on the other, where taskset is there to say so. Runs alternate; the table shows medians and their ratio.
// The relay is the floor: it parses and re-serialises both bodies and does nothing else.

import { spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as pause } from "node:timers/promises";

const ROUNDS = 3;
const WHOLE_SECONDS = 4;
const CONCURRENCY = 64;
const STREAMS = 50;
const EVENTS_PER_SECOND = 100;
const STREAM_SECONDS = 5;

const REPLY = JSON.stringify({
  id: "x", object: "chat.completion", created: 1, model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "All happy families are alike. ".repeat(10) }, finish_reason: "stop" }],
  usage: { prompt_tokens: 20, completion_tokens: 70, total_tokens: 90 },
});
const EVENT = `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: { content: " happy" }, finish_reason: null }] })}\n\n`;
const LAST = `data: ${JSON.stringify({ id: "x", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\ndata: [DONE]\n\n`;

const readBody = async (stream: AsyncIterable<Buffer>): Promise<any> => {
  const pieces: Buffer[] = [];
  for await (const piece of stream) pieces.push(piece);
  return JSON.parse(Buffer.concat(pieces).toString());
};

/** A fast provider: a fixed whole reply, or a stream at a fixed pace. */
function provider(): http.Server {
  return http.createServer({ noDelay: true }, async (req, res) => {
    const { stream } = await readBody(req);
    if (!stream) return void res.writeHead(200, { "content-type": "application/json", "content-length": REPLY.length }).end(REPLY);
    res.writeHead(200, { "content-type": "text/event-stream" });
    let sent = 0;
    const beat = setInterval(() => {
      sent += 1;
      res.write(EVENT);
      if (sent < EVENTS_PER_SECOND * STREAM_SECONDS) return;
      clearInterval(beat);
      res.end(LAST);
    }, 1000 / EVENTS_PER_SECOND);
    res.on("close", () => clearInterval(beat));
  });
}

/** The floor: what any gateway on node:http has to do at least. */
function relay(upstream: string): http.Server {
  const agent = new http.Agent({ keepAlive: true });
  return http.createServer({ noDelay: true }, async (req, res) => {
    const body = JSON.stringify(await readBody(req));
    const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
    const out = http.request(`${upstream}/chat/completions`, { method: "POST", agent, headers }, async (reply) => {
      if (reply.headers["content-type"] === "application/json") {
        const text = JSON.stringify(await readBody(reply));
        return void res.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) }).end(text);
      }
      res.writeHead(200, { "content-type": "text/event-stream" });
      let rest = "";
      reply.setEncoding("utf8");
      reply.on("data", (text: string) => {
        const events = (rest + text).split("\n\n");
        rest = events.pop()!;
        res.write(events.map((event) => (event === "data: [DONE]" ? `${event}\n\n` : `data: ${JSON.stringify(JSON.parse(event.slice(6)))}\n\n`)).join(""));
      });
      reply.on("end", () => res.end());
    });
    out.end(body);
  });
}

async function listen(server: http.Server): Promise<void> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  console.log(`listens on http://127.0.0.1:${(server.address() as { port: number }).port}`);
}

const pinned = spawnSync("taskset", ["-V"]).status === 0;

/** Starts a process on a core; resolves with its address when it says one. */
async function start(core: number, args: string[]): Promise<{ child: ChildProcess; url: string }> {
  const command = pinned ? ["taskset", "-c", String(core), process.execPath, ...args] : [process.execPath, ...args];
  const child = spawn(command[0]!, command.slice(1), { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface(child.stdout!);
  for await (const line of lines) {
    const url = /listens on (http:\S+)/.exec(line)?.[1];
    if (!url) continue;
    child.stdout!.resume();
    return { child, url };
  }
  throw new Error(`no address from ${args.join(" ")}`);
}

const requestBody = (stream: boolean) =>
  JSON.stringify({ model: "m", stream, temperature: 0.5, messages: [{ role: "system", content: "Be brief." }, { role: "user", content: "How does it begin? ".repeat(10) }] });

function ask(url: string, agent: http.Agent, body: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: "Bearer sk-bench", "content-type": "application/json", "content-length": body.length };
    const req = http.request(`${url}/v1/chat/completions`, { method: "POST", agent, headers }, (res) => {
      if (res.statusCode !== 200) reject(new Error(`status ${res.statusCode}`));
      res.resume();
      res.on("end", resolve);
    });
    req.on("error", reject);
    req.end(body);
  });
}

/** Whole replies a second. */
async function throughput(url: string): Promise<number> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONCURRENCY });
  const body = requestBody(false);
  const end = performance.now() + WHOLE_SECONDS * 1000;
  let count = 0;
  await Promise.all(
    Array.from({ length: CONCURRENCY }, async () => {
      for (; performance.now() < end; count += 1) await ask(url, agent, body);
    }),
  );
  agent.destroy();
  return count / WHOLE_SECONDS;
}

/** Microseconds of CPU, user and system, of the process per streamed event. */
async function cpuPerEvent(url: string, pid: number): Promise<number> {
  const cpu = () => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
    return (Number(fields[11]) + Number(fields[12])) * 10_000; // clock ticks of 10 ms
  };
  const agent = new http.Agent({ keepAlive: false });
  const before = cpu();
  await Promise.all(Array.from({ length: STREAMS }, () => ask(url, agent, requestBody(true))));
  return (cpu() - before) / (STREAMS * EVENTS_PER_SECOND * STREAM_SECONDS);
}

const median = (values: number[]) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]!;

async function run(): Promise<void> {
  const script = [...process.execArgv, "scripts/bench.ts"];
  const folder = mkdtempSync(join(tmpdir(), "bench-"));
  const children: ChildProcess[] = [];
  if (pinned) spawnSync("taskset", ["-cp", "1", String(process.pid)]);
  try {
    const upstream = await start(1, [...script, "provider"]);
    children.push(upstream.child);
    const floor = await start(0, [...script, "relay", upstream.url]);
    children.push(floor.child);
    const config = join(folder, "gateway.json");
    const keys = [{ account: "bench", key: "sk-bench" }];
    const models = { m: { provider: "fast" } };
    writeFileSync(config, JSON.stringify({ data_dir: join(folder, "data"), providers: { fast: { dialect: "openai", base_url: upstream.url } }, models, aliases: {}, keys, limits: { rpm: 1_000_000 } }));
    const gateway = await start(0, ["dist/chat-gateway.mjs", "serve", "--config", config, "--port", "0"]);
    children.push(gateway.child);

    const measured = { relay: { ...floor, rps: [] as number[], cpu: [] as number[] }, gateway: { ...gateway, rps: [] as number[], cpu: [] as number[] } };
    for (const each of Object.values(measured)) await throughput(each.url); // warm-up
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const each of Object.values(measured)) {
        each.rps.push(await throughput(each.url));
        each.cpu.push(await cpuPerEvent(each.url, each.child.pid!));
        await pause(200); // let the sockets of the round before close
      }
    }
    const [floorRps, rps] = [median(measured.relay.rps), median(measured.gateway.rps)];
    const [floorCpu, cpu] = [median(measured.relay.cpu), median(measured.gateway.cpu)];
    console.log(`Node ${process.version}, ${pinned ? "pinned to one core each" : "not pinned"}, medians of ${ROUNDS} alternating rounds`);
    console.log(`whole replies a second (${CONCURRENCY} at a time)   relay ${floorRps.toFixed(0)}   gateway ${rps.toFixed(0)}   ratio ${(rps / floorRps).toFixed(2)}`);
    console.log(`CPU per streamed event (${STREAMS} streams)     relay ${floorCpu.toFixed(1)} us   gateway ${cpu.toFixed(1)} us   ratio ${(cpu / floorCpu).toFixed(2)}`);
  } finally {
    for (const child of children) child.kill("SIGKILL");
    rmSync(folder, { recursive: true });
  }
}

const [role, upstream = ""] = process.argv.slice(2);
if (role === "provider") await listen(provider());
else if (role === "relay") await listen(relay(upstream));
else await run();
