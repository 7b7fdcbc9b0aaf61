// The files that a gateway leaves in its data_dir.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Estate, TextFile } from "./house.ts";

/** Nothing is known of it yet. */
export const emptyEstate = (): Estate => ({
  segments: [],
  days: { name: "days.jsonl", text: "" },
  usageFiles: [],
  audit: {},
  verify: {},
  heads: [],
  publicKey: "",
  live: [],
});

/** The files of lines in a folder, in the order of their names. */
const filesIn = (folder: string): TextFile[] =>
  (existsSync(folder) ? readdirSync(folder) : [])
    .filter((name) => name.endsWith(".jsonl"))
    .sort()
    .map((name) => ({ name, text: readFileSync(join(folder, name), "utf8") }));

/** Adds the files to an estate. */
export function readFiles(estate: Estate, dataDir: string): void {
  estate.segments.push(...filesIn(join(dataDir, "spend")));
  estate.usageFiles.push(...filesIn(join(dataDir, "usage")));
  const days = join(dataDir, "days.jsonl");
  if (existsSync(days)) estate.days.text = readFileSync(days, "utf8");
}
