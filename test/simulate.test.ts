// The simulation: a few seeds, the same seed twice, and whether it has everything that the sources
// use of Node. scripts/simulate.ts runs many seeds.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { before, describe, it } from "node:test";
import { BUGS } from "../scripts/simulate/bugs.ts";
import { simulatedModules } from "../scripts/simulate/modules.ts";
import { bundleActors, bundleGateway, type Bundles } from "../scripts/simulate/process.ts";
import { simulate } from "../scripts/simulate/run.ts";
import { isCode, sourcesIn } from "../scripts/size.ts";
import { collectGarbage } from "./support/effort.ts";
import { LONG } from "./support/long.ts";

const SEEDS = LONG ? 10 : 3;
/** HTTPS and DNS are not simulated. */
const ABSENT = [
  "node:child_process execFile",
  "node:dns lookup",
  "node:https createServer",
  "node:tls connect",
  "node:tls rootCertificates",
];

/** The names that a source uses from Node modules, except types: "node:net isIP". */
function takenBy(text: string): string[] {
  const found = text.matchAll(/^import ((?:(?!\bfrom\b)[^;])*?) from "(node:[^"]+)";/gm);
  return [...found].flatMap(([, clause, module]) => {
    if (clause!.startsWith("type ")) return [];
    const [, list = ""] = /\{([^}]*)\}/.exec(clause!) ?? [];
    const listed = list.split(",").map((name) => name.trim().replace(/ as .*/, ""));
    const names = listed.filter((name) => name && !name.startsWith("type "));
    const [, whole] = /^(\w+)/.exec(clause!) ?? [];
    // `https.Server[]` is a type.
    const called = new RegExp(`(?<![\\w.])${whole}\\.(\\w+)(?=\\(|\\.|\\[(?!\\]))`, "g");
    if (whole) names.push(...[...text.matchAll(called)].map(([, name]) => name!));
    return names.map((name) => `${module} ${name}`);
  });
}

describe("the simulation", () => {
  const first = Number(process.env["SIMULATE_SEED"] ?? 10);
  /** Usually a short run. */
  const repeated = first + 1;
  /** The events of the repeated seed. */
  const trace: string[] = [];
  /** The globals of all gateway processes. */
  const processes: WeakRef<object>[] = [];
  let bundles: Bundles;
  before(async () => {
    const gateway = await bundleGateway();
    const remembering = (globals: object): void => {
      processes.push(new WeakRef(globals));
      gateway(globals);
    };
    bundles = { gateway: remembering, actors: await bundleActors() };
  });

  for (let seed = first; seed < first + SEEDS; seed += 1)
    it(`seed ${seed}: nothing is lost, doubled, mixed up or left open`, async (t) => {
      const record = seed === repeated ? (line: string) => trace.push(line) : undefined;
      const { violations, faults, steps } = await simulate({
        seed,
        requests: 60,
        bundles,
        trace: record,
      });
      t.diagnostic(`${steps} events; ${faults.join(", ")}`);
      assert.deepEqual(violations, [], `node --import tsx scripts/simulate.ts --seed ${seed}`);
    });

  it("gives the same run for the same seed, event by event", async () => {
    const again: string[] = [];
    const record = (line: string) => again.push(line);
    await simulate({ seed: repeated, requests: 60, bundles, trace: record });
    const at = trace.findIndex((line, index) => line !== again[index]);
    assert.equal(at, -1, `event ${at}: ${trace[at]}, then ${again[at]}`);
    assert.equal(trace.length, again.length);
    assert.ok(trace.length > 500, `${trace.length} events`);
  });

  it("leaves nothing of a run in memory, so that thousands of seeds can follow each other", async () => {
    assert.ok(processes.length > SEEDS, `${processes.length} processes`);
    let kept = processes;
    // A WeakRef keeps its target until the end of the turn. A few turns may pass until Node's own
    // queues, too, have let go of the last run.
    for (let turns = 0; turns < 20 && kept.length > 0; turns += 1) {
      await setImmediate();
      collectGarbage();
      kept = kept.filter((each) => each.deref());
    }
    assert.equal(kept.length, 0);
  });

  it("has everything that the sources take from Node", () => {
    const known = simulatedModules();
    const missing = new Set<string>();
    for (const name of sourcesIn("src"))
      for (const each of takenBy(readFileSync(join("src", name), "utf8"))) {
        const [module, member] = each.split(" ") as [string, string];
        if (!(member in (known.get(module) ?? {}))) missing.add(each);
      }
    assert.deepEqual([...missing].sort(), ABSENT);
  });

  it("has a place in the sources for each bug that its self-test plants", () => {
    for (const [name, { file, find }] of Object.entries(BUGS))
      assert.equal(readFileSync(join("src", file), "utf8").split(find).length, 2, name);
  });

  it("knows every way to the time, to timers and to chance", () => {
    for (const name of sourcesIn("src")) {
      const text = readFileSync(join("src", name), "utf8").split("\n").filter(isCode).join("\n");
      assert.doesNotMatch(text, /\bglobalThis\b|\bcrypto\.(getRandom|random)|\bhrtime\b/, name);
    }
  });
});
