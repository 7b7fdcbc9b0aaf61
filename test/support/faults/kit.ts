// What the faults of a wrong gateway are made of: which request a fault is about, and what it does
// to the request or its answer. The names are the demo configuration's; the texts are those that
// the conformance suite asks.

import {
  isObject,
  parse,
  type Answer,
  type Asked,
  type Fault,
  type Json,
} from "../wrong-gateway.ts";

export const [MODEL, ALIAS, REASONING, WORD] = [
  "demo-chat",
  "auto/chat",
  "auto/reasoning",
  "pineapple",
];
export const CHAT = "/v1/chat/completions";

export type Change = (value: unknown, index: number) => unknown;

/**
 * A copy in which the values at a path such as `choices[].index` are changed; undefined leaves the
 * field out.
 */
export function change(root: unknown, path: string, to: Change, index = 0): unknown {
  const [step = "", ...rest] = path.split(".");
  const name = step.replace("[]", "");
  if (!isObject(root)) return root;
  const below = (value: unknown): unknown =>
    rest.length === 0 ? to(value, index) : change(value, rest.join("."), to, index);
  const value = root[name];
  const changed = (): unknown => {
    if (step === name) return below(value);
    return Array.isArray(value) ? value.map(below) : value;
  };
  return { ...root, [name]: changed() };
}

// What is done to an answer.
export const ifGood =
  (edit: (answer: Answer) => Answer) =>
  (answer: Answer): Answer =>
    answer.status === 200 ? edit(answer) : answer;
export const anyBody =
  (path: string, to: Change) =>
  (answer: Answer): Answer => ({
    ...answer,
    text: JSON.stringify(change(parse(answer.text), path, to)),
  });
export const body = (path: string, to: Change) => ifGood(anyBody(path, to));
export const blocks = (edit: (events: string[]) => string[]) =>
  ifGood((answer) => ({
    ...answer,
    text: edit(answer.text.split("\n\n").slice(0, -1))
      .map((event) => `${event}\n\n`)
      .join(""),
  }));
/** `to` is told which chunk of the stream it is, from 0. */
export const chunks = (path: string, to: Change) =>
  blocks((events) =>
    events.map((event, index) =>
      event.startsWith("data: {")
        ? `data: ${JSON.stringify(change(parse(event.slice(6)), path, to, index))}`
        : event,
    ),
  );
export const header =
  (name: string, to: (value: string) => string | undefined) =>
  (answer: Answer): Answer => {
    const headers = Object.entries(answer.headers).flatMap(([key, value]) => {
      const given = key.toLowerCase() === name ? to(String(value)) : value;
      return given === undefined ? [] : [[key, given] as const];
    });
    return { ...answer, headers: Object.fromEntries(headers) };
  };
export const status =
  (code: number) =>
  (answer: Answer): Answer => ({ ...answer, status: code });
/**
 * Another id than the client's, the same in header and body, as a gateway would have that makes its
 * own.
 */
export const otherId = (answer: Answer): Answer => {
  const id = `req_${"0123456789abcdef".repeat(2)}`;
  const text =
    isObject(parse(answer.text)) && answer.status !== 200
      ? anyBody("error.request_id", () => id)(answer).text
      : answer.text;
  return { ...header("x-request-id", () => id)(answer), text };
};
export const refusal = (answer: Answer): Answer => {
  const id = Object.entries(answer.headers).find(
    ([name]) => name.toLowerCase() === "x-request-id",
  )?.[1];
  const text = JSON.stringify({
    error: {
      message: "I will not.",
      type: "invalid_request_error",
      code: "invalid_value",
      request_id: id,
    },
  });
  return {
    status: 400,
    headers: { "Content-Type": "application/json", "X-Request-Id": id ?? "" },
    text,
  };
};

// What a fault is about.
export const chat =
  (holds: (asked: Asked) => boolean) =>
  (asked: Asked): boolean =>
    asked.path === CHAT && asked.method === "POST" && holds(asked);
export const asks = (text: string, streamed?: boolean) =>
  chat(({ question, streamed: is }) => question.includes(text) && (streamed ?? is) === is);
export const field = (name: string, holds: (value: unknown) => boolean) =>
  chat(({ body: given }) => name in given && holds(given[name]));
export const both =
  (...conditions: readonly ((asked: Asked) => boolean)[]) =>
  (asked: Asked): boolean =>
    conditions.every((holds) => holds(asked));
export const not =
  (condition: (asked: Asked) => boolean) =>
  (asked: Asked): boolean =>
    !condition(asked);
export const to = (model: string) => field("model", (value) => value === model);
export const ownId =
  (id: string | undefined) =>
  ({ headers }: Asked): boolean =>
    headers["x-request-id"] === id;
export const health = ({ path }: Asked): boolean => path === "/healthz";
export const nowhere = ({ path }: Asked): boolean => path === "/v1/no-such-path";
export const withKey = (value: string | undefined) =>
  chat(({ headers }) => headers.authorization === value);
export const has = (name: string) => field(name, (value) => value !== undefined && value !== null);
export const thinks = has("thinking");

export const [WHOLE, STREAM] = [asks("Say hello.", false), asks("Say hello.", true)];
export const [WORD_WHOLE, WORD_STREAM] = [asks(WORD, false), asks(WORD, true)];

// Kinds of faults.
/** Refuses what it should accept. */
export const refuses = (when: Fault["when"]): Fault => ({ when, answer: refusal });
/**
 * Accepts what it should refuse: the field is put right, or (undefined) left out, before anybody
 * looks.
 */
export const mends = (when: Fault["when"], fields: Json): Fault => ({
  when,
  forward: ({ body: given }) => ({ text: JSON.stringify({ ...given, ...fields }) }),
});
/** Spoils a field of the sampled whole replies, or of the sampled streams' chunks. */
export const reply = (path: string, to: Change): Fault => ({
  when: both(WHOLE, not(thinks)),
  answer: body(path, to),
});
export const stream = (path: string, to: Change): Fault => ({
  when: both(STREAM, not(thinks)),
  answer: chunks(path, to),
});
export const error = (path: string, to: Change): Fault => ({
  when: nowhere,
  answer: anyBody(path, to),
});
export const limited = (answer: Fault["answer"] & {}): Fault => ({
  when: withKey("Bearer sk-limited"),
  answer: (given) => (given.status === 429 ? answer(given) : given),
});

export const raw = (sent: string, answer: (answer: string) => string): Fault => ({
  when: () => false,
  raw: { when: (bytes) => bytes.includes(sent), answer },
});

export const GOOD = { model: MODEL, messages: [{ role: "user", content: "Say hello." }] };
export const good = { messages: GOOD.messages };
export const message = (holds: (message: Json) => boolean) =>
  field(
    "messages",
    (value) => Array.isArray(value) && value.some((each) => isObject(each) && holds(each)),
  );
export const increment: Change = (value) => Number(value) + 1;

const seenIds = new Set<unknown>();
/** From the second request on that has this id. */
export const again = (id: string) => both(ownId(id), () => seenIds.has(id) || !seenIds.add(id));

/** By the ids of the checks. What other levels send under ids of their own is left alone. */
export const named = (level: string, faults: Readonly<Record<string, Fault>>) =>
  Object.entries(faults).map(
    ([name, fault]) =>
      [`${level}.${name}`, { ...fault, when: both(fault.when, not(ofOther(level))) }] as const,
  );
const ofOther =
  (level: string) =>
  ({ headers: { "x-request-id": id = "" } }: Asked): boolean =>
    /^(compatible|robust)\./.test(String(id)) && !String(id).startsWith(`${level}.`);
