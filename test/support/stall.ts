// How long one request, or one reply of a provider, keeps others waiting: a built gateway in a
// process of its own, providers of all dialects that say what they are told as raw bytes, and a
// process that asks for GET /healthz meanwhile (scripts/bench/probe.ts).

import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Probed } from "../../scripts/bench/probe.ts";
import { fromModules, launch, quickest } from "./program.ts";
import { within } from "./wait.ts";

const KEY = "sk-stall";
/** The longest that one case may take, in milliseconds. */
const PATIENCE_MS = 120_000;

/** A model of each dialect has the name of the dialect; `alias` may be served by all of them. */
export const DIALECTS = ["openai", "anthropic", "gemini"] as const;

export interface Reply {
  readonly type: string;
  readonly body: string | Buffer;
  readonly status?: number;
}

/** What a case came to. */
export interface Stall {
  readonly status: number;
  /** The client's answer, its first megabyte at the most. */
  readonly text: string;
  /**
   * The longest that a GET /healthz took meanwhile, in milliseconds, but no longer than the gateway
   * was at work in all: the rest of the time the machine was busy with something else.
   */
  readonly worstMs: number;
  /** The height of the gateway's resident memory since it started, in megabytes. */
  readonly heightMb: number;
}

export interface Scene {
  /**
   * Sends the bytes as a chat request; `reply` is what the provider answers, absent: a short reply
   * in its own format.
   */
  measure(body: string | Buffer, reply?: Reply): Promise<Stall>;
  /** How many requests have come to the provider. */
  asked(): number;
  close(): Promise<void>;
}

const SHORT: readonly (readonly [path: RegExp, body: string])[] = [
  [
    /\/v1\/messages$/,
    '{"type":"message","content":[{"type":"text","text":"Hi."}],"stop_reason":"end_turn","usage":{}}',
  ],
  [/\/v1beta\//, '{"candidates":[{"content":{"parts":[{"text":"Hi."}]},"finishReason":"STOP"}]}'],
  [/./, '{"choices":[{"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}]}'],
];

/** How long processors have been busy with a process, in milliseconds: in ticks of 10. */
function busyMsOf(pid: number | undefined): number {
  const [, figures = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const [user, system] = figures.split(" ").slice(11);
  return 10 * (Number(user) + Number(system));
}

export async function startScene(over: object = {}, flags: readonly string[] = []): Promise<Scene> {
  const folder = mkdtempSync(join(tmpdir(), "chat-gateway-stall-"));
  let reply: Reply | undefined;
  let asked = 0;
  const provider = http.createServer((req, res) => {
    asked += 1;
    req.resume().on("end", () => {
      const path = (req.url ?? "").replace(/\?.*/, "");
      const { type, body, status } = reply ?? {
        type: "application/json",
        body: SHORT.find(([each]) => each.test(path))![1],
      };
      res.writeHead(status ?? 200, { "content-type": type }).end(body);
    });
  });
  provider.listen(0, "127.0.0.1");
  await once(provider, "listening");
  const base_url = `http://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  const model = (name: string) => ({
    provider: name,
    reasoning: true,
    context_tokens: 100_000_000,
    supports: ["tools", "json_object", "json_schema", "images", "files"],
  });
  const config = {
    server: { port: 0 },
    admin: { port: 0 },
    data_dir: join(folder, "data"),
    providers: {
      ...Object.fromEntries(
        DIALECTS.map((name) => [
          name,
          name === "openai" ? { dialect: name, base_url } : { vendor: name, base_url },
        ]),
      ),
      demo: { vendor: "demo", pace_ms: 0 },
    },
    models: {
      ...Object.fromEntries(DIALECTS.map((name) => [name, model(name)])),
      tags: { ...model("openai"), think_tags: true },
      whole: { ...model("openai"), stream_only: true },
      demo: model("demo"),
    },
    aliases: { alias: { models: [...DIALECTS] } },
    limits: { rpm: null },
    retry: { max_retries: 0 },
    breaker: { failures: 1_000_000 },
    keys: [{ account: "a", key: KEY }],
    ...over,
  };
  writeFileSync(join(folder, "gateway.json"), JSON.stringify(config));
  const program = quickest(folder);
  const running = launch({ ...program, args: [...flags, ...program.args] }, [
    "serve",
    "--config",
    join(folder, "gateway.json"),
    "--port",
    "0",
  ]);
  const url = new URL(await within(running.address, "the gateway's address"));
  const { args } = fromModules(folder, "scripts/bench/probe.ts");
  const probe = fork(args.at(-1)!, { execArgv: args.slice(0, -1) });
  const tell = async (message: number | "stop") => {
    const [said] = await within(
      (() => {
        const answer = once(probe, "message");
        probe.send(message);
        return answer;
      })(),
      `the probe's answer to ${message}`,
      PATIENCE_MS,
    );
    return said as Probed | "begun";
  };

  return {
    asked: () => asked,
    async measure(body, given) {
      reply = given;
      const before = busyMsOf(running.child.pid);
      await tell(Number(url.port));
      const answer = new Promise<Pick<Stall, "status" | "text">>((resolve, reject) => {
        const headers = {
          authorization: `Bearer ${KEY}`,
          "content-type": "application/json",
          "content-length": Buffer.byteLength(body),
        };
        const options = { method: "POST", headers, agent: false };
        const req = http.request(new URL("/v1/chat/completions", url), options, (res) => {
          let text = "";
          res.on("data", (piece: Buffer) => {
            if (text.length < 1_000_000) text += piece.toString("latin1");
          });
          res.on("end", () => resolve({ status: res.statusCode ?? 0, text }));
          res.on("error", () =>
            resolve({ status: res.statusCode ?? 0, text: `${text}(broken off)` }),
          );
        });
        req.on("error", reject);
        req.end(body);
      });
      const { status, text } = await within(answer, "the gateway's answer", PATIENCE_MS);
      const { times, lost } = (await tell("stop")) as Probed;
      const busyMs = busyMsOf(running.child.pid) - before;
      const peak = /VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${running.child.pid}/status`, "utf8"));
      return {
        status,
        text,
        worstMs: lost > 0 ? Infinity : Math.min(busyMs, Math.max(...times)),
        heightMb: Number(peak![1]) / 1000,
      };
    },
    async close() {
      probe.disconnect();
      running.child.kill("SIGKILL");
      await running.ended;
      provider.closeAllConnections();
      provider.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
