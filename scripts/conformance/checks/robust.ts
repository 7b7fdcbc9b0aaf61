// Level `robust`: what goes wrong in gateways, looked at from both sides: as their
// client, and as their provider, which fails in every way that a provider can (provider.ts). Each
// check has models of its own there, named after what they do.

import { parseEvents, parseJson, parseRaw, within, type Opened } from "../client.ts";
import {
  CALLS,
  CANARY,
  ELSEWHERE,
  FLOOD_BYTES,
  PIECES,
  TEXT,
  THOUGHTS,
  USAGE,
  type Call,
  type Provider,
} from "../provider.ts";
import { aliasOf, BURST, modelOf, type Lab } from "../ready.ts";
import { ERROR, find, first, isCount, isObject, isText, list } from "../shapes.ts";
import { CHAT, Expectation, expect, question, TOOLS, type Check, type Tester } from "../suite.ts";

/** An answer of the gateway, whole or a stream. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  /** Head and body, as they came. */
  readonly shown: string;
  readonly streamed: boolean;
  /** The body, or the chunks. */
  readonly parts: readonly unknown[];
  /** The error, in the body or as an event. */
  readonly error: unknown;
  readonly content: string;
  /** Of a stream: what each event says. */
  readonly data: readonly (string | undefined)[];
}

/** What a check works with. */
export interface Scene {
  readonly t: Tester;
  readonly provider: Provider;
  /** Its models at the provider; the first of them; the one to which a failure of that leads. */
  readonly models: readonly string[];
  readonly model: string;
  readonly second: string;
  /**
   * Asks the alias, or the model if there is no other: fields to set, headers, a signal to leave
   * at.
   */
  ask(
    fields?: object,
    headers?: Readonly<Record<string, string>>,
    signal?: AbortSignal,
  ): Promise<Reply>;
  /** Whole and as a stream, at the same time. */
  askBoth(fields?: object): Promise<readonly [Reply, Reply]>;
  open(fields?: object, headers?: Readonly<Record<string, string>>): Promise<Opened>;
  /** What came to the provider for a model; the first, if none is named. */
  calls(model?: string): readonly Call[];
  /** The call after so many others, waited for. */
  call(after?: number, model?: string): Promise<Call>;
}

/** For what should happen at once. */
export const SOON_MS = 2_500;
/** For what only takes its time where a machine is busy. */
export const PATIENT_MS = 10_000;
export const soon = <T>(promise: Promise<T>, what: string): Promise<T> =>
  within(promise, what, SOON_MS);

/** What the checks need of the gateway's configuration, filled as they are stated. */
export const LABS: Lab[] = [];

/** A check as this list states it. */
interface Stated
  extends Pick<Check, "id" | "source" | "title" | "when">,
    Pick<Lab, "at" | "reasoning"> {
  /** The models that the check has at the provider, with blanks between them: what each does. */
  readonly behaviours: string;
  readonly run: (scene: Scene) => Promise<void>;
}

export function robust({ id, source, title, behaviours, run, when, ...more }: Stated): Check {
  const lab: Lab = { id, behaviours: behaviours.split(" "), ...more };
  LABS.push(lab);
  const needs =
    lab.behaviours.length > 1 ? (["provider", "alias"] as const) : (["provider"] as const);
  return {
    id: `robust.${id}`,
    source,
    title,
    needs,
    ...(when && { when }),
    run: (t) => run(sceneOf(t, lab)),
  };
}

function sceneOf(t: Tester, lab: Lab): Scene {
  const provider = t.options.provider!;
  const models = lab.behaviours.map((_, index) => modelOf(lab, index));
  const [model = "", second = model] = models;
  const requestOf = (
    fields: object,
    headers: Readonly<Record<string, string>> = {},
    signal?: AbortSignal,
  ) => {
    const body = {
      model: second === model ? model : aliasOf(lab),
      messages: question("Say something."),
      ...fields,
    };
    const own = {
      "content-type": "application/json",
      authorization: `Bearer ${t.options.key}`,
      "x-request-id": `robust.${lab.id}`,
    };
    return {
      method: "POST",
      path: CHAT,
      headers: { ...own, ...headers },
      body: JSON.stringify(body),
      signal,
    };
  };
  const ask: Scene["ask"] = async (fields = {}, headers, signal) => {
    const {
      status,
      headers: got,
      rawHeaders,
      text = "",
      whole,
    } = await t.client.send(requestOf(fields, headers, signal));
    const streamed = status === 200 && "stream" in fields && fields.stream === true;
    if (!whole)
      throw new Expectation(
        "an answer that comes to its end",
        `${status} ${text}, and then the connection broke`,
      );
    const [events, json] = [streamed ? parseEvents(text).events : [], parseJson(text)];
    const parts = streamed
      ? events.map((event) => event.json).filter((each) => isObject(each) && !("error" in each))
      : [json];
    return {
      status,
      headers: got,
      streamed,
      parts,
      shown: `${rawHeaders.join("\n")}\n${text}`,
      data: events.map(({ data }) => data),
      error: first(
        streamed
          ? events.map((event) => event.json).find((each) => isObject(each) && "error" in each)
          : json,
        "error",
      ),
      content: saying(parts, streamed, "content"),
    };
  };
  return {
    t,
    provider,
    models,
    model,
    second,
    ask,
    askBoth: async (fields = {}) => Promise.all([ask(fields), ask({ ...fields, stream: true })]),
    open: (fields = {}, headers = {}) => t.client.open(requestOf(fields, headers)),
    calls: (name = model) => provider.calls(name),
    call: (after = 0, name = model) => provider.call(name, after, PATIENT_MS),
  };
}

