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
  type Need,
  type Tester,
} from "../suite.ts";

/** Ways to state the checks of one level. */
export function kit(level: Level) {
  const check = (
    id: string,
    source: string,
    title: string,
    run: Check["run"],
    ...needs: Need[]
  ): Check => ({ id: `${level}.${id}`, source, title, needs, run });
  return {
    check,
    /** A rule about every response, whole reply, stream or error of the run. */
    rule: (
      kind: Parameters<typeof every>[0],
      id: string,
      source: string,
      title: string,
      look: (exchange: Exchange) => void,
    ): Check => every(kind, `${level}.${id}`, source, title, look),
    accepts: (id: string, source: string, title: string, fields: Ask, ...needs: Need[]): Check =>
      check(id, source, title, async (t) => void (await t.answered(fields)), ...needs),
    refuses: (id: string, source: string, title: string, fields: Ask, ...needs: Need[]): Check =>
      check(id, source, title, async (t) => void (await t.refused(fields)), ...needs),
    /** A rule for each field of a table: about the body of every reply or error, or about every chunk of every stream. */
    fieldRules: (
      kind: "reply" | "error" | "stream",
      prefix: string,
      source: string,
      fields: readonly Field[],
    ): Check[] =>
      fields.map(([path, expected, holds]) =>
        every(
          kind,
          `${level}.${prefix}.${path.replaceAll("[]", "")}`,
          source,
          `${path} is ${expected}`,
          (exchange) => {
            for (const json of kind === "stream" ? chunksOf(exchange) : [exchange.json])
              for (const found of find(json, path))
                expect(holds(found.value, found), `${found.path} to be ${expected}`, found.value);
          },
        ),
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
export const allSame = (values: readonly unknown[]): void =>
  values.forEach((value) =>
    expect(value === values[0], `${JSON.stringify(values[0])} as in the first chunk`, value),
  );

/** The first request that was too many. */
export async function overLimit(t: Tester): Promise<Exchange> {
  const refused = (await t.overLimit()).find(({ answer }) => answer.status !== 200);
  if (!refused) throw new Skipped("no request was too many");
  return refused;
}
