// How the checks are stated: each has a heading, and is either data or code.

import type { Exchange, Headers } from "../client.ts";
import * as expect from "../expect.ts";
import { find, first, isObject, Shape, wordsOf, type Fields, type Json } from "../shapes.ts";
import { every, NEEDS, Skipped } from "../suite.ts";
import type { Check, Kind, Level, Need } from "../suite.ts";
import { question, type Ask, type Over, type Tester } from "../tester.ts";

/**
 * Entries by the headings of their checks: `id: rule`, or `id [words]: rule`. The id lacks the
 * level. The words say what the check needs, and when it runs (`alone`, `last`).
 */
export type Stated<T> = Readonly<Record<string, T>>;

/** Parses the heading of a check. */
export function headingOf(text: string) {
  const [, id, words, title] = /^([^ :]+)(?: \[(.*?)\])?: (.*)$/s.exec(text) ?? [];
  if (id === undefined || title === undefined) throw new Error(`no heading of a check: ${text}`);
  return { id, words: words?.split(" ") ?? [], title };
}

const isNeed = (word: string): word is Need => NEEDS.some((need) => need === word);

/** A check with this heading. */
export function checkOf(level: Level, source: string, heading: string, run: Check["run"]): Check {
  const { id, words, title } = headingOf(heading);
  const when = (["alone", "last"] as const).find((word) => words.includes(word));
  const needs = [level, ...words].filter(isNeed);
  return { id: `${level}.${id}`, source, title, needs, when, run };
}

/** A request, the expected fields of its exchange, and what differs from the usual request. */
export type Case = readonly [fields: Ask, expected: Fields, over?: Over];

const refusal = new Shape("a refusal, 400 to 499", (status) => /^4\d\d$/.test(String(status)));

/** All checks. The files of checks add theirs when they are imported. */
export const CHECKS: Check[] = [];
/** The rules about every answer of a kind, added in the same way. */
export const RULES: { readonly kind: Kind; readonly look: (exchange: Exchange) => void }[] = [];

/**
 * Ways to state the checks of one level. `source`: the section of a document that has the rules.
 */
export const sectionsOf = (level: Level) => (source: string) => {
  const stated = <T>(entries: Stated<T>, runOf: (entry: T) => Check["run"]): void => {
    for (const [heading, entry] of Object.entries(entries))
      CHECKS.push(checkOf(level, source, heading, runOf(entry)));
  };
  const rules = (kind: Kind, entries: Stated<(exchange: Exchange) => void>): void => {
    for (const [heading, look] of Object.entries(entries)) {
      RULES.push({ kind, look });
      CHECKS.push({ ...checkOf(level, source, heading, every(kind, look)), when: "last" });
    }
  };
  return {
    checks: (entries: Stated<Check["run"]>) => stated(entries, (run) => run),
    /** Requests that must get 200 and these fields. */
    cases: (entries: Stated<Case | ((t: Tester) => Case)>) =>
      stated(entries, (entry) => async (t) => {
        const [fields, expected, over] = typeof entry === "function" ? entry(t) : entry;
        expect.fields(await t.ask(fields, over), { status: 200, ...expected });
      }),
    /** Requests that must get 200. */
    accepts: (entries: Stated<Ask>) => stated(entries, (fields) => (t) => t.answered(fields)),
    /** Requests that must get a client error (4xx). */
    refuses: (entries: Stated<Ask>) =>
      stated(entries, (fields) => async (t) => {
        expect.fields(await t.ask(fields), { status: refusal });
      }),
    /** Rules about every response, whole reply, stream or error of the run. */
    rules,
    /**
     * One rule per field: of the body of every reply or error, or of each chunk of every stream.
     */
    fields(kind: Kind, prefix: string, fields: Fields, root = ""): void {
      for (const [path, expected] of Object.entries(fields)) {
        const rule = `${root}${path} is ${wordsOf(expected)}`;
        rules(kind, {
          [`${prefix}.${path.replaceAll("[]", "")}: ${rule}`]: ({ parts }) => {
            for (const part of parts) expect.field(part, root + path, expected);
          },
        });
      }
    },
  };
};