const saying = (parts: readonly unknown[], streamed: boolean, field: string): string =>
  parts
    .flatMap((part) => find(part, `choices[].${streamed ? "delta" : "message"}.${field}`))
    .map(({ value }) => value ?? "")
    .join("");

// What a reply must be.
export function expectComplete(reply: Reply, content = TEXT): void {
  expect(reply.status === 200, "status 200", `${reply.status} ${reply.shown}`);
  expect(reply.content === content, JSON.stringify(content.slice(0, 100)), reply.content);
  if (!reply.streamed) return;
  expect(reply.error === undefined, "no error event", reply.error);
  expect(
    reply.data.at(-1) === "[DONE]" && reply.data.indexOf("[DONE]") === reply.data.length - 1,
    "[DONE] as the last event",
    reply.shown,
  );
  expect(
    reply.parts.length === reply.data.length - 1,
    "chunks, and nothing else, before [DONE]",
    reply.shown,
  );
}
/** A stream that was cut off after this text. */
export function expectBroken(reply: Reply, content: string): void {
  expect(
    reply.status === 200 && reply.content === content,
    JSON.stringify(content),
    `${reply.status} ${reply.shown}`,
  );
  expectError(reply);
  expect(!reply.data.includes("[DONE]"), "no [DONE], which means success", reply.shown);
  expect(
    reply.parts.length === reply.data.length - 1 && isObject(parseJson(reply.data.at(-1))),
    "one error event, and nothing after it",
    reply.shown,
  );
}
export function expectRefusal(reply: Reply, status: number): void {
  expect(reply.status === status, `status ${status}`, `${reply.status} ${reply.shown}`);
  expectError(reply);
}
const expectError = ({ error, shown }: Reply): void => {
  for (const [path, expected, holds] of ERROR)
    for (const found of find({ error }, path))
      expect(holds(found.value, found), `${path}, ${expected}`, shown);
  expect(isObject(error), "an error", shown);
};
export function expectServedBy(reply: Reply, model: string): void {
  for (const part of reply.parts)
    expect(first(part, "model") === model, `model ${model}`, first(part, "model"));
}
const callsOf = ({ parts, streamed }: Reply): unknown[] => {
  if (!streamed) return list(first(parts[0], "choices[].message.tool_calls")).slice();
  const calls: { id: unknown; type: unknown; function: { name: unknown; arguments: string } }[] =
    [];
  for (const { value } of parts.flatMap((part) => find(part, "choices[].delta.tool_calls[]"))) {
    const [index, text] = [
      Number(first(value, "index")),
      String(first(value, "function.arguments") ?? ""),
    ];
    calls[index] ??= {
      id: first(value, "id"),
      type: first(value, "type"),
      function: { name: first(value, "function.name"), arguments: "" },
    };
    calls[index].function.arguments += text;
  }
  return calls;
};
export const usageOf = ({ parts }: Reply): unknown =>
  parts.map((part) => first(part, "usage")).findLast(isObject);
export const expectUsage = (reply: Reply): void => {
  expectComplete(reply);
  const [usage, names] = [
    usageOf(reply),
    ["prompt_tokens", "completion_tokens", "total_tokens"] as const,
  ];
  expect(
    names.every((name) => first(usage, name) === USAGE[name]),
    JSON.stringify(USAGE),
    usage,
  );
};
export const WITH_USAGE = { stream: true, stream_options: { include_usage: true } };

const leaving: Check[] = [
  robust({
    id: "leaving.stream",
    source: 'contract.md "Clients that leave"',
    title: "a client leaves in the middle of a stream: the provider's connection is closed",
    behaviours: "silent-after-1",
    run: async ({ open, call }) => {
      const stream = await open({ stream: true });
      await stream.until((text) => text.includes(PIECES[0]!), "the first delta");
      stream.leave();
      await soon(
        (await call()).left,
        "the provider's connection to be closed after the client had left",
      );
    },
  }),
  ...(
    [
      ["whole", false, "of a whole reply"],
      ["silence", true, "of a stream before its first delta"],
    ] as const
  ).map(([id, stream, what]) =>
    robust({
      id: `leaving.${id}`,
      source: 'contract.md "Clients that leave"',
      title: `a client leaves while it waits ${what}: the provider's connection is closed`,
      behaviours: "silent",
      run: async ({ ask, call }) => {
        const leave = new AbortController();
        ask({ stream }, {}, leave.signal).catch(() => undefined);
        const { left } = await call();
        leave.abort();
        await soon(left, "the provider's connection to be closed after the client had left");
      },
    }),
  ),
];

