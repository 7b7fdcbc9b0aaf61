// The schemas of a key: as it is requested (its terms), stored in keys.json, and listed.
import { UNREAD_SECRET } from "../../../config/secrets.ts";
import { configuredKeys, keyIdOf } from "../../../core/accounts/keyring.ts";
import type { Config } from "../../../core/config.ts";
import { sha256 } from "../../../core/hash.ts";
import { integer, nullable, strict } from "../../../config/fields.ts";
import {
  array,
  fail,
  literal,
  nonEmpty,
  object,
  optional,
  refine,
  string,
  withDefault,
  type Infer,
} from "../../../core/schema/checker.ts";

const time = refine(nonEmpty, (text) =>
  Number.isNaN(Date.parse(text)) ? fail("invalid_value", "expected a time in ISO 8601") : text,
);

const TIME = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/;

/** A day of the calendar, or a time in ISO 8601, that is still to come. */
const timeToCome = refine(nonEmpty, (text) => {
  const day = text.slice(0, 10);
  const isDay = TIME.test(text) && new Date(`${day}T00:00:00Z`).toJSON()?.startsWith(day);
  if (!isDay || !(Date.parse(text) > Date.now()))
    fail("invalid_value", "expected a date to come such as 2027-01-31, or a time in ISO 8601");
  return new Date(text).toISOString();
});

/** A text that can be shown on any terminal. */
const shownText = string({
  pattern: /^[^\p{Cc}\p{Cs}\p{Bidi_Control}\u2028\u2029]{1,200}$/u,
  expected:
    "1 to 200 characters without control characters, direction marks and unpaired surrogates",
});

/** A budget, as the extension `budgets` reads it. */
const budget = strict({
  /** An exact decimal number. */
  amount: string({
    pattern: /^(0|[1-9]\d{0,8})(\.\d{1,12})?$/,
    expected: "a decimal number such as 5.00",
  }),
  /** When it is renewed: each day, each month, never. */
  period: literal("day", "month", "total"),
});

const newKey = strict({
  /** The account that the key is issued for. */
  account: shownText,
  /** Null: no name. */
  name: withDefault(nullable(shownText), null),
  /** Requests per minute of this key alone; null: only its account's limit. */
  rpm: withDefault(nullable(integer(0, 1_000_000)), null),
  /** The models and aliases that the key may use; null: all. */
  models: withDefault(nullable(array(nonEmpty, { min: 1, max: 1_000 })), null),
  /** The budget of this key alone. Absent: only its account's budget. */
  budget: optional(budget),
  /** Tokens per minute of this key alone. Absent: only its account's limit. */
  tokens_per_minute: optional(integer(0, 1_000_000_000)),
  /** Null: never. */
  expires: withDefault(nullable(timeToCome), null),
});

/** The terms of a key before it is made. */
export type NewKey = Infer<typeof newKey>;

/** The terms that a request or a command states. Throws a ValidationError. */
export function checkedTerms(json: unknown, { models, aliases }: Config): NewKey {
  const terms = newKey(json);
  for (const [at, name] of (terms.models ?? []).entries())
    if (!models.has(name) && !aliases.has(name))
      fail("invalid_value", `there is no model or alias named '${name}'`, ["models", at]);
  return terms;
}

/** The keys of keys.json. Other programs may have written them, with terms of other bounds. */
export const createdKeys = array(
  object({
    /** keyIdOf(sha256). */
    key_id: nonEmpty,
    account: nonEmpty,
    name: nullable(string()),
    sha256: string({
      pattern: /^[0-9a-f]{64}$/,
      expected: "64 lower-case hexadecimal digits",
      secret: true,
    }),
    rpm: nullable(integer(0, Number.MAX_SAFE_INTEGER)),
    models: nullable(array(nonEmpty)),
    budget: optional(budget),
    tokens_per_minute: optional(integer(0, Number.MAX_SAFE_INTEGER)),
    /** When it was made, in ISO 8601. */
    created: time,
    /** Null: never. */
    expires: nullable(time),
    /** When it was revoked. Null: it was not. */
    revoked: nullable(time),
  }),
);

/** A key as keys.json has it. */
export type CreatedKey = Infer<typeof createdKeys>[number];

/** A key as it is listed: without its digest. */
export type ListedKey = Omit<CreatedKey, "sha256" | "created"> & {
  /** Null: the key is in the configuration. */
  readonly created: string | null;
};

/** A key of keys.json as it is listed. */
export const listed = ({ sha256: _, ...key }: CreatedKey): ListedKey => key;

const UNREAD_ID = keyIdOf(sha256(UNREAD_SECRET));

/** Whether a command cannot read the key's secret (environment variable or file). */
export const isUnread = ({ key_id }: Pick<ListedKey, "key_id">): boolean => key_id === UNREAD_ID;

/** The keys of a configuration, in the form of a list. All unread keys have the same id. */
export const keysInConfig = ({ keys }: Config): ListedKey[] =>
  keys
    .flatMap((key) => [...configuredKeys({ keys: [key] }).values()])
    .map((row) => {
      const { key_id, account, rpm, expires, revoked } = row;
      const models = row.models && [...row.models];
      // Extensions may have added these fields to the row of a key.
      const added = row as Partial<CreatedKey>;
      const tokens_per_minute = added.tokens_per_minute ?? undefined;
      const limits = { rpm, models, budget: added.budget, tokens_per_minute };
      return { key_id, account, name: null, ...limits, created: null, expires, revoked };
    });

/** Whether a key is in the configuration, where no command revokes it. */
export const isConfigured = (config: Config, keyId: string): boolean =>
  keysInConfig(config).some(({ key_id }) => key_id === keyId);
