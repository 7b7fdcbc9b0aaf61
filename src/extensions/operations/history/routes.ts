// The admin listener's paths of the history: GET /history has figures, GET /requests has requests.
import type { Routes } from "../../../core/http/exchange.ts";
import {
  nonEmpty,
  object,
  optional,
  refine,
  string,
  withDefault,
} from "../../../core/schema/checker.ts";
import { answering } from "../../scale/installation/index.ts";
import type { History } from "./history.ts";
import { LEVELS } from "./timeline.ts";

const rangeQuery = object(
  {
    range: withDefault(
      string({
        pattern: new RegExp(`^(${LEVELS.map(({ range }) => range).join("|")})$`),
        expected: "15m, 1h, 6h or 24h",
      }),
      "15m",
    ),
  },
  { strict: true },
);

const count = (fallback: string) =>
  refine(withDefault(string({ pattern: /^\d{1,6}$/, expected: "a number" }), fallback), (digits) =>
    Number(digits),
  );

const requestsQuery = object(
  {
    account: optional(string()),
    key: optional(nonEmpty),
    model: optional(nonEmpty),
    status: optional(
      string({ pattern: /^([1-5]\d\d|[2-5]xx|running)$/, expected: "429, 4xx or running" }),
    ),
    code: optional(nonEmpty),
    id: optional(nonEmpty),
    slower: optional(
      refine(string({ pattern: /^\d{1,9}$/, expected: "milliseconds" }), (digits) =>
        Number(digits),
      ),
    ),
    skip: count("0"),
    limit: refine(
      withDefault(
        string({ pattern: /^([1-9]\d?|100)$/, expected: "a number from 1 to 100" }),
        "50",
      ),
      (digits) => Number(digits),
    ),
  },
  { strict: true },
);

/**
 * The paths, to be added to the admin listener's. `limitOf`: the requests per minute of an account;
 * null: unlimited.
 */
export function historyRoutes(
  history: History,
  limitOf: (account: string) => number | null,
): Routes {
  /** Pages ask for the same again and again: the text is made once for each change. */
  const texts = new Map<string, string>();
  let version = -1;

  function withLimits(range: string): object {
    const figures = history.range(range)!;
    const refusals = figures.refusals.map((episode) => ({
      ...episode,
      account_rpm: episode.account === null ? null : limitOf(episode.account),
    }));
    return { ...figures, refusals };
  }

  function rangeText(range: string): string {
    if (history.version() !== version) texts.clear();
    version = history.version();
    const text = texts.get(range) ?? JSON.stringify(withLimits(range));
    texts.set(range, text);
    return text;
  }

  return {
    "/history": answering(rangeQuery, ({ range }) => rangeText(range)),
    "/requests": answering(requestsQuery, ({ skip, limit, ...filter }) =>
      history.find(filter, { skip, limit }),
    ),
  };
}
