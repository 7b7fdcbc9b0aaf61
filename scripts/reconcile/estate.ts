// The files that a gateway leaves in its data_dir.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Estate, TextFile } from "./house.ts";

/** Nothing is known of it yet. */
export const emptyEstate = (): Estate => ({
  segments: [],
  days: { name: "days.jsonl", text: "" },
  usageFiles: [],
  sums: [],
  ids: [],
  cursor: {},
  audit: {},
  verify: {},
  heads: [],
  publicKey: "",
  live: [],
});

/** The files of a folder whose names end so, in the order of their names. */
const filesIn = (folder: string, ending: string, encoding: BufferEncoding = "utf8"): TextFile[] =>
  (existsSync(folder) ? readdirSync(folder) : [])
    .filter((name) => name.endsWith(ending))
    .sort()
    .map((name) => ({ name, text: readFileSync(join(folder, name), encoding) }));

const textIn = (path: string, absent: string): string =>
  existsSync(path) ? readFileSync(path, "utf8") : absent;

/** Adds the files to an estate, and returns it. */
export function readFiles(estate: Estate, dataDir: string): Estate {
  const usage = join(dataDir, "usage");
  estate.segments.push(...filesIn(join(dataDir, "spend"), ".jsonl"));
  estate.days.text = textIn(join(dataDir, "days.jsonl"), "");
  estate.usageFiles.push(...filesIn(usage, ".jsonl"));
  estate.sums.push(...filesIn(usage, ".sums"));
  estate.ids.push(...filesIn(usage, ".ids", "hex"));
  estate.cursor = JSON.parse(textIn(join(usage, "cursor.json"), "{}"));
  return estate;
}
