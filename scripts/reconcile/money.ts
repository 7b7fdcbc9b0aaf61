// Money and tokens, worked out without the gateway's arithmetic: every amount is a BigInt of
// pico-units (1e-12 of the currency), every price a BigInt of millionths per million tokens.

/** Token counts of one reply, as the provider means them. */
export interface Counts {
  /** All tokens of the prompt. */
  readonly prompt: number;
  /** The part of the prompt that was in the cache. */
  readonly hit: number;
  /** The part of the rest that was written to the cache. */
  readonly write: number;
  /** The part of `write` that is kept for an hour. */
  readonly write1h: number;
  /** Reasoning included. */
  readonly completion: number;
  readonly reasoning: number;
}

export const NO_COUNTS: Counts = {
  prompt: 0,
  hit: 0,
  write: 0,
  write1h: 0,
  completion: 0,
  reasoning: 0,
};

/** The sums of some counts. */
export const addUp = (all: readonly Counts[]): Counts =>
  all.reduce(
    (total, { prompt, hit, write, write1h, completion, reasoning }) => ({
      prompt: total.prompt + prompt,
      hit: total.hit + hit,
      write: total.write + write,
      write1h: total.write1h + write1h,
      completion: total.completion + completion,
      reasoning: total.reasoning + reasoning,
    }),
    NO_COUNTS,
  );

/** Decimal strings per million tokens. Absent members cost what books.md says. */
export interface Price {
  readonly hit?: string;
  readonly miss: string;
  readonly write?: string;
  readonly write1h?: string;
  readonly output: string;
  /** The price of prompts of more than so many tokens. */
  readonly long?: { readonly above: number; readonly price: Price };
}

/** The price of a prompt of so many tokens. */
export const priceFor = (price: Price | undefined, prompt: number): Price | undefined =>
  price?.long && prompt > price.long.above ? price.long.price : price;

/** A decimal string as a whole number of units of 10^-`digits`. */
function scaled(text: string, digits: number): bigint {
  if (!/^(0|[1-9]\d*)(\.\d+)?$/.test(text)) throw new Error(`not an amount: ${text}`);
  const [units = "", decimals = ""] = text.split(".");
  if (decimals.length > digits) throw new Error(`more than ${digits} decimals: ${text}`);
  return BigInt(units + decimals.padEnd(digits, "0"));
}

/** An amount of the books in pico-units. */
export const pico = (amount: string): bigint => scaled(amount, 12);

/** Pico-units as the books write them. */
export function amountOf(pico: bigint): string {
  const digits = String(pico).padStart(13, "0");
  return `${digits.slice(0, -12)}.${digits.slice(-12)}`.replace(/\.?0+$/, "");
}

/** What tokens cost, in pico-units: tokens times the millionths of their price. */
export function costOf(counts: Counts, price: Price | undefined): bigint {
  if (!price) return 0n;
  const miss = scaled(price.miss, 6);
  const hit = price.hit === undefined ? miss : scaled(price.hit, 6);
  const write = price.write === undefined ? miss : scaled(price.write, 6);
  const write1h = price.write1h === undefined ? write : scaled(price.write1h, 6);
  return (
    BigInt(counts.hit) * hit +
    BigInt(counts.prompt - counts.hit - counts.write) * miss +
    BigInt(counts.write - counts.write1h) * write +
    BigInt(counts.write1h) * write1h +
    BigInt(counts.completion) * scaled(price.output, 6)
  );
}

export const sum = (amounts: readonly bigint[]): bigint =>
  amounts.reduce((total, amount) => total + amount, 0n);

/** The member `price` of a model in gateway.json. */
export const priceSetting = (price: Price): object => ({
  ...(price.hit !== undefined && { input_cache_hit: Number(price.hit) }),
  input_cache_miss: Number(price.miss),
  ...(price.write !== undefined && { input_cache_write: Number(price.write) }),
  ...(price.write1h !== undefined && { input_cache_write_1h: Number(price.write1h) }),
  output: Number(price.output),
});