const usage: Check[] = [
  robust({
    id: "usage.asked",
    source: 'wire.md "Usage in streams"',
    title: "of a stream, usage is asked for although the client did not ask",
    behaviours: "good",
    run: async ({ ask, call }) => {
      expectComplete(await ask({ stream: true }));
      const asked = first((await call()).body, "stream_options.include_usage");
      expect(
        asked === true,
        "stream_options.include_usage true in the request to the provider",
        asked,
      );
    },
  }),
  robust({
    id: "usage.hidden",
    source: 'wire.md "Usage in streams"',
    title: "usage that the client did not ask for is not shown",
    behaviours: "good",
    run: async ({ ask }) => {
      const reply = await ask({ stream: true });
      expectComplete(reply);
      expect(usageOf(reply) === undefined, "no usage", usageOf(reply));
    },
  }),
  ...(
    [
      ["good", "a chunk of its own"],
      ["usage-null", "a chunk of its own, null before and after it"],
      ["usage-with-finish", "the last chunk with a choice"],
      ["usage-in-choice", "a choice"],
      ["usage-everywhere", "every chunk, each time more"],
      ["usage-digits", "a chunk of its own, as strings of digits"],
    ] as const
  ).map(([behaviour, where]) =>
    robust({
      id: `usage.figures.${behaviour}`,
      source: 'wire.md "Token counts"',
      title: `the provider's figures are shown when it sends them in ${where}`,
      behaviours: behaviour,
      run: async ({ ask }) => {
        expectUsage(await ask(WITH_USAGE));
      },
    }),
  ),
  robust({
    id: "usage.whole",
    source: 'wire.md "Token counts"',
    title: "the provider's figures are shown in a whole reply",
    behaviours: "good",
    run: async ({ ask }) => expectUsage(await ask()),
  }),
  ...(
    [
      ["never", "no usage"],
      ["nonsense", "usage that is nonsense"],
      ["empty", "usage without figures beside its text"],
    ] as const
  ).map(([id, what]) =>
    robust({
      id: `usage.${id}`,
      source: 'wire.md "Token counts"',
      title: `a provider that sends ${what}: there are figures all the same`,
      behaviours: `usage-${id}`,
      run: async ({ ask }) => {
        for (const reply of [await ask(), await ask(WITH_USAGE)]) {
          expectComplete(reply);
          const figures = ["prompt_tokens", "completion_tokens"].map((name) =>
            first(usageOf(reply), name),
          );
          expect(
            figures.every((figure) => isCount(figure) && figure > 0),
            "estimates",
            usageOf(reply),
          );
        }
      },
    }),
  ),
  robust({
    id: "usage.reasoning",
    source: 'wire.md "Token counts"',
    title: "tokens of thinking are within completion_tokens, and not added to them",
    behaviours: "reasoning",
    reasoning: true,
    run: async ({ ask }) => {
      for (const reply of [await ask(), await ask(WITH_USAGE)]) {
        expectUsage(reply);
        const tokens = first(usageOf(reply), "completion_tokens_details.reasoning_tokens");
        expect(tokens === undefined || tokens === 3, "3 reasoning_tokens", tokens);
      }
    },
  }),
];

const FALLS: readonly (readonly [behaviour: string, what: string, at?: Lab["at"]])[] = [
  ...[401, 402, 403, 404, 408, 429, 500, 503, 529].map(
    (status) => [`status-${status}`, `status ${status}`] as const,
  ),
  ["error-in-200", "an error inside a 200"],
  ["error-first", "an error as the first event of a stream"],
  ["error-after-role", "an error after a chunk that has nothing but the role"],
  ["nothing", "an empty body"],
  ["error-with-usage", "an error that comes with usage"],
  ["error-object", "an error whose code is an object"],
  ["call-failed", "a failed tool call as status 400"],
  ["call-failed-in-stream", "a failed tool call as an event of a stream"],
  ["only-done", "a stream that is nothing but [DONE]"],
  ["not-json", "what is not JSON"],
  ["html", "a page instead of a reply"],
  ["redirect-302", "a redirect"],
  ["gzip", "a compressed reply although identity was asked for"],
  ["too-short", "a body shorter than its Content-Length"],
  ["reset", "a connection that breaks before the answer"],
  ["cut-after-0", "a connection that breaks before the first delta"],
  ["silent", "no answer in time", "impatient"],
  ["silent-after-0", "no first delta in time", "impatient"],
  ["good", "nobody at the provider's address", "gone"],
];

