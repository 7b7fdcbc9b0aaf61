// The parts of a wrong gateway's faults: which requests a fault concerns, and how it changes a
// request or its answer. The names are those of the demo configuration; the texts are those that
// the conformance suite sends.

import { CHECKS } from "../../../scripts/conformance/checks/all.ts";
import { parseJson } from "../../../scripts/conformance/client.ts";
import { isObject, type Json } from "../../../scripts/conformance/shapes.ts";
import { levelOf } from "../../../scripts/conformance/suite.ts";
import { CHAT, SAMPLE } from "../../../scripts/conformance/tester.ts";
import type { Answer, Fault } from "../wrong-gateway.ts";

export const [MODEL, ALIAS] = ["demo-chat", "auto/chat"];
/** The header in which a request names its check. */
export const MARK = "x-conformance-check";
export type Edit = (answer: Answer) => Answer;
type Holds = Fault["when"];
/** The new value, or a function that returns it from the old value and the number of the event. */
export type Change =
  | ((value: unknown, index: number) => unknown)
  | (string | number | boolean | null | undefined | readonly unknown[] | Json);
const changed = (to: Change, value: unknown, index: number): unknown =>
  typeof to === "function" ? to(value, index) : to;

/** A copy with new values at a path such as `choices[].index`. Undefined removes the field. */
export function change(root: unknown, path: string, to: Change, index = 0): unknown {
  const [step = "", ...rest] = path.split(".");
  const name = step.replace("[]", "");
  if (!isObject(root)) return root;
  const below = (value: unknown): unknown =>
    rest.length === 0 ? changed(to, value, index) : change(value, rest.join("."), to, index);
  const value = root[name];
  if (step === name) return { ...root, [name]: below(value) };
  return { ...root, [name]: Array.isArray(value) ? value.map(below) : value };
}

// Changes of an answer.
const inCase =
  (holds: (answer: Answer) => boolean) =>
  (edit: Edit): Edit =>
  (answer) =>
    holds(answer) ? edit(answer) : answer;
export const ifGood = inCase(({ status: code }) => code === 200);
export const ifStatus = (code: number, edit: Edit) =>
  inCase((given) => given.status === code)(edit);
export const text =
  (edit: (text: string) => string): Edit =>
  (answer) => ({
    ...answer,
    text: edit(answer.text),
  });
export const anyBody = (path: string, to: Change) =>
  text((given) => JSON.stringify(change(parseJson(given), path, to)));
export const body = (path: string, to: Change) => ifGood(anyBody(path, to));
export const error = (path: string, to: Change) => anyBody(`error.${path}`, to);
export const blocks = (edit: (events: string[]) => string[]) =>
  ifGood(
    text((given) =>
      edit(given.split("\n\n").slice(0, -1))
        .map((event) => `${event}\n\n`)
        .join(""),
    ),
  );
/** Changes the chunks of a stream. `to` gets the index of the chunk, from 0. */
export const chunks = (path: string, to: Change) =>
  blocks((events) =>
    events.map((event, index) =>
      event.startsWith("data: {")
        ? `data: ${JSON.stringify(change(parseJson(event.slice(6)), path, to, index))}`
        : event,
    ),
  );
export const without = (isOut: (event: string) => boolean) =>
  blocks((events) => events.filter((event) => !isOut(event)));
/** Changes, removes (undefined) or adds a header. */
export const header =
  (name: string, to: Change): Edit =>
  (answer) => {
    const kept = Object.entries(answer.headers).filter(([key]) => key.toLowerCase() !== name);
    const [, given] =
      Object.entries(answer.headers).find(([key]) => key.toLowerCase() === name) ?? [];
    const value = changed(to, given, 0);
    if (value !== undefined) kept.push([name, String(value)]);
    return { ...answer, headers: Object.fromEntries(kept) };
  };
export const status =
  (code: number): Edit =>
  (answer) => ({ ...answer, status: code });
export const each =
  (...edits: readonly Edit[]): Edit =>
  (answer) =>
    edits.reduce((edited, edit) => edit(edited), answer);
/** Replaces the request id in the header and in an error, like a gateway that makes its own. */
export const idInstead = (to: Change): Edit =>
  each(header("x-request-id", to), (answer) =>
    answer.status === 200 ? answer : error("request_id", to)(answer),
  );
export const refusal: Edit = ({ headers }) => {
  const id = headers["x-request-id"] ?? headers["X-Request-Id"] ?? "";
  const [type, code] = ["invalid_request_error", "invalid_value"];
  return {
    status: 400,
    headers: { "Content-Type": "application/json", "X-Request-Id": id },
    text: JSON.stringify({ error: { message: "I will not.", type, code, request_id: id } }),
  };
};

// The requests that a fault concerns.
export const both =
  (...conditions: readonly Holds[]): Holds =>
  (asked) =>
    conditions.every((holds) => holds(asked));
export const not =
  (condition: Holds): Holds =>
  (asked) =>
    !condition(asked);
export const isChat: Holds = ({ path, method }) => path === CHAT && method === "POST";
export const isStream: Holds = ({ streamed }) => streamed;
export const says =
  (text: string): Holds =>
  ({ question }) =>
    question === text;
