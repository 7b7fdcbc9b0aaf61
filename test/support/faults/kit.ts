// What the faults of a wrong gateway are made of: which request a fault is about, and what it does
// to the request or its answer. The names are the demo configuration's; the texts are those that
// the conformance suite asks.

import { CHECKS } from "../../../scripts/conformance/checks/all.ts";
import { parseJson } from "../../../scripts/conformance/client.ts";
import { isObject, type Json } from "../../../scripts/conformance/shapes.ts";
import { levelOf } from "../../../scripts/conformance/suite.ts";
import { CHAT, SAMPLE } from "../../../scripts/conformance/tester.ts";
import type { Answer, Fault } from "../wrong-gateway.ts";

export const [MODEL, ALIAS] = ["demo-chat", "auto/chat"];
/** The header by which requests say which check they are of. */
export const MARK = "x-conformance-check";
export type Edit = (answer: Answer) => Answer;
type Holds = Fault["when"];
/** What a value becomes: another one, or what a function makes of it and of the event's number. */
export type Change =
  | ((value: unknown, index: number) => unknown)
  | (string | number | boolean | null | undefined | readonly unknown[] | Json);
const changed = (to: Change, value: unknown, index: number): unknown =>
  typeof to === "function" ? to(value, index) : to;

/** A copy with other values at a path such as `choices[].index`. Undefined removes the field. */
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

// What is done to an answer.
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
/** `to` is told which chunk of the stream it is, from 0. */
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
/** A header is changed, or left out (undefined), or added. */
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
/** Another id, in the header and in an error, as of a gateway that makes its own. */
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

// What a fault is about.
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
/** The sampled whole replies and streams. */
export const STREAM = both(isSampled, isChat, says("Say hello."), isStream);
export const WHOLE = both(isSampled, isChat, says("Say hello."), not(isStream));

// Kinds of faults.
/** Fields are put in the request, or (undefined) left out, before anybody looks. */
export const sends = (fields: Json): Own => ({
  forward: ({ body: given }) => ({ text: JSON.stringify({ ...given, ...fields }) }),
});
/** A fault in answers. */
export const about = (when: Holds, answer: Edit): Fault => ({ when, answer });
export const wholes = (answer: Edit): Fault => about(WHOLE, answer);
export const streams = (answer: Edit): Fault => about(STREAM, answer);
/** Spoils a field of the sampled whole replies, or of the sampled streams' chunks. */
export const reply = (path: string, to: Change): Fault =>
  about(both(WHOLE, not(thinks)), body(path, to));
export const stream = (path: string, to: Change): Fault =>
  about(both(STREAM, not(thinks)), chunks(path, to));
/** No field of a reply or a chunk is of this type. */
const spoilt = (value: unknown): unknown => (value === undefined || value === null ? value : true);
/** A fault for each check of one field of every reply, or of every chunk: its value is spoilt. */
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
/** What should be refused is answered as a good request is; what should be answered is refused. */
export const opposite: Own = {
  answer: refusal,
  mend: ({ streamed }) => ({
    model: MODEL,
    stream: streamed,
    messages: [{ role: "user", content: "Say hello." }],
  }),
};
export const increment = (value: unknown): unknown => Number(value) + 1;

/** A fault in the requests of its own check, or what it makes of their answers. */
export type Own = Partial<Fault> | Edit;
export type Faults = readonly (readonly [string, Fault])[];
/** By the ids of their checks; where a check has several, a slash and what is wrong follow. */
export const own = (level: string, faults: Readonly<Record<string, Own>>): Faults =>
  Object.entries(faults).map(([name, given]) => {
    const fault = typeof given === "function" ? { answer: given } : given;
    const isOwn = isOf(`${level}.${name.split("/")[0]}`);
    const when = fault.when ? both(isOwn, fault.when) : isOwn;
    return [`${level}.${name}`, { ...fault, when: fault.raw ? () => false : when }];
  });
/** Faults in what the suite samples, and in other requests that say themselves which they are. */
export const sampled = (level: string, faults: Readonly<Record<string, Fault>>): Faults =>
  Object.entries(faults).map(([name, fault]) => [`${level}.${name}`, fault]);
/** What all checks of a level that have no fault yet are to have. */
export const others = (level: string, faults: Faults, fault: Own): Faults => {
  const known = new Set(faults.map(([name]) => name.split("/")[0]));
  const rest = CHECKS.filter((check) => levelOf(check) === level && !known.has(check.id));
  return rest.flatMap(({ id }) => own(level, { [id.slice(level.length + 1)]: fault }));
};
/** The checks whose ids begin so, each with these faults; without the level. */
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
