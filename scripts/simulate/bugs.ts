// The self-test, which proves that the simulation can fail: it plants bugs in the sources, one at a
// time, and runs seeds until one finds a violation. The same seed must find none in the sources as
// they are. Each bug is a change that could be made by mistake.

import { bundleActors, bundleGateway, type Bundles, type Change } from "./process.ts";
import { simulate } from "./run.ts";

/** A change of the sources that the simulation must find. */
interface Bug extends Change {
  /** The faults that may happen. Absent: none, because the bug shows without any. */
  readonly faults?: readonly string[];
}

const LEDGER = "extensions/money/ledger";
const USAGE = "extensions/money/usage";
const STORE = "extensions/money/file-store";
const SHARED = "extensions/money/shared-budgets";
const CLIENT = "extensions/providers/pooled-client";

/** All planted bugs, by what they do. */
export const BUGS: Readonly<Record<string, Bug>> = {
  "a request is settled twice": {
    file: `${LEDGER}/segment.ts`,
    find: "        add(line);\n      }),",
    replace: "        add(line);\n        add(line);\n      }),",
  },
  "a request is settled only if its client has everything": {
    file: "core/chat/handler.ts",
    find: "await settlement.settle(failure.progress, outcome);",
    replace: "if (clientError) await settlement.settle(failure.progress, outcome);",
  },
  "a provider is called before the open line is written": {
    file: "core/chat/handler.ts",
    find: "    await settlement.opened;\n",
    faults: ["kill", "full-disk"],
  },
  "lines that a full disk refuses are dropped": {
    file: `${LEDGER}/segment.ts`,
    faults: ["full-disk"],
    find: "    append(lines);\n    releaseWaiting();",
    replace: "    try {\n      append(lines);\n    } finally {\n      releaseWaiting();\n    }",
  },
  "the status of an error may change after it was recorded": {
    file: "core/chat/handler.ts",
    find: "if (!exchange.res.headersSent) delivery.release();",
    faults: ["freeze", "full-disk"],
  },
  "a hold is never given back": {
    file: "core/chat/settlement.ts",
    find: "return hold ? written.then(() => hold.settle(settlement)) : written;",
    replace: "return written;",
  },
  "a budget forgets what is held": {
    file: "extensions/money/budgets/accountant.ts",
    find: "spent + held + room <= amount",
    replace: "spent + room <= amount",
  },
  "a limit admits one request too many": {
    file: "core/accounts/limiter.ts",
    find: "window.count() < rpm",
    replace: "window.count() <= rpm",
  },
  "a window is a quarter of a minute": {
    file: "core/accounts/limiter.ts",
    find: "times[first]! + WINDOW_MS <= time",
    replace: "times[first]! + WINDOW_MS / 4 <= time",
    faults: ["freeze", "stalls"],
  },
  "tokens from the cache cost as much as others": {
    file: "core/ledger/price.ts",
    find: "picoOf(usage.prompt_cache_hit_tokens, hit) +",
    replace: "picoOf(usage.prompt_cache_hit_tokens, miss) +",
  },
  "the figures behind the finish are not read": {
    file: "core/ledger/meter.ts",
    find: 'if (part.type === "usage") this.#report(part.usage);',
    replace: 'if (part.type === "usage") this.#finish ?? this.#report(part.usage);',
  },
  "early figures count although text came after them": {
    file: "core/ledger/meter.ts",
    find: "if (figures?.bytesBefore !== this.#bytes) return undefined;",
    replace: "if (!figures) return undefined;",
  },
  "a stream that breaks off counts as finished": {
    file: "core/routing/attempt.ts",
    find: 'if (!decoding.finished) throw upstreamError("the stream ended without a finish_reason");',
  },
  "each read is decoded by itself": {
    file: "core/http/event-reader.ts",
    find: "push: (bytes: Uint8Array): string[] => read(decoder.write(bytes)),",
    replace: 'push: (bytes: Uint8Array): string[] => read(Buffer.from(bytes).toString("utf8")),',
  },
  "bytes of a reply are kept in memory that the next read overwrites": {
    file: `${CLIENT}/connection.ts`,
    find: "exchange?.push(Buffer.from(bytes))",
    replace: "exchange?.push(bytes)",
  },
  "a connection with an unfinished reply is used again": {
    file: `${CLIENT}/connection.ts`,
    find: "next.detach = stop;",
    replace: "next.detach = () => complete(false);",
    faults: ["resets"],
  },
  "a client's request id is replaced": {
    file: "core/http/connection.ts",
    find: "requestId: requestId(req.rawHeaders),",
    replace: "requestId: requestId([]),",
  },
  "what a client left costs nothing": {
    file: "core/chat/settlement.ts",
    find: "cost: formatMoney(progress.cost),",
    replace: 'cost: outcome.status === "cancelled" ? "0" : formatMoney(progress.cost),',
  },
  "the cursor moves before the records are appended": {
    file: `${STORE}/day-files.ts`,
    find: "if (!existsSync(file)) await writeCursor(file, cursor);",
    replace: "await writeCursor(file, { ...cursor, segments });",
    faults: ["kill-at-disk"],
  },
  "what a dead process has left open stays open": {
    file: `${USAGE}/sync.ts`,
    find: "if (unsettled.length === 0 && statSync(path).size === end) return;",
    replace: "if (statSync(path).size >= end) return;",
    faults: ["kill"],
  },
  "records reach the disk before the log does": {
    file: `${USAGE}/sync.ts`,
    find: "  await syncToDisk(path);\n",
    faults: ["power"],
  },
  "a torn line stays when the disk is full": {
    file: `${LEDGER}/segment.ts`,
    find: "ftruncateSync(fd, size);",
    faults: ["full-disk"],
  },
  "records are appended behind a torn one": {
    file: `${STORE}/day-files.ts`,
    find: "if (size > 0) await truncate(path, size);",
    faults: ["kill-at-disk"],
  },
  "a request is booked on the day on which it began": {
    file: `${USAGE}/sync.ts`,
    find: "coverage.bookedDay(name, log.line, settle.time)",
    replace:
      "coverage.bookedDay(name, log.line, new Date(Date.parse(settle.time) - 3_000).toISOString())",
  },
  "a configuration that cannot be read ends the gateway": {
    file: "reload.ts",
    find: 'event: "reload_failed"',
    replace: 'event: process.exit(1) as unknown as "reload_failed"',
    faults: ["bad-config"],
  },
  "the deadline of a request is never stopped": {
    file: "core/http/connection.ts",
    find: "exchange.deadline?.cancel();",
  },
  "a worker that dies keeps what its requests hold": {
    file: "extensions/scale/cluster/calls.ts",
    find: "      handlers.onExit(id);\n",
    faults: ["workers", "kill-worker"],
  },
  "a stopped gateway cuts what is in flight": {
    file: "core/app.ts",
    find: "await server.close(drainMs, shuttingDown());",
    replace: "await server.close(0, shuttingDown());",
    faults: ["stop"],
  },
  "a Responses client is told other figures than are billed": {
    file: "extensions/apis/responses-api/writer.ts",
    find: "cached_tokens: usage.prompt_cache_hit_tokens,",
    replace: "cached_tokens: usage.prompt_cache_miss_tokens,",
  },
  "nobody notices that a key was revoked": {
    file: "extensions/operations/keys/created-keys.ts",
    find: "watchFile(file, reload, {",
    replace: "watchFile(file, () => undefined, {",
    faults: ["keys"],
  },
  "a gateway does not tell the others what it holds": {
    file: `${SHARED}/protocol.ts`,
    find: "held: partsOf(held),",
    replace: "held: partsOf(0n),",
    faults: ["redis"],
  },
  "a gateway forgets what Redis let it hold": {
    file: `${SHARED}/task-queue.ts`,
    find: "if (offer) counters.hold(tasks[index]!.spender, offer.cost);",
    replace: ";",
    faults: ["redis"],
  },
  "a gateway hears of the others only with its own requests": {
    file: `${SHARED}/shared-store.ts`,
    find: "for (const budget of new Set([...held, ...inTurn])) rows.writeOne(budget);",
    faults: ["redis"],
  },
  "a window in Redis is a quarter of a minute": {
    file: "extensions/scale/redis/limiter.ts",
    find: "const values = [WINDOW_MS,",
    replace: "const values = [WINDOW_MS / 4,",
    faults: ["redis", "freeze"],
  },
  "a record in PostgreSQL names another line of the log": {
    file: "extensions/money/postgres/queries.ts",
    find: "log_line: log?.line,",
    replace: "log_line: log && log.line + 1,",
    faults: ["postgres"],
  },
};