const isOf =
  (check: string): Holds =>
  ({ headers }) =>
    headers[MARK] === check;
export const isSampled = isOf(SAMPLE);
export const has =
  (name: string, value?: unknown): Holds =>
  ({ body: { [name]: given } }) =>
    value === undefined ? (given ?? null) !== null : given === value;
export const thinks = has("thinking");
export const isHealth: Holds = ({ path }) => path === "/healthz";
const isNowhere: Holds = ({ path }) => path === "/v1/no-such-path";
/** The sampled streams. */
export const STREAM = both(isSampled, isChat, says("Say hello."), isStream);
/** The sampled whole replies. */
export const WHOLE = both(isSampled, isChat, says("Say hello."), not(isStream));

// Kinds of faults.
/** Sets fields of the request, or removes them (undefined), before the gateway sees it. */
export const sends = (fields: Json): Own => ({
  forward: ({ body: given }) => ({ text: JSON.stringify({ ...given, ...fields }) }),
});
/** A fault in the answers to some requests. */
export const about = (when: Holds, answer: Edit): Fault => ({ when, answer });
export const wholes = (answer: Edit): Fault => about(WHOLE, answer);
export const streams = (answer: Edit): Fault => about(STREAM, answer);
/** Changes a field of the sampled whole replies. */
export const reply = (path: string, to: Change): Fault =>
  about(both(WHOLE, not(thinks)), body(path, to));
/** Changes a field of the chunks of the sampled streams. */
export const stream = (path: string, to: Change): Fault =>
  about(both(STREAM, not(thinks)), chunks(path, to));
/** Makes a value a boolean, which no field of a reply or a chunk is. */
const spoilt = (value: unknown): unknown => (value === undefined || value === null ? value : true);
/** A fault for each check of one field of every reply or chunk: the field gets a wrong type. */
export const spoiltFields = (level: string): Record<string, Fault> =>
  Object.fromEntries(
    CHECKS.flatMap(({ id, title }) => {
      const [of, kind = "", ...names] = id.split(".");
      const [path = ""] = title.split(" ");
      const isField = of === level && path.replaceAll("[]", "") === names.join(".");
      if (!isField || !["reply", "chunk"].includes(kind)) return [];
      const fault =
        kind === "reply" ? about(WHOLE, body(path, spoilt)) : about(STREAM, chunks(path, spoilt));
      return [[[kind, ...names].join("."), fault]];
    }),
  );
export const nowhere = (answer: Edit): Fault => ({ when: isNowhere, answer });
export const limited = (answer: Edit): Fault => ({
  when: ({ headers }) => headers.authorization === "Bearer sk-limited",
  answer: ifStatus(429, answer),
});
export const raw = (sent: string, answer: (answer: string) => string): Own => ({
  raw: { when: (bytes) => bytes.includes(sent), answer },
});
/** Answers requests that must be refused like good requests, and refuses all others. */
export const opposite: Own = {
  answer: refusal,
  mend: ({ streamed }) => ({
    model: MODEL,
    stream: streamed,
    messages: [{ role: "user", content: "Say hello." }],
  }),
};
export const increment = (value: unknown): unknown => Number(value) + 1;

/** A fault in the requests of its own check only, or a change of their answers. */
export type Own = Partial<Fault> | Edit;
export type Faults = readonly (readonly [string, Fault])[];
/** Faults by the ids of their checks. If a check has several, a slash and a word follow the id. */
export const own = (level: string, faults: Readonly<Record<string, Own>>): Faults =>
  Object.entries(faults).map(([name, given]) => {
    const fault = typeof given === "function" ? { answer: given } : given;
    const isOwn = isOf(`${level}.${name.split("/")[0]}`);
    const when = fault.when ? both(isOwn, fault.when) : isOwn;
    return [`${level}.${name}`, { ...fault, when: fault.raw ? () => false : when }];
  });
/** Faults in the sampled requests, and in others that `when` identifies without a check's id. */
export const sampled = (level: string, faults: Readonly<Record<string, Fault>>): Faults =>
  Object.entries(faults).map(([name, fault]) => [`${level}.${name}`, fault]);
/** The same fault for all checks of a level that have none yet. */
export const others = (level: string, faults: Faults, fault: Own): Faults => {
  const known = new Set(faults.map(([name]) => name.split("/")[0]));
  const rest = CHECKS.filter((check) => levelOf(check) === level && !known.has(check.id));
  return rest.flatMap(({ id }) => own(level, { [id.slice(level.length + 1)]: fault }));
};
/** These faults for each check whose id begins with `prefix`. The keys lack the level. */
export const eachOf = (prefix: string, faults: Readonly<Record<string, Own>>) => {
  const [level = ""] = prefix.split(".", 1);
  const names = CHECKS.filter(({ id }) => id.startsWith(prefix)).map(({ id }) =>
    id.slice(level.length + 1),
  );
  return Object.fromEntries(
    names.flatMap((name) =>
      Object.entries(faults).map(([what, fault]) => [`${name}/${what}`, fault] as const),
    ),
  );
};
