// What one request creates: promises, timers and memory, counted in a gateway with everything
// switched on. A change that creates more fails here on any machine.

import assert from "node:assert/strict";
import { join } from "node:path";
import { it } from "node:test";
import { build } from "esbuild";
import { PROGRAM } from "../scripts/build.ts";
import { countIn, type Counts } from "../scripts/bench/counts.ts";
import { AUTHORIZED, serving, startProvider } from "../scripts/bench/targets.ts";
import { folder } from "./support/folder.ts";

/**
 * The most that a gateway may create. `kilobytes`: on the heap. `kept`: those that survive a
 * collection of young memory. If a request is retained, each collection copies what it should
 * discard.
 */
const WHOLE = { promises: 24, timers: 5, kilobytes: 78, kept: 6 };
const EVENT = { promises: 0, timers: 0, kilobytes: 7, kept: 3 };

const rounded = ({ promises, timers, bytes, kept }: Counts) => ({
  promises: Math.round(promises),
  timers: Math.round(timers),
  kilobytes: Math.round(bytes / 1024),
  kept: Math.round(kept / 1024),
});

const excessOf = (what: string, figures: typeof WHOLE, allowed: typeof WHOLE): string[] =>
  (["promises", "timers", "kilobytes", "kept"] as const)
    .filter((name) => figures[name] > allowed[name])
    .map((name) => `${what}: ${figures[name]} ${name}`);

/**
 * A busy machine splits sent data into more pieces, each of which costs some memory. A gateway that
 * itself creates more does so in every try.
 */
const TRIES = 3;

/** Each Node version has its own streams and compiler. */
const skip = process.version.startsWith("v20.") ? false : "counted on Node 20";

it("the hot path creates no more promises, timers and memory than it is allowed", {
  skip,
}, async (t) => {
  const provider = await startProvider();
  t.after(provider.stop);
  const program = join(folder(), "chat-gateway.mjs");
  await build({ ...PROGRAM, entryPoints: ["src/main.ts"], outfile: program });
  const command = serving(provider.url, {}, program);
  let excess: readonly string[] = [];
  for (let tries = 1; tries <= TRIES; tries += 1) {
    const counted = await countIn(command, { ...provider, headers: AUTHORIZED });
    const [whole, event] = [rounded(counted.whole), rounded(counted.event)];
    t.diagnostic(JSON.stringify({ whole, event }));
    excess = [
      ...excessOf("a whole reply", whole, WHOLE),
      ...excessOf("an event of a stream", event, EVENT),
    ];
    if (excess.length === 0) break;
  }
  assert.deepEqual(excess, []);
});