const routing: Check[] = [
  ...FALLS.map(([behaviour, what, at]) => {
    const title = `${what}: an alias answers by its next model, and nothing of it is seen`;
    return robust({
      id: `fallback.${at === "gone" ? "gone" : behaviour}`,
      source: 'contract.md "Attempts"',
      title,
      behaviours: `${behaviour} in-one`,
      ...(at && { at }),
      run: async ({ askBoth, second }) => {
        for (const reply of await askBoth()) {
          expectComplete(reply);
          expectServedBy(reply, second);
        }
      },
    });
  }),
  ...(
    [
      ["status-500", "500"],
      ["status-401", "401: it is not the client's key that was refused"],
      ["status-429", "429: it is not the client's limit that was reached"],
      ["error-first", "an error inside a 200"],
      ["redirect-307", "a redirect"],
      ["reset", "a broken connection"],
    ] as const
  ).map(([behaviour, what]) =>
    robust({
      id: `canonical.${behaviour}`,
      source: 'contract.md "Attempts"',
      title: `a canonical name fails with 503, whole and as a stream, when its provider gives ${what}`,
      behaviours: behaviour,
      run: async ({ askBoth }) => {
        for (const reply of await askBoth()) expectRefusal(reply, 503);
      },
    }),
  ),
  robust({
    id: "no-splice",
    source: 'contract.md "Commit point"',
    title: "after the first delta nothing of another model follows: an error event does",
    behaviours: "cut-after-2 good",
    run: async ({ ask, calls, second }) => {
      expectBroken(await ask({ stream: true }), PIECES.slice(0, 2).join(""));
      expect(calls(second).length === 0, "no request for another model", calls(second).length);
    },
  }),
  robust({
    id: "model.canonical",
    source: 'contract.md "Replies"',
    title: "model is the name that was asked for, not the provider's, in every chunk",
    behaviours: "good",
    run: async ({ askBoth, model }) => {
      for (const reply of await askBoth()) expectServedBy(reply, model);
    },
  }),
  robust({
    id: "model.fallback",
    source: 'contract.md "Replies"',
    title: "after a fallback model is the name of the one that served, in every chunk",
    behaviours: "status-500 good",
    run: async ({ askBoth, second }) => {
      for (const reply of await askBoth()) expectServedBy(reply, second);
    },
  }),
  robust({
    id: "client-fault.once",
    source: 'contract.md "Attempts"',
    title: "a provider's 400 is the client's fault: no second attempt, no other model",
    behaviours: "status-400 good",
    run: async ({ ask, calls, second }) => {
      expectRefusal(await ask(), 400);
      expect(calls().length === 1, "one request to the provider", calls().length);
      expect(calls(second).length === 0, "none to the next model", calls(second).length);
    },
  }),
  robust({
    id: "client-fault.breaker",
    source: 'contract.md "Breaker"',
    title: "many bad requests do not shut out a good one",
    behaviours: "picky",
    run: async ({ ask }) => {
      for (let i = 0; i < 10; i += 1) expectRefusal(await ask({ messages: question("bad") }), 400);
      expectComplete(await ask());
    },
  }),
  ...[429, 503].map((status) =>
    robust({
      id: `retry.${status}`,
      source: 'contract.md "Attempts"',
      title: `a passing ${status} is hidden by another attempt`,
      behaviours: `once-${status}`,
      run: async ({ ask, calls }) => {
        expectComplete(await ask());
        expect(calls().length === 2, "two requests to the provider", calls().length);
      },
    }),
  ),
  robust({
    id: "overloaded",
    source: 'wire.md "Rate limit headers"',
    title: "a provider's Retry-After is passed on, the same in header and message",
    behaviours: "overloaded-7",
    run: async ({ ask }) => {
      const reply = await ask();
      expectRefusal(reply, 503);
      expect(reply.headers["retry-after"] === "7", "Retry-After: 7", reply.headers["retry-after"]);
      expect(
        /\b7 s/.test(String(first(reply.error, "message"))),
        "7 seconds in the message",
        reply.error,
      );
    },
  }),
  robust({
    id: "breaker.opens",
    source: 'contract.md "Breaker"',
    title: "a provider that fails again and again is left alone",
    behaviours: "status-500",
    run: async (scene) => untilOpen(scene),
  }),
  robust({
    id: "breaker.one-probe",
    source: 'contract.md "Breaker"',
    title: "after a while it is tried by one request at a time",
    behaviours: "status-500",
    run: async (scene) => {
      const { provider, model, ask, calls, call } = scene;
      await untilOpen(scene);
      provider.turn(model, "held");
      const before = calls().length;
      const { probe } = await untilThrough(scene, before);
      const others = await Promise.all(
        Array.from({ length: 8 }, () => ask({ messages: question("More?") })),
      );
      for (const reply of others) expectRefusal(reply, 503);
      expect(
        calls().length === before + 1,
        "one request on its way to the provider",
        calls().length - before,
      );
      provider.turn(model, "good");
      expectComplete(await probe);
      await (await call(before)).finished;
    },
  }),
  robust({
    id: "breaker.closes",
    source: 'contract.md "Breaker"',
    title: "one good answer lets all requests through again",
    behaviours: "status-500",
    run: async (scene) => {
      const { provider, model, ask, calls } = scene;
      await untilOpen(scene);
      provider.turn(model, "good");
      expectComplete(await (await untilThrough(scene, calls().length)).probe);
      for (const reply of await Promise.all(
        Array.from({ length: 4 }, () => ask({ messages: question("All?") })),
      ))
        expectComplete(reply);
    },
  }),
  robust({
    id: "keep-alive.reuse",
    source: 'routing.md "Upstream connections"',
    title: "the next request takes the connection of the one before",
    behaviours: "good",
    at: "lone",
    when: "alone",
    run: async ({ ask, call }) => {
      for (let i = 0; i < 2; i += 1) {
        expectComplete(await ask());
        await (await call(i)).finished;
      }
      const [one, two] = [await call(0), await call(1)];
      expect(
        two.connection === one.connection,
        "one connection for both",
        `connections ${one.connection} and ${two.connection}`,
      );
    },
  }),
  robust({
    id: "keep-alive.stale",
    source: 'routing.md "Upstream connections"',
    title: "a provider closes a kept connection when it is used: the request goes out on another",
    behaviours: "closes-when-reused",
    at: "lone",
    when: "alone",
    run: async ({ ask }) => {
      for (let i = 0; i < 3; i += 1) expectComplete(await ask());
    },
  }),
  robust({
    id: "redirect",
    source: 'wire.md "Calls"',
    title: "a redirect is not followed",
    behaviours: "redirect-308",
    run: async ({ ask, calls }) => {
      expectRefusal(await ask(), 503);
      expect(
        calls(ELSEWHERE).length === 0,
        "no request to where it leads",
        calls(ELSEWHERE).length,
      );
    },
  }),
];

