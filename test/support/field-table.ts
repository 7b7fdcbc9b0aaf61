// The tables of the manual's chapter "fields": what the gateway says becomes of each field.
import assert from "node:assert/strict";
import { manual } from "../../src/extensions/operations/manual/index.ts";

/** What becomes of a field. */
export type Fate = "passed" | "translated" | "ignored" | "refused";

const FATE = /^(passed|translated|ignored|refused)(?: to ((?:`[\w.-]+` ?)+))?$/;
const namesIn = (text: string): string[] => [...text.matchAll(/`([^`]+)`/g)].map(([, n]) => n!);

/**
 * By the names of the fields; a row may have several. `vendors`: those that get the field, where
 * not all do that know the format.
 */
export function fieldTable() {
  const rows = new Map<string, { fate: Fate; vendors: readonly string[] | undefined }>();
  const page = manual.page("fields") ?? assert.fail("the manual has no chapter of fields");
  for (const line of page.split("\n").filter((each) => each.startsWith("| `"))) {
    const [, names = "", cell = ""] = line.split(/(?<!\\)\|/).map((each) => each.trim());
    const [, fate, vendors] = FATE.exec(cell) ?? assert.fail(`no fate of a field: ${cell}`);
    for (const name of namesIn(names)) {
      assert.ok(!rows.has(name), `two rows for ${name}`);
      rows.set(name, { fate: fate as Fate, vendors: vendors ? namesIn(vendors) : undefined });
    }
  }
  return rows;
}
