// A gateway with several real processes, and clients that use a new connection for every request;
// the workers get these connections in turn.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import http from "node:http";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Line } from "../../../support/books.ts";
import { ended, lines } from "../../../support/command.ts";
import { folder, replace } from "../../../support/folder.ts";
import { configFor, KEY, merge, user } from "../../../support/gateway.ts";
import { launch, quickest, type Running } from "../../../support/program.ts";
import {
  chunk,
  event,
  speak,
  startProvider,
  stream,
  type Asked,
  type Behaviour,
} from "../../../support/provider.ts";
import type { Scope } from "../../../support/scope.ts";
import { until, waitFor, within } from "../../../support/wait.ts";

export type Reply = Awaited<ReturnType<typeof send>>;

/** Resolves with the response headers. */
export async function send(url: string, body?: object, key = KEY) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const req = http.request(url, { method: body ? "POST" : "GET", headers, agent: false });
  req.end(body && JSON.stringify(body));
  const [res] = await within(once(req, "response"), `the headers of an answer from ${url}`);
  let text = "";
  res.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  res.on("error", () => undefined);
  const over = new Promise<"whole" | "cut">((resolve) =>
    res.on("close", () => resolve(res.complete ? "whole" : "cut")),
  );
  return {
    status: res.statusCode as number,
    headers: res.headers as http.IncomingHttpHeaders,
    text: () => text,
    /** Resolves with the complete or broken body. */
    over,
    leave: () => res.socket.destroy() as unknown,
  };
}

export const ask = (address: string, body: object = {}, key = KEY): Promise<Reply> =>
  send(`${address}/v1/chat/completions`, { model: "m", messages: user("Hello."), ...body }, key);

export async function whole(reply: Reply | Promise<Reply>): Promise<Reply> {
  assert.equal(await within((await reply).over, "the end of an answer"), "whole");
  return reply;
}
export const status = async (reply: Promise<Reply>): Promise<number> => (await whole(reply)).status;

/** A stream that has begun, and continues when the provider is told to. */
const held = stream([chunk({ content: "Fi" })], "open");
export const finish = ({ res }: Asked): void => {
  res.end(event(chunk({ content: "ne." }, "stop")));
};
/** Opens such a stream. Resolves once its first text has arrived. */
export async function openStream(address: string): Promise<Reply> {
  const reply = await ask(address, { model: "held", stream: true });
  assert.equal(reply.status, 200, reply.text());
  await waitFor(() => reply.text().includes("Fi"), "the first text");
  return reply;
}

export async function assertNoPlace(asked: Promise<Reply>): Promise<void> {
  const reply = await whole(asked);
  assert.equal(reply.status, 429, reply.text());
  assert.equal(JSON.parse(reply.text()).error.code, "concurrency_limit_exceeded");
  assert.equal(reply.headers["retry-after"], "1");
}

export type Bench = Awaited<ReturnType<typeof bench>>;

function childrenOf(pid: number): number[] {
  try {
    const list = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
    return list.trim().split(/\s+/).filter(Boolean).map(Number);
  } catch {
    const table = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" });
    const rows = lines(table).map((row) => row.trim().split(/\s+/).map(Number));
    return rows.flatMap(([child, parent]) => (parent === pid ? [child!] : []));
  }
}

const program = quickest(folder());

/**
 * Starts the primary in its own process group, as a terminal does. `place`: its working directory.
 * Absent: the folder of its configuration.
 */
export async function bench(
  t: Scope,
  over: object = {},
  behaviours: Readonly<Record<string, Behaviour>> = {},
  place?: string,
) {
  const provider = await startProvider(t, { m: speak("Fine."), held, ...behaviours });
  const [dir, cwd] = [folder(), folder()];
  const file = join(cwd, "gateway.json");
  const base = { data_dir: dir, server: { workers: 2, drain_ms: 600_000 }, usage: { sync_ms: 50 } };
  const config = configFor(provider.url, ["m", "held"], merge(base, over) as object);
  /** Rewrites the file: its first content, overridden by `more`. */
  const write = (more: object) => replace(file, JSON.stringify(merge(config, more)));
  write({});
  const args = place === undefined ? [] : ["--config", file];
  const gw = launch({ ...program, cwd: place ?? cwd }, args, { detached: true });
  t.after(async () => {
    gw.child.kill("SIGKILL");
    await gw.ended;
  });
  const address = await within(gw.address, "the gateway to listen");
  const get = async (path: string) => (await whole(send(gw.admin() + path))).text();
  const diagnostics = () =>
    lines(gw.stderr()).flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as Line] : []));
  return {
    ...{ gw, address, provider, dir, file, write },
    workers: () => childrenOf(gw.child.pid!),
    /** The diagnostics with this event name. */
    told: (name: string) => diagnostics().filter((line) => line["event"] === name),
    readStatus: async () => JSON.parse(await get("/status")) as Line,
    /** The value of a sample with exactly these labels, or none. */
    async readMetric(sample: string) {
      const line = lines(await get("/metrics")).find((each) => each.startsWith(`${sample} `));
      return Number(line?.split(" ").at(-1) ?? NaN);
    },
  };
}

/** Resolves when the expected number of workers serves. */
export const complete = ({ readStatus }: Bench, count = 2): Promise<unknown> =>
  until(async () => (await readStatus())["workers"] === count, `${count} workers that serve`);

/**
 * Sends enough requests to reach all workers, however connections are distributed. Resolves with
 * their statuses.
 */
export async function everywhere(address: string, body: object): Promise<number[]> {
  const codes = new Set<number>();
  for (let round = 0; round < 5; round += 1) {
    const replies = await Promise.all(Array.from({ length: 12 }, () => status(ask(address, body))));
    for (const code of replies) codes.add(code);
  }
  return [...codes];
}

export async function assertEnds(gw: Running): Promise<void> {
  const { code, stderr } = await within(gw.ended, "the end of all who hold its output");
  assert.equal(code, 0, stderr);
}

export async function audit(t: TestContext, file: string): Promise<void> {
  const { code, stdout, stderr } = await ended(t, ["audit", "--config", file]);
  assert.equal(code, 0, stdout + stderr);
}
