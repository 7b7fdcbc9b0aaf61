// What the lists of checks share: short ways to state a check, and to read what came.

import { find, first, isObject, type Field } from "../shapes.ts";
import {
  every,
  expect,
  Skipped,
  type Ask,
  type Check,
  type Exchange,
  type Level,
  type Rule,
  type Tester,
} from "../suite.ts";

/** A check as its list states it: `id` is without the level. */
type Stated = Pick<Check, "id" | "source" | "title" | "needs" | "run">;
/** A check that makes one request, with these fields. */
interface StatedAsk extends Omit<Stated, "run"> {
  readonly fields: Ask;
}

/** Ways to state the checks of one level. */
export function kit(level: Level) {
  const check = ({ id, source, title, needs = [], run }: Stated): Check => ({
    id: `${level}.${id}`,
    source,
    title,
    needs,
    run,
  });
  return {
    check,
    /** A rule about every response, whole reply, stream or error of the run. */
    rule: (stated: Rule): Check => every({ ...stated, id: `${level}.${stated.id}` }),
    /** A request with these fields is answered with 200. */
    accepts: ({ fields, ...stated }: StatedAsk): Check =>
      check({
        ...stated,
        run: async (t) => {
          await t.answered(fields);
        },
      }),
    /** A request with these fields is refused as the client's fault. */
    refuses: ({ fields, ...stated }: StatedAsk): Check =>
      check({
        ...stated,
        run: async (t) => {
          await t.refused(fields);
        },
      }),
    /**
     * A rule for each field of a table: about the body of every reply or error, or about every
     * chunk of every stream.
     */
    fieldRules: (
      kind: "reply" | "error" | "stream",
      prefix: string,
      source: string,
      fields: readonly Field[],
    ): Check[] =>
      fields.map(([path, expected, holds]) =>
        every({
          kind,
          id: `${level}.${prefix}.${path.replaceAll("[]", "")}`,
          source,
          title: `${path} is ${expected}`,
          look: (exchange) => {
            for (const json of kind === "stream" ? chunksOf(exchange) : [exchange.json])
              for (const found of find(json, path))
                expect(holds(found.value, found), `${found.path} to be ${expected}`, found.value);
          },
        }),
      ),
  };
}

export const chunksOf = ({ events }: Exchange): unknown[] =>
  events.map(({ json }) => json).filter((json) => isObject(json) && !("error" in json));
export const choicesOf = (stream: Exchange): unknown[] =>
  chunksOf(stream).flatMap((chunk) => find(chunk, "choices[]").map(({ value }) => value));
/** What the deltas of a stream say together. */
export const streamed = (stream: Exchange, field: string): string =>
  chunksOf(stream)
    .map((chunk) => first(chunk, `choices[].delta.${field}`) ?? "")
    .join("");
export const contentOf = ({ json }: Exchange): string =>
  String(first(json, "choices[].message.content"));
export const idHeader = ({ answer }: Exchange): unknown => answer.headers["x-request-id"];
/** What is to be the same in all chunks. */
export const allSame = (values: readonly unknown[]): void => {
  for (const value of values)
    expect(value === values[0], `${JSON.stringify(values[0])} as in the first chunk`, value);
};

/** The first request that was too many. */
export async function overLimit(t: Tester): Promise<Exchange> {
  const refused = (await t.overLimit()).find(({ answer }) => answer.status !== 200);
  if (!refused) throw new Skipped("no request was too many");
  return refused;
}
