// What the commands and `admin-keys` share: the terms of keys, and the keys of a configuration.
import { configuredKeys } from "../../../core/accounts/keyring.ts";
import type { Config } from "../../../core/config.ts";
import type { CreatedKey, KeyBudget } from "./created-keys.ts";

/** A text that can be shown on any terminal. */
export const isShownText = (text: string): boolean => /^\P{Cc}{1,200}$/u.test(text);
export const SHOWN_TEXT = "1 to 200 characters, none of them a control character";

/** What `keys create --budget` takes, as it is kept. Undefined: it is none. */
export function budgetIn(text: string): KeyBudget | undefined {
  const [, amount = "", period = ""] =
    /^(\d{1,9}(?:\.\d{1,12})?)\/(day|month|total)$/.exec(text) ?? [];
  return amount === "" ? undefined : { amount, period: period as KeyBudget["period"] };
}

/** A key as it is listed: everything of it but the digest. */
export type ListedKey = Omit<CreatedKey, "sha256" | "created"> & {
  /** Null: it stands in the configuration. */
  readonly created: string | null;
};

/** The keys of a configuration, as those of keys.json are listed. */
export const keysInConfig = (config: Config): ListedKey[] =>
  [...configuredKeys(config).values()].map(({ key_id, account, rpm, models, ...row }) => {
    // What extensions add to the row of a key.
    const { budget, tokens_per_minute: tokens } = row as Partial<CreatedKey>;
    return {
      ...(budget && { budget }),
      ...(typeof tokens === "number" && { tokens_per_minute: tokens }),
      key_id,
      account,
      name: null,
      rpm,
      models: models && [...models],
      created: null,
      expires: null,
      revoked: null,
    };
  });

/** Whether a text is a day of the calendar, or a time in ISO 8601, that is still to come. */
export function isDateToCome(text: string): boolean {
  const day = text.slice(0, 10);
  const isDay =
    /^\d{4}-\d\d-\d\d$/.test(day) && new Date(`${day}T00:00:00Z`).toJSON()?.startsWith(day);
  return Boolean(isDay) && Date.parse(text) > Date.now();
}
