// Amounts of money as the books write them, read back exactly.
import { DECIMALS } from "../../../core/ledger/price.ts";

/** The format that formatMoney writes. Zeros at the end are allowed too. */
export const AMOUNT = /^(0|[1-9]\d*)(?:\.(\d{1,12}))?$/;

/**
 * The reverse of formatMoney, in pico-units. Throws a SyntaxError for a text that formatMoney
 * cannot have written.
 */
export function parseMoney(text: string): bigint {
  const [, units = "", decimals = ""] = AMOUNT.exec(text) ?? [];
  if (units === "")
    throw new SyntaxError(`not an amount of money: ${JSON.stringify(text.slice(0, 40))}`);
  return BigInt(units + decimals.padEnd(DECIMALS, "0"));
}
