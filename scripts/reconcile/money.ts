// Money and tokens, computed independently of the gateway's code: every amount is a BigInt of
// pico-units (1e-12 of the currency), every price a BigInt of millionths per million tokens.

/**
 * Token counts of a reply. `prompt` includes `hit` (read from the cache) and `write` (written to
 * it); `write` includes `write1h` (kept there for an hour); `completion` includes `reasoning`.
 */
export const NO_COUNTS = { prompt: 0, hit: 0, write: 0, write1h: 0, completion: 0, reasoning: 0 };
/** As NO_COUNTS. */
export type Counts = Readonly<typeof NO_COUNTS>;

/** Adds counts by name. */
export function addUp(all: readonly Counts[]): Counts {
  const total = { ...NO_COUNTS };
  for (const counts of all)
    for (const name of Object.keys(total) as (keyof Counts)[]) total[name] += counts[name];
  return total;
}

/** Prices per million tokens, as in gateway.json. Absent: a price falls back as books.md says. */
export interface Price {
  readonly input_cache_hit?: number;
  readonly input_cache_miss: number;
  readonly input_cache_write?: number;
  readonly input_cache_write_1h?: number;
  readonly output: number;
}

/** A decimal number as a whole number of units of 10^-`digits`. */
function scaled(text: string, digits: number): bigint {
  if (!/^(0|[1-9]\d*)(\.\d+)?$/.test(text)) throw new Error(`not an amount: ${text}`);
  const [units = "", decimals = ""] = text.split(".");
  if (decimals.length > digits) throw new Error(`more than ${digits} decimals: ${text}`);
  return BigInt(units + decimals.padEnd(digits, "0"));
}

/** Parses an amount of the books. */
export const pico = (amount: string): bigint => scaled(amount, 12);

/** Formats an amount as the books do. */
export function amountOf(pico: bigint): string {
  const digits = String(pico).padStart(13, "0");
  return `${digits.slice(0, -12)}.${digits.slice(-12)}`.replace(/\.?0+$/, "");
}

/** What tokens cost. A token times a millionth of its price is a pico-unit. */
export function costOf(counts: Counts, price: Price | null): bigint {
  if (!price) return 0n;
  const { input_cache_miss: miss, input_cache_write: write = miss, output } = price;
  const { input_cache_hit: hit = miss, input_cache_write_1h: write1h = write } = price;
  const of = (tokens: number, each: number) => BigInt(tokens) * scaled(String(each), 6);
  return (
    of(counts.hit, hit) +
    of(counts.prompt - counts.hit - counts.write, miss) +
    of(counts.write - counts.write1h, write) +
    of(counts.write1h, write1h) +
    of(counts.completion, output)
  );
}

/** Adds amounts. */
export const sum = (amounts: readonly bigint[]): bigint =>
  amounts.reduce((total, amount) => total + amount, 0n);