/** Fails until requests do not reach the provider any more. */
async function untilOpen({ ask, calls }: Scene): Promise<void> {
  for (let i = 0; i < 20; i += 1) {
    const before = calls().length;
    expectRefusal(await ask(), 503);
    if (calls().length === before) return;
  }
  throw new Expectation(
    "a request that does not reach the provider after 20 failures",
    `${calls().length} requests`,
  );
}

/** Asks until a request reaches the provider again; gives what becomes of it. */
async function untilThrough(
  { ask, calls, call }: Scene,
  before: number,
): Promise<{ readonly probe: Promise<Reply> }> {
  const through = call(before);
  through.catch(() => undefined); // the loop below has a deadline of its own
  for (const end = performance.now() + SOON_MS; performance.now() < end; ) {
    const probe = ask();
    await Promise.race([probe, through]);
    if (calls().length > before) return { probe };
  }
  throw new Expectation(`a request that reaches the provider within ${SOON_MS} ms`, "none");
}

const streamOf = (id: string, source: string, title: string, behaviour: string): Check =>
  robust({
    id,
    source,
    title,
    behaviours: behaviour,
    run: async ({ ask }) => expectComplete(await ask({ stream: true })),
  });

interface Cut extends Pick<Stated, "id" | "source" | "title" | "at"> {
  /** What the provider does after three deltas. */
  readonly behaviour: string;
}
const cutOf = ({ behaviour, ...stated }: Cut): Check =>
  robust({
    ...stated,
    behaviours: `${behaviour}-3`,
    run: async ({ ask }) => {
      expectBroken(
        await soon(ask({ stream: true }), "the end of a stream that was cut"),
        PIECES.slice(0, 3).join(""),
      );
    },
  });

