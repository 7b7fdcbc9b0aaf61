// Shows what a change does to what others see: `node --import tsx scripts/compare.ts OLD.mjs
// NEW.mjs [--cases 1000] [--seed 1] [--show 20]` sends the same exchanges to two built files, each
// with scripted providers behind it, and prints every answer, request to a provider, line of the
// logs and books, and command's output that is not the same to the byte, ids and times apart. Exit
// 1 if there is one. A redesign has none; `npm run build` in a checkout of an earlier commit makes
// OLD.mjs.
import { parseArgs } from "node:util";
import { transcriptOf } from "./compare/transcript.ts";

const MAX_CHARS = 1_500;

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    cases: { type: "string", default: "1000" },
    seed: { type: "string", default: "1" },
    show: { type: "string", default: "20" },
  },
});
const [before, after] = positionals;
if (before === undefined || after === undefined)
  throw new Error("expected two built files: OLD.mjs NEW.mjs");

/** The lines that only one of two texts has; of one long line, where it begins to differ. */
function difference(was: string, is: string): string {
  const [old, fresh] = [was.split("\n"), is.split("\n")];
  const gone = old.filter((line) => !fresh.includes(line));
  const come = fresh.filter((line) => !old.includes(line));
  const shown = [...gone.map((line) => `- ${line}`), ...come.map((line) => `+ ${line}`)].join("\n");
  return shown.slice(0, MAX_CHARS);
}

const [cases, seed] = [Number(values.cases), Number(values.seed)];
const was = await transcriptOf(before, cases, seed);
const is = await transcriptOf(after, cases, seed);
const names = new Set([...was.keys(), ...is.keys()]);
const different = [...names].filter((name) => was.get(name) !== is.get(name));
for (const name of different.slice(0, Number(values.show)))
  console.log(`${name}\n${difference(was.get(name) ?? "", is.get(name) ?? "")}\n`);
console.log(`${names.size} transcripts, seed ${seed}: ${different.length} differ`);
process.exitCode = different.length > 0 ? 1 : 0;
