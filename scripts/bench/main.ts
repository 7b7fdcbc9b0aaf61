// The cost of the gateway compared with a bare relay and other gateways, in one run on one machine:
// `npm run bench`. It uses loopback only and takes some twenty minutes with all peers. With
// taskset, the measured process has one core, the provider and the load generator share another.
// Each round measures all targets in turn, so that other work on the machine affects all alike; the
// tables show medians.
//   --rounds N     how many rounds (3)
//   --seconds N    how long whole replies are asked for in each round (4)
//   --only a,b     only targets whose names begin so
//   --tables a,b   of "compare", "growth" and "counts"

import { parseArgs } from "node:util";
import { compare } from "./compare.ts";
import { countTable } from "./counts.ts";
import { growth } from "./growth.ts";
import { peers } from "./peers/all.ts";
import { gateway, leaveCore, MACHINE, relay, startProvider } from "./targets.ts";

const text = { type: "string" } as const;
const { values } = parseArgs({
  options: { rounds: text, seconds: text, only: text, tables: text },
});
const rounds = Number(values.rounds ?? 3);
const seconds = Number(values.seconds ?? 4);
const isChosen = ({ name }: { readonly name: string }) =>
  values.only?.split(",").some((each) => name.startsWith(each)) ?? true;
const tables = values.tables?.split(",") ?? ["compare", "growth", "counts"];

const cores = leaveCore("the target and for load and provider");
const { found, absent } = peers();
const chosen = [relay, gateway(), ...found].filter(isChosen);
const upstream = await startProvider();
try {
  const date = new Date().toISOString().slice(0, 10);
  console.log(`${date}, ${MACHINE}, ${cores}, medians of ${rounds} rounds`);
  for (const { name, reason } of absent.filter(isChosen))
    console.log(`${name} is left out: ${reason}`);
  const effort = { rounds, seconds, isTrial: seconds < 2 };
  if (tables.includes("compare")) console.log(`\n${await compare(chosen, upstream, effort)}`);
  if (tables.includes("counts")) console.log(`\n${await countTable(upstream)}`);
  if (tables.includes("growth")) console.log(`\n${await growth(upstream, effort)}`);
} finally {
  await upstream.stop();
}