const streams: Check[] = [
  cutOf({
    id: "cut.reset",
    source: 'contract.md "Completeness"',
    title: "a connection that breaks after some deltas: an error event, no [DONE]",
    behaviour: "cut-after",
  }),
  cutOf({
    id: "cut.end",
    source: 'contract.md "Completeness"',
    title: "a stream that ends without a finish_reason: an error event, no [DONE]",
    behaviour: "ends-after",
  }),
  cutOf({
    id: "cut.done",
    source: 'contract.md "Completeness"',
    title: "[DONE] without a finish_reason: an error event, no [DONE]",
    behaviour: "done-after",
  }),
  cutOf({
    id: "cut.error",
    source: 'contract.md "Completeness"',
    title: "an error event after some deltas: an error event, no [DONE]",
    behaviour: "error-after",
  }),
  cutOf({
    id: "cut.error-with-usage",
    source: 'wire.md "Errors in streams"',
    title: "an error event that carries usage, after some deltas: an error event, no [DONE]",
    behaviour: "error-with-usage-after",
  }),
  cutOf({
    id: "cut.silence",
    source: 'routing.md "Deadlines"',
    title: "a stream that falls silent ends within its idle deadline: an error event, no [DONE]",
    behaviour: "silent-after",
    at: "impatient",
  }),
  robust({
    id: "first-token",
    source: 'routing.md "Deadlines"',
    title: "a first delta that never comes ends at its own deadline, with a status of its own",
    behaviours: "silent",
    at: "impatient",
    run: async ({ askBoth }) => {
      for (const reply of await soon(askBoth(), "the deadline for a first delta"))
        expectRefusal(reply, 503);
    },
  }),
  robust({
    id: "long-stream",
    source: 'routing.md "Deadlines"',
    title: "a stream that takes longer than these deadlines, but is never silent, is not cut",
    behaviours: "trickle-90",
    at: "impatient",
    run: async ({ ask }) => {
      expectComplete(await ask({ stream: true }));
    },
  }),
  robust({
    id: "passes-on",
    source: 'wire.md "Framing"',
    title: "a delta is passed on at once, not when more has come",
    behaviours: "silent-after-1",
    run: async ({ open }) => {
      const stream = await soon(
        open({ stream: true }),
        "the head of a stream whose first delta has come",
      );
      await soon(
        stream.until((text) => text.includes(PIECES[0]!), "the first delta"),
        "the first delta, before the provider sends another",
      );
      stream.leave();
    },
  }),
  streamOf(
    "finished.no-done",
    'contract.md "Completeness"',
    "a finish_reason without [DONE] is a complete reply",
    "no-done",
  ),
  streamOf(
    "finished.after-done",
    'contract.md "Completeness"',
    "what a provider sends after [DONE] is not shown, nor another [DONE]",
    "after-done",
  ),
  streamOf(
    "finished.stays-open",
    'contract.md "Completeness"',
    "a provider that does not close after [DONE]: the stream ends all the same",
    "stays-open",
  ),
  streamOf(
    "finished.again",
    'contract.md "Completeness"',
    "a finish_reason that comes twice is shown once",
    "finish-again",
  ),
  streamOf(
    "bytes.one-by-one",
    'wire.md "Calls"',
    "single bytes, cuts within characters among them, make the same reply",
    "byte-by-byte",
  ),
  streamOf(
    "bytes.sevens",
    'wire.md "Calls"',
    "pieces of seven bytes make the same reply",
    "in-sevens",
  ),
  ...(
    [
      ["crlf", "lines that end with CRLF"],
      ["cr", "lines that end with CR"],
      ["comments", "comments between events, and within"],
      ["no-space", "no space after `data:`"],
      ["fields", "the fields `event`, `id` and `retry`"],
      ["many-lines", "data of several lines"],
      ["byte-order-mark", "a byte order mark"],
      ["no-blank-line", "no blank line after the last event"],
      ["charset", "a media type in other letters, with a parameter"],
      ["early-hints", "an informational answer before the real one"],
      ["until-close", "a body that ends with its connection"],
    ] as const
  ).map(([behaviour, what]) =>
    streamOf(
      `framing.${behaviour}`,
      'wire.md "Calls"',
      `${what}: read right, and only \`data: {json}\` is written`,
      behaviour,
    ),
  ),
  robust({
    id: "framing.long-line",
    source: 'wire.md "Calls"',
    title: "a line of a megabyte is read right, whole and as a stream",
    behaviours: "long-line",
    run: async ({ askBoth }) => {
      for (const reply of await askBoth({ messages: question("long 600000") }))
        expectComplete(reply, "é".repeat(600_000));
    },
  }),
  robust({
    id: "framing.endless-line",
    source: 'api.md "Sizes"',
    title: "a line without end is an error, and the gateway lives on",
    behaviours: "endless-line",
    run: async ({ t, ask, call }) => {
      expectBroken(await ask({ stream: true }), TEXT);
      await soon((await call()).left, "the connection to be closed on which the line came");
      expect(
        (await t.client.send({ method: "GET", path: "/healthz" })).status === 200,
        "200 from /healthz",
        "another status",
      );
    },
  }),
  robust({
    id: "backpressure",
    source: 'wire.md "Calls"',
    title:
      "a client that does not read holds up the provider, and takes nothing with it when it leaves",
    behaviours: "flood",
    run: async ({ open, call }) => {
      const stream = await open({ stream: true });
      stream.pause();
      const { stalled, finished, left, sent } = await call();
      await within(Promise.race([stalled, finished]), "the provider to be held up", 10_000);
      expect(
        sent() < FLOOD_BYTES,
        `less than ${FLOOD_BYTES} bytes taken from the provider`,
        sent(),
      );
      stream.leave();
      await soon(left, "the provider's connection to be closed after the client had left");
    },
  }),
  streamOf(
    "chunks.empty-choices",
    'wire.md "Chunks"',
    "chunks with `choices: []` between the others are tolerated, and not passed on",
    "empty-choices",
  ),
  streamOf(
    "chunks.empty-deltas",
    'wire.md "Chunks"',
    "deltas with nothing in them are tolerated",
    "empty-deltas",
  ),
  robust({
    id: "chunks.role-once",
    source: 'wire.md "Chunks"',
    title: "a role in every chunk is shown once",
    behaviours: "role-again",
    run: async ({ ask }) => {
      const reply = await ask({ stream: true });
      expectComplete(reply);
      const roles = reply.parts
        .flatMap((part) => find(part, "choices[].delta.role"))
        .filter(({ value }) => value !== undefined);
      expect(roles.length === 1, "one role", roles.length);
    },
  }),
  robust({
    id: "whole-is-stream.text",
    source: 'contract.md "Stream chunks"',
    title: "concatenated deltas are the whole message: text",
    behaviours: "good",
    run: async ({ askBoth }) => {
      const [whole, streamed] = await askBoth();
      expect(
        isText(whole.content) && whole.content === streamed.content,
        whole.content,
        streamed.content,
      );
    },
  }),
  robust({
    id: "whole-is-stream.thinking",
    source: 'contract.md "Stream chunks"',
    title: "concatenated deltas are the whole message: thinking",
    behaviours: "reasoning",
    reasoning: true,
    run: async ({ askBoth }) => {
      const [whole, streamed] = await askBoth({ thinking: { type: "enabled" } });
      const texts = [whole, streamed].map(({ parts, streamed: is }) =>
        saying(parts, is, "reasoning_content"),
      );
      expect(
        texts.every((text) => text === THOUGHTS.join("")),
        THOUGHTS.join(""),
        texts,
      );
    },
  }),
  ...(
    [
      ["tools", "in pieces"],
      ["tools-whole", "in one delta"],
      ["tools-in-turn", "in turn"],
      ["tools-all-zero", "all with index 0"],
      ["tools-no-index", "without an index"],
      ["tools-repeated", "with id and name in every piece"],
      ["tools-far", "with indexes that leave some out"],
    ] as const
  ).map(([behaviour, how]) =>
    robust({
      id: `calls.${behaviour}`,
      source: 'wire.md "Chunks"',
      title: `two tool calls that come ${how} reassemble byte for byte, and as in a whole reply`,
      behaviours: behaviour,
      run: async ({ askBoth }) => {
        for (const reply of await askBoth({ ...TOOLS, tool_choice: "auto" })) {
          expect(reply.status === 200, "status 200", reply.shown);
          expect(
            JSON.stringify(callsOf(reply)) === JSON.stringify(CALLS),
            JSON.stringify(CALLS),
            callsOf(reply),
          );
        }
      },
    }),
  ),
];

