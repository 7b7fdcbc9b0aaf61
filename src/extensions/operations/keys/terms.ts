// How keys are made and revoked, for the commands and for `admin-keys`.
import { join } from "node:path";
import type { CreatedKey, KeyBudget } from "./created-keys.ts";
import type { LockOptions } from "../../scale/data-files/index.ts";

/** The lock that keeps other processes from writing keys.json. */
export const lockOf = (dataDir: string): LockOptions => ({
  dir: join(dataDir, "spend"),
  name: "keys",
});

/** A text that can be shown on any terminal. */
export const isShownText = (text: string): boolean => /^\P{Cc}{1,200}$/u.test(text);
export const SHOWN_TEXT = "1 to 200 characters, none of them a control character";

/** What `keys create --budget` takes, as it is kept. Undefined: it is none. */
export function budgetIn(text: string): KeyBudget | undefined {
  const [, amount = "", period = ""] =
    /^(\d{1,9}(?:\.\d{1,12})?)\/(day|month|total)$/.exec(text) ?? [];
  return amount === "" ? undefined : { amount, period: period as KeyBudget["period"] };
}

/** The budget of a key that has limits of its own. */
export type SpendTerms = Pick<CreatedKey, "budget" | "tokens_per_minute">;

/** The same of a key in the configuration, whose row has what extensions add to it. */
export const spendTerms = (row: object): SpendTerms => {
  const { budget, tokens_per_minute: tokens } = row as {
    budget?: KeyBudget;
    tokens_per_minute?: number | null;
  };
  return {
    ...(budget && { budget }),
    ...(typeof tokens === "number" && { tokens_per_minute: tokens }),
  };
};

/** Whether a text is a day of the calendar, or a time in ISO 8601, that is still to come. */
export function isDateToCome(text: string): boolean {
  const day = text.slice(0, 10);
  const isDay =
    /^\d{4}-\d\d-\d\d$/.test(day) && new Date(`${day}T00:00:00Z`).toJSON()?.startsWith(day);
  return Boolean(isDay) && Date.parse(text) > Date.now();
}