/** A request with one user message. */
export const user = (content: unknown) => ({ messages: [{ role: "user", content }] });
/** A request with a user message followed by these messages. */
export const after = (...messages: readonly object[]) => ({
  messages: [...question("Hi."), ...messages],
});
/** A usual request with these headers, which must get 200. */
export const withHeaders = (headers: Headers): Case => [{}, {}, { headers }];

/** All values at a path. */
export const valuesAt = (root: unknown, path: string): unknown[] =>
  find(root, path).map(({ value }) => value);
/** The choices of a reply, or of all chunks of a stream. */
export const choicesOf = ({ parts }: Exchange): unknown[] =>
  parts.flatMap((part) => valuesAt(part, "choices[]"));
/** The X-Request-Id of an answer. */
export const idHeader = ({ headers }: Exchange): unknown => headers["x-request-id"];

/** The first response beyond the limit. */
export async function overLimit(t: Tester): Promise<Exchange> {
  const refused = (await t.overLimit()).find(({ status }) => status !== 200);
  if (!refused) throw new Skipped("no request was too many");
  return refused;
}

/** The data of a stream's events, each of which also has its type in its `event:` line. */
function eventsOf({ events, rest }: Exchange): Json[] {
  expect.that(rest === "", "a blank line after the last event", rest);
  return events
    .filter(({ data }) => data !== undefined)
    .map(({ lines, json }) => {
      expect.that(isObject(json), "data that is a JSON object", lines.join(" "));
      return json;
    });
}
/** The name of each event must be the type in its data. */
export function expectNames({ events }: Exchange): void {
  const named = events.filter(({ data }) => data !== undefined);
  expect.that(named.length > 0, "events", events.length);
  for (const { lines, json } of named)
    expect.that(lines.includes(`event: ${first(json, "type")}`), "the same name twice", lines[0]);
}

type AskOf = (t: Tester, fields: Json) => Ask;
type OverOf = (t: Tester) => Over;

/** What the checks of a vendor's API work with. */
export type ApiKit = ReturnType<typeof apiKitOf>;

function apiKitOf(t: Tester, askOf: AskOf, overOf: OverOf) {
  const answered = (fields: Json = {}) => t.answered(askOf(t, fields), overOf(t));
  return {
    t,
    /** Sends a short question to the model, with these fields. */
    post(fields: Json = {}, { headers, ...over }: Over = {}): Promise<Exchange> {
      const usual = overOf(t);
      const all = { ...usual.headers, ...headers };
      return t.ask(askOf(t, fields), { ...usual, ...over, headers: all });
    },
    /** Returns the whole reply to the same question. Throws if it is not one. */
    async whole(fields?: Json): Promise<Json> {
      const { json } = await answered(fields);
      expect.that(isObject(json), "a JSON object", json);
      return json;
    },
    /** Returns the events of a streamed reply to it. Throws if it is not one. */
    stream: async (fields?: Json): Promise<readonly Json[]> =>
      eventsOf(await answered({ ...fields, stream: true })),
  };
}

/**
 * A way to state the checks of an API. `askOf`: the body of a request with these fields; `overOf`:
 * its path and headers.
 */
export const apiOf =
  (level: Level, askOf: AskOf, overOf: OverOf) =>
  (source: string, entries: Stated<(kit: ApiKit) => unknown>): void => {
    for (const [heading, run] of Object.entries(entries))
      CHECKS.push(checkOf(level, source, heading, (t) => run(apiKitOf(t, askOf, overOf))));
  };
/** Checks of a stream's events. Each check gets them by the same request. */
export const ofStream = (entries: Stated<(events: readonly Json[]) => void>) =>
  Object.fromEntries(
    Object.entries(entries).map(([heading, look]) => [
      heading,
      async ({ stream }: ApiKit) => look(await stream()),
    ]),
  );
