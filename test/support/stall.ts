// How long one request, or one reply of a provider, keeps others waiting: a built gateway in a
// process of its own, a provider of all dialects that says what it is told
// (scripts/fuzz/costly.ts), and a process that asks for GET /healthz meanwhile
// (scripts/bench/probe.ts).

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { FORMATS, startCostly, type Reply } from "../../scripts/fuzz/costly.ts";
import { createProbe, heightOf } from "./probe.ts";
import { launch, quickest } from "./program.ts";
import { within } from "./wait.ts";

const KEY = "sk-stall";
const headers = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };
/** The longest that one case may take, in milliseconds. */
const PATIENCE_MS = 120_000;

/** What a case came to. */
export interface Stall {
  readonly status: number;
  /** The client's answer. */
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
  const url = await within(running.address, "the gateway's address");
  const probe = createProbe();

  return {
    async measure(body, reply) {
      costly.answer(reply);
      const before = busyMsOf(running.child.pid);
      await probe.start(Number(new URL(url).port));
      const answer = await within(
        fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body }),
        "the gateway's answer",
        PATIENCE_MS,
      );
      const text = await within(answer.text(), "the end of the answer", PATIENCE_MS);
      const { times, lost } = await probe.stop();
      const busyMs = busyMsOf(running.child.pid) - before;
      return {
        status: answer.status,
        text,
        worstMs: lost > 0 ? Infinity : Math.min(busyMs, Math.max(...times)),
        heightMb: heightOf(running.child.pid!) / 1e6,
      };
    },
    async close() {
      probe.end();
      running.child.kill("SIGKILL");
      await running.ended;
      costly.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
