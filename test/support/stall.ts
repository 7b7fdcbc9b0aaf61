// How long one request, or one reply of a provider, keeps others waiting: a built gateway in a
// process of its own, a provider of all dialects that says what it is told
// (scripts/fuzz/costly.ts), and a process that asks for GET /healthz meanwhile
// (scripts/bench/probe.ts).

import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Probed } from "../../scripts/bench/probe.ts";
import { FORMATS, startCostly, type Reply } from "../../scripts/fuzz/costly.ts";
import { fromModules, launch, quickest } from "./program.ts";
import { within } from "./wait.ts";

const KEY = "sk-stall";
/** The longest that one case may take, in milliseconds. */
const PATIENCE_MS = 120_000;

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
   * Sends the text as a chat request; `reply` is what the provider answers, absent: a short reply
   * in its own format.
   */
  measure(body: string, reply?: Reply): Promise<Stall>;
  close(): Promise<void>;
}

/** How long processors have been busy with a process, in milliseconds: in ticks of 10. */
function busyMsOf(pid: number | undefined): number {
  const [, figures = ""] = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ");
  const [user, system] = figures.split(" ").slice(11);
  return 10 * (Number(user) + Number(system));
}

/** A model of each format has the name of the format. */
export async function startScene(): Promise<Scene> {
  const folder = mkdtempSync(join(tmpdir(), "chat-gateway-stall-"));
  const costly = await startCostly();
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
    providers: { ...costly.config.providers, demo: { vendor: "demo", pace_ms: 0 } },
    models: {
      ...Object.fromEntries([...FORMATS, "demo"].map((name) => [name, model(name)])),
      tags: { ...model("openai"), think_tags: true },
    },
    limits: { rpm: null },
    retry: { max_retries: 0 },
    breaker: { failures: 1_000_000 },
    keys: [{ account: "a", key: KEY }],
  };
  writeFileSync(join(folder, "gateway.json"), JSON.stringify(config));
  const program = quickest(folder);
  const running = launch(program, [
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
    async measure(body, reply) {
      costly.answer(reply);
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
      costly.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
