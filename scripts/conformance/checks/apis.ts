// How the levels about a vendor's API state their checks, and what these work with.

import type { Exchange } from "../exchange.ts";
import * as expect from "../expect.ts";
import { first, isObject, type Json } from "../shapes.ts";
import type { Level } from "../suite.ts";
import type { Ask, Over, Tester } from "../tester.ts";
import { checkOf, CHECKS, type Stated } from "./kit.ts";

export interface Scene {
  readonly t: Tester;
  /** A short question to the model, with these fields. */
  post(fields?: Json, over?: Over): Promise<Exchange>;
  /** The reply to the same, which must be one. */
  whole(fields?: Json): Promise<Json>;
  /** The events of a stream, which must be one. */
  stream(fields?: Json): Promise<readonly Json[]>;
}

/** The data of a stream's events, each of which has its type also in its line `event:`. */
function eventsOf({ events, rest }: Exchange): Json[] {
  expect.that(rest === "", "a blank line after the last event", rest);
  return events
    .filter(({ data }) => data !== undefined)
    .map(({ lines, json }) => {
      expect.that(isObject(json), "data that is a JSON object", lines.join(" "));
      return json;
    });
}
export function expectNames({ events }: Exchange): void {
  const named = events.filter(({ data }) => data !== undefined);
  expect.that(named.length > 0, "events", events.length);
  for (const { lines, json } of named)
    expect.that(lines.includes(`event: ${first(json, "type")}`), "the same name twice", lines[0]);
}

/** `askOf`: the body of a request with these fields; `overOf`: its path and headers. */
export function apiOf(
  level: Level,
  askOf: (t: Tester, fields: Json) => Ask,
  overOf: (t: Tester) => Over,
) {
  function sceneOf(t: Tester): Scene {
    const post: Scene["post"] = (fields = {}, { headers, ...over } = {}) => {
      const usual = overOf(t);
      return t.ask(askOf(t, fields), {
        ...usual,
        ...over,
        headers: { ...usual.headers, ...headers },
      });
    };
    const answered = (fields: Json = {}) => t.answered(askOf(t, fields), overOf(t));
    return {
      t,
      post,
      async whole(fields) {
        const { json } = await answered(fields);
        expect.that(isObject(json), "a JSON object", json);
        return json;
      },
      stream: async (fields) => eventsOf(await answered({ ...fields, stream: true })),
    };
  }
  function checks(source: string, entries: Stated<(scene: Scene) => unknown>): void {
    for (const [heading, run] of Object.entries(entries))
      CHECKS.push(checkOf(level, source, heading, (t) => run(sceneOf(t))));
  }
  return {
    checks,
    /** Checks of the events of a stream, which each of them gets by the same request. */
    ofStream(source: string, entries: Stated<(events: readonly Json[]) => void>): void {
      for (const [heading, look] of Object.entries(entries))
        checks(source, { [heading]: async ({ stream }) => look(await stream()) });
    },
  };
}