/** The number of seeds within which each bug must be found. */
const SEEDS = 40;
const REQUESTS = 80;

/** Whether a seed finds a violation with the bug, and none without it. */
async function isFound(name: string, bug: Bug, sound: Bundles): Promise<boolean> {
  const planted = { ...sound, gateway: await bundleGateway([bug]) };
  for (let seed = 1; seed <= SEEDS; seed += 1) {
    const options = { seed, requests: REQUESTS, only: bug.faults ?? [] };
    const { violations } = await simulate({ ...options, bundles: planted });
    if (violations.length === 0) continue;
    const without = await simulate({ ...options, bundles: sound });
    const isSound = without.violations.length === 0;
    const state = isSound ? "found" : "SOMETHING ELSE IS WRONG";
    const shown = [violations, without.violations].map((each) => (each[0] ?? "").slice(0, 150));
    console.log(`${state} with seed ${seed}: ${name}: ${shown[isSound ? 0 : 1]}`);
    return isSound;
  }
  console.log(`NOT FOUND within ${SEEDS} seeds: ${name}`);
  return false;
}

/**
 * Returns how many of the bugs were not found. `only`: only bugs with this text in their names.
 * `which`: only a part of those; 2/3 is the second third.
 */
export async function selfTest(only = "", which = "1/1"): Promise<number> {
  const [part = 0, parts = 0] = which.split("/").map(Number);
  if (!(part >= 1 && part <= parts)) throw new Error("--part must be such as 2/3");
  const sound = { gateway: await bundleGateway(), actors: await bundleActors() };
  const named = Object.entries(BUGS).filter(([name]) => name.includes(only));
  const bugs = named.filter((_bug, index) => index % parts === part - 1);
  let missed = 0;
  for (const [name, bug] of bugs) if (!(await isFound(name, bug, sound))) missed += 1;
  console.log(`${bugs.length} bugs were planted, ${missed} of them not found`);
  return missed;
}
