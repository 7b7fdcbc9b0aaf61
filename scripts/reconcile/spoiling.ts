// How the self-test changes a copy of what was collected. What is not there stays as it is.

import { countsOf } from "./books.ts";
import type { House, Line, ReceiptAnswer, TextFile } from "./house.ts";
import { amountOf, costOf, pico } from "./money.ts";
import { type ModelName, TABLES } from "./plan.ts";

/** Adds one pico-unit to an amount of an object, if there is one. */
export function more<T extends Line | undefined>(object: T, name = "cost"): T {
  if (object) object[name] = amountOf(pico(object[name]) + 1n);
  return object;
}

/** A text with another hexadecimal digit, of which the last one may be 1 more, where `place` ends. */
export const otherDigit = (text: string, place: RegExp): string =>
  text.replace(place, (found) => found.slice(0, -1) + (found.endsWith("1") ? "2" : "1"));

export function withoutLastLine(file: TextFile): void {
  file.text = file.text.replace(/[^\n]*\n$/, "");
}

export const longestOf = (house: House): TextFile =>
  segmentsOf(house).sort((a, b) => b.text.length - a.text.length)[0]!;

/** Changes one line of some files, the one in the middle of those that fit. */
export function changeLine(
  files: readonly TextFile[],
  fits: (line: Line) => boolean,
  change: (text: string, line: Line) => string,
): void {
  const found = files.flatMap((file) =>
    file.text
      .split("\n")
      .slice(0, -1)
      .map((text) => ({ file, text, line: JSON.parse(text) as Line }))
      .filter(({ line }) => fits(line)),
  );
  const chosen = found[found.length >> 1];
  if (!chosen) return;
  const { file, text, line } = chosen;
  file.text = file.text.replace(`${text}\n`, () => change(`${text}\n`, line));
}

export const segmentsOf = ({ estates }: House) => estates.flatMap(({ segments }) => segments);
export const isBilled = ({ type, cost }: Line): boolean => type === "settle" && cost !== "0";
/** Billed in one piece, and by an id that no other request has. */
const isPlain = (line: Line): boolean =>
  isBilled(line) &&
  line["gateway_request_id"].startsWith("own-") &&
  line["attempts"].every(({ share }: Line) => !share);
const inText = (line: Line): string => `${JSON.stringify(line)}\n`;

/** Changes one usage record, in the files or among the rows. */
export function changeRecord(
  { estates, rows }: House,
  change: (record: Line) => readonly Line[],
  fits = ({ cost }: Line): boolean => cost !== "0",
): void {
  const files = estates.flatMap(({ usageFiles }) => usageFiles);
  changeLine(files, fits, (_, line) => change(line).map(inText).join(""));
  const at = rows?.findIndex(fits) ?? -1;
  if (at >= 0) rows!.splice(at, 1, ...change(rows![at]!));
}

/** A settle line that was billed, and its usage record, with another cost and other prices. */
export function rebill(house: House, changed: (line: Line) => Line | undefined): void {
  const fits = (line: Line): boolean => isPlain(line) && changed(line) !== undefined;
  changeLine(segmentsOf(house), fits, (_, line) => {
    const after = changed(line)!;
    const { spend_id, cost, prices } = after;
    changeRecord(
      house,
      ({ details, ...record }) => [
        { ...record, cost, details: { ...details, prices: prices ?? undefined } },
      ],
      ({ usage_id }) => usage_id === spend_id,
    );
    return inText(after);
  });
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

/** The first receipt that was billed, and is of this kind. */
export const receiptOf = (
  { receipts }: House,
  isOfKind: (receipt: Line, answer: ReceiptAnswer) => boolean = () => true,
): Line | undefined =>
  receipts
    .flatMap((answer) => {
      const all: Line[] = answer.body["data"] ?? [];
      return all.filter((receipt) => receipt["cost"] !== "0" && isOfKind(receipt, answer));
    })
    .at(0);
