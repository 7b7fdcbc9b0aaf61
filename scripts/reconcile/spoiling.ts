// How the self-test changes a copy of what was collected.

import { countsOf } from "./books.ts";
import type { Estate, House, Line, TextFile } from "./house.ts";
import { amountOf, costOf, pico } from "./money.ts";
import { type ModelName, TABLES } from "./plan.ts";

/** An amount with one pico-unit more. */
export const more = (amount: string): string => amountOf(pico(amount) + 1n);
export const lessBy1 = (amount: string): string => amountOf(pico(amount) - 1n);

/** A text with another hexadecimal digit, of which the last one may be 1 more, where `place` ends. */
export const otherDigit = (text: string, place: RegExp): string =>
  text.replace(place, (found) => found.slice(0, -1) + (found.endsWith("1") ? "2" : "1"));

/** Changes the first estate in which there is something to change. */
export const changeEstate = (
  estates: readonly Estate[],
  change: (estate: Estate) => unknown,
): boolean => estates.some((estate) => change(estate) !== undefined);

/** Changes the longest segment. */
export function changeSegment(
  estates: readonly Estate[],
  change: (text: string) => string,
): boolean {
  const files = estates.flatMap(({ segments }) => segments);
  const [file] = files.sort((a, b) => b.text.length - a.text.length);
  if (file) file.text = change(file.text);
  return file !== undefined;
}

/** Changes one line of some files, the one in the middle of those that fit. */
export function changeLine(
  files: readonly TextFile[],
  fits: (line: Line) => boolean,
  change: (text: string, line: Line) => string,
): boolean {
  const found = files.flatMap((file) =>
    file.text
      .split("\n")
      .slice(0, -1)
      .map((text) => ({ file, text, line: JSON.parse(text) as Line }))
      .filter(({ line }) => fits(line)),
  );
  const chosen = found[found.length >> 1];
  if (!chosen) return false;
  const { file, text, line } = chosen;
  file.text = file.text.replace(`${text}\n`, () => change(text, line));
  return true;
}

export const segmentsOf = ({ estates }: House) => estates.flatMap(({ segments }) => segments);
const filesOf = ({ estates }: House) => estates.flatMap(({ usageFiles }) => usageFiles);
export const isBilled = ({ type, cost }: Line): boolean => type === "settle" && cost !== "0";
/** Billed in one piece, and by an id that no other request has. */
const isPlain = (line: Line): boolean =>
  isBilled(line) &&
  line["gateway_request_id"].startsWith("own-") &&
  line["attempts"].every(({ share }: Line) => !share);
const inText = (line: Line): string => `${JSON.stringify(line)}\n`;

/** Changes one usage record, in the files or among the rows. */
export function changeRecord(
  house: House,
  change: (record: Line) => readonly Line[],
  fits = ({ cost }: Line): boolean => cost !== "0",
): boolean {
  if (!house.rows)
    return changeLine(filesOf(house), fits, (_, line) => change(line).map(inText).join(""));
  const at = house.rows.findIndex(fits);
  if (at >= 0) house.rows.splice(at, 1, ...change(house.rows[at]!));
  return at >= 0;
}

/** A settle line that was billed, and its usage record, with another cost and other prices. */
export function rebill(house: House, changed: (line: Line) => Line | undefined): boolean {
  let id = "";
  let after: Line = {};
  const done = changeLine(
    segmentsOf(house),
    (line) => isPlain(line) && changed(line) !== undefined,
    (_, line) => {
      after = changed(line)!;
      id = line["spend_id"];
      return inText(after);
    },
  );
  const { cost, prices } = after;
  const own = ({ usage_id }: Line): boolean => usage_id === id;
  const rewrite = (record: Line) => [
    { ...record, cost, details: { ...record["details"], prices: prices ?? undefined } },
  ];
  return done && changeRecord(house, rewrite, own);
}

/** Whether a request ran while prices changed, so that both tables may be right for it. */
function ranInChange({ changes }: House, { time, duration_ms }: Line): boolean {
  const end = Date.parse(time);
  return changes.some(({ from, until }) => end > from - 200 && end - duration_ms < until + 200);
}

/** The same request at the prices of the other table. Undefined: that is no other amount. */
export function otherPrices(house: House, line: Line): Line | undefined {
  if (ranInChange(house, line)) return undefined;
  const { model_served: model, usage, prices } = line;
  const counts = countsOf(usage, usage.cache_write_1h_tokens ?? 0);
  for (const table of TABLES) {
    const price = table[model as ModelName];
    const cost = costOf(counts, price);
    if (!price || cost === pico(line["cost"])) continue;
    const stated = {
      ...prices,
      input_cache_miss: Number(price.miss),
      output: Number(price.output),
    };
    return { ...line, prices: stated, cost: amountOf(cost) };
  }
  return undefined;
}

export const first = <T>(list: readonly T[], change: (item: T) => unknown): boolean => {
  if (list.length > 0) change(list[0]!);
  return list.length > 0;
};

/** Receipts that were billed. `isLate`: after the days of the run were closed. */
export const receiptOf = ({ receipts }: House, isLate = false): readonly Line[] =>
  receipts
    .filter((receipt) => receipt.isLate === isLate)
    .flatMap(({ body }) => (body["data"] ?? []) as Line[])
    .filter(({ cost }) => cost !== "0");