const SENT = {
  temperature: 0.5,
  top_p: 0.25,
  frequency_penalty: 0.5,
  presence_penalty: -0.5,
  stop: ["zebra"],
  seed: 7,
  max_tokens: 99,
  logprobs: true,
  top_logprobs: 2,
  response_format: { type: "json_object" },
  parallel_tool_calls: false,
  ...TOOLS,
  tool_choice: "auto",
  messages: question("JSON, please: 世界 🎉\u0000"),
};
/** Behaviours that say what a client must not see. */
const TALKATIVE =
  "status-401 status-500 overloaded-9 error-in-200 error-after-1 html redirect-302 error-object call-failed call-failed-in-stream error-with-usage-after-1 filtered good";
const bodyOf = async ({ call }: Scene, after = 0): Promise<Readonly<Record<string, unknown>>> =>
  (await call(after)).body;

const edges: Check[] = [
  robust({
    id: "fields.forwarded",
    source: 'fields.md "The body"',
    title: "every field that was accepted reaches the provider as it was",
    behaviours: "good",
    run: async (scene) => {
      expectComplete(await scene.ask(SENT));
      const body = await bodyOf(scene);
      for (const [name, value] of Object.entries(SENT))
        expect(
          JSON.stringify(body[name]) === JSON.stringify(value),
          `${name} ${JSON.stringify(value)}`,
          body[name],
        );
    },
  }),
  robust({
    id: "fields.nulls",
    source: 'wire.md "Request envelope"',
    title: "fields that are null reach the provider no more than those that are absent",
    behaviours: "good",
    run: async (scene) => {
      const names = [
        "stop",
        "tools",
        "stream_options",
        "tool_choice",
        "response_format",
        "logprobs",
        "max_tokens",
        "temperature",
      ];
      expectComplete(
        await scene.ask({
          stream: false,
          ...Object.fromEntries(names.map((name) => [name, null])),
        }),
      );
      expectComplete(await scene.ask({ messages: question("Say something.") }));
      const [nulls, absent] = [await bodyOf(scene, 0), await bodyOf(scene, 1)].map((body) =>
        JSON.stringify(body),
      );
      expect(nulls === absent, absent!, nulls);
    },
  }),
  robust({
    id: "fields.large",
    source: 'contract.md "Request fields"',
    title: "a body of a megabyte reaches the provider whole",
    behaviours: "good",
    run: async (scene) => {
      const messages = question("Grüße 🎉 ".repeat(70_000));
      expectComplete(await scene.ask({ messages }));
      const got = JSON.stringify((await bodyOf(scene))["messages"]);
      expect(got === JSON.stringify(messages), "the same messages", `${got.length} characters`);
    },
  }),
  robust({
    id: "body.too-large",
    source: 'contract.md "Order of checks"',
    title: "a body that is far too large is refused before the provider is asked",
    behaviours: "good",
    run: async ({ ask, calls }) => {
      expectRefusal(await ask({ messages: question("x".repeat(11 * 1024 * 1024)) }), 413);
      expect(calls().length === 0, "no request to the provider", calls().length);
    },
  }),
  robust({
    id: "thinking.switched",
    source: 'wire.md "Thinking"',
    title: "thinking is switched on at the provider if it was asked for, and else off",
    behaviours: "reasoning",
    reasoning: true,
    run: async (scene) => {
      await scene.ask({ thinking: { type: "enabled" } });
      await scene.ask();
      const got = [await bodyOf(scene, 0), await bodyOf(scene, 1)].map((body) =>
        first(body, "thinking.type"),
      );
      expect(got[0] === "enabled" && got[1] === "disabled", "enabled, then disabled", got);
    },
  }),
  robust({
    id: "limit.exact",
    source: 'contract.md "Limits"',
    title:
      "of 200 requests at once exactly as many as the limit are admitted; the others are told when to come",
    behaviours: "good",
    run: async ({ t, ask }) => {
      const key = { authorization: `Bearer ${BURST.key}` };
      const seconds = ({ headers }: Reply): number => Number(headers["retry-after"]);
      const before = await ask({}, key);
      // Another run has just been here.
      if (before.status === 429 && t.options.pause) await t.options.pause(seconds(before));
      const replies = await Promise.all(
        Array.from({ length: 200 }, () => ask({ messages: question("At once.") }, key)),
      );
      const count = (status: number): number =>
        replies.filter((reply) => reply.status === status).length;
      const room = before.status === 200 ? BURST.rpm - 1 : BURST.rpm;
      expect(
        count(200) === room && count(429) === 200 - room,
        `${room} answers and ${200 - room} refusals`,
        `${count(200)} and ${count(429)}`,
      );
      for (const reply of replies.filter(({ status }) => status === 429)) {
        const [wait, words] = [seconds(reply), String(first(reply.error, "message"))];
        expect(
          isCount(wait) && wait > 0 && words.includes(` ${wait} s`),
          "Retry-After, and the same number in the message",
          reply.shown,
        );
      }
    },
  }),
  robust({
    id: "ids.shared",
    source: 'contract.md "Request ids"',
    title:
      "twenty requests with one X-Request-Id are twenty requests: each has an answer and an id of its own",
    behaviours: "good",
    run: async ({ ask, calls }) => {
      const replies = await Promise.all(Array.from({ length: 20 }, () => ask()));
      for (const reply of replies) expectComplete(reply);
      const ids = new Set(replies.map(({ parts }) => first(parts[0], "id")));
      expect(
        ids.size === 20 && calls().length === 20,
        "20 ids and 20 requests to the provider",
        `${ids.size} and ${calls().length}`,
      );
    },
  }),
  robust({
    id: "healthz.busy",
    source: 'contract.md "Endpoints"',
    title: "/healthz answers while every provider is silent",
    behaviours: "silent",
    run: async ({ t, ask, call }) => {
      const leaving = Array.from({ length: 20 }, () => new AbortController());
      for (const { signal } of leaving) ask({}, {}, signal).catch(() => undefined);
      await call(leaving.length - 1);
      const { status } = await soon(
        t.client.send({
          method: "GET",
          path: "/healthz",
          headers: { "x-request-id": "robust.healthz.busy" },
        }),
        "/healthz",
      );
      for (const each of leaving) each.abort();
      expect(status === 200, "status 200", status);
    },
  }),
  robust({
    id: "secrets",
    source: 'wire.md "Error body"',
    title:
      "nothing of a provider shows in what a client gets: its key, its address, its words, its names",
    behaviours: TALKATIVE,
    run: async ({ provider, models, askBoth }) => {
      const replies = await Promise.all(models.map((model) => askBoth({ model })));
      const address = provider.url.replace("http://", "");
      for (const { shown } of replies.flat())
        expect(!CANARY.test(shown) && !shown.includes(address), "nothing of the provider", shown);
    },
  }),
  robust({
    id: "key.sent",
    source: 'wire.md "Calls"',
    title: "the provider is sent its own key, and not the client's",
    behaviours: "good",
    run: async ({ t, ask, call }) => {
      expectComplete(await ask());
      const sent = JSON.stringify((await call()).headers);
      expect(CANARY.test(sent) && !sent.includes(t.options.key), "the provider's key alone", sent);
    },
  }),
  robust({
    id: "identity",
    source: 'wire.md "Calls"',
    title: "identity is the encoding that is asked for",
    behaviours: "good",
    run: async ({ ask, call }) => {
      expectComplete(await ask({}, { "accept-encoding": "gzip, deflate" }));
      const encoding = (await call()).headers["accept-encoding"];
      expect(
        encoding === undefined || encoding === "identity",
        "Accept-Encoding: identity",
        encoding,
      );
    },
  }),
  robust({
    id: "length",
    source: 'wire.md "Calls"',
    title: "Content-Length is that of the gateway's own reply",
    behaviours: "good",
    run: async ({ ask }) => {
      const reply = await ask();
      const [length, body] = [
        reply.headers["content-length"],
        reply.shown.slice(reply.shown.lastIndexOf("\n") + 1),
      ];
      expect(
        length === undefined || Number(length) === Buffer.byteLength(body),
        String(Buffer.byteLength(body)),
        length,
      );
    },
  }),
  robust({
    id: "pipelined",
    source: 'contract.md "Request ids"',
    title:
      "requests that are sent at once are answered in their order, each with its id, whatever follows them",
    behaviours: "good",
    run: async ({ t, model }) => {
      const body = JSON.stringify({ model, messages: question("Say something.") });
      const length = `Content-Length: ${Buffer.byteLength(body)}`;
      const head = [
        `POST ${CHAT} HTTP/1.1`,
        "Host: gateway",
        `Authorization: Bearer ${t.options.key}`,
        "Content-Type: application/json",
        length,
      ];
      const requests = ["robust.one", "robust.two"].map((id) =>
        [...head, `X-Request-Id: ${id}`, "", body].join("\r\n"),
      );
      const answer = await t.client.raw(`${requests.join("")}this is no request\r\n\r\n`);
      const got = [...answer.matchAll(/HTTP\/1.1 (\d+)|x-request-id: *(\S+)/gi)]
        .map(([, status, id]) => status ?? id)
        .join(" ");
      const expected = "200 robust.one 200 robust.two"; // and an answer to what is no request, or the end
      expect(got === expected || /^ 400 \S+$/.test(got.replace(expected, "")), expected, got);
    },
  }),
  robust({
    id: "headers.too-large",
    source: 'contract.md "Request ids"',
    title: "headers that are too large are answered with 431 and an id",
    behaviours: "good",
    run: async ({ t }) => {
      const answer = parseRaw(
        await t.client.raw(
          `GET /healthz HTTP/1.1\r\nHost: gateway\r\nX-Large: ${"x".repeat(20_000)}\r\n\r\n`,
        ),
      );
      const [inBody, inHeader] = [
        first(parseJson(answer.text), "error.request_id"),
        answer.headers["x-request-id"],
      ];
      const got = `${answer.status} ${inHeader} ${inBody}`;
      expect(
        answer.status === 431 && isText(inHeader) && inBody === inHeader,
        "431 with X-Request-Id, the same in error.request_id",
        got,
      );
    },
  }),
];

export const robustChecks: readonly Check[] = [
  ...leaving,
  ...usage,
  ...routing,
  ...streams,
  ...edges,
];
