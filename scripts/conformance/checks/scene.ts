// What the checks of the level `robust` work with: the gateway seen from both sides, as its client
// and as its provider, which fails in every way that a provider can (provider.ts). Each check has
// models of its own there, named after what they do.

import { within, type Opened } from "../client.ts";
import type { Exchange } from "../exchange.ts";
import { PIECES, TEXT, type Call, type Provider } from "../provider.ts";
import { aliasOf, modelOf, type Lab } from "../ready.ts";
import {
  ERROR,
  expect,
  expectFields,
  expectSame,
  first,
  isCount,
  isObject,
  type Fields,
  type Json,
} from "../shapes.ts";
import { question, type Check, type Headers, type Tester } from "../suite.ts";
import { checkOf, headingOf, type Stated } from "./kit.ts";

export interface Scene {
  readonly t: Tester;
  readonly provider: Provider;
  /** Its models at the provider; the first of them; the one to which a failure of that leads. */
  readonly models: readonly string[];
  readonly model: string;
  readonly second: string;
  /** Asks the alias, or the model if there is no other. */
  ask(fields?: object, headers?: Headers, signal?: AbortSignal): Promise<Exchange>;
  /** Whole and as a stream, at the same time. */
  askBoth(fields?: object): Promise<readonly [Exchange, Exchange]>;
  /** A stream of which the first delta has come. */
  begun(headers?: Headers): Promise<Opened>;
  /** What came to the provider for a model; the first, if none is named. */
  calls(model?: string): readonly Call[];
  /** The call after so many others, waited for. */
  call(after?: number): Promise<Call>;
}

/** For what should happen at once. */
export const SOON_MS = 2_500;
/** For what only takes its time where a machine is busy. */
export const PATIENT_MS = 10_000;
export const soon = <T>(promise: Promise<T>, what: string): Promise<T> =>
  within(promise, what, SOON_MS);

/** What the checks need of the gateway's configuration, filled as they are stated. */
export const LABS: Lab[] = [];

/**
 * Checks by their headings, of which the words are the models that the check has at the provider:
 * what each does, and `@` and a place for the first of them (ready.ts).
 */
export const robust = (source: string, entries: Stated<(scene: Scene) => unknown>): Check[] =>
  Object.entries(entries).map(([heading, run]) => {
    const { id, words } = headingOf(heading);
    const [first = "good", ...others] = words.filter((word) => word !== "alone");
    const [behaviour = "", at] = first.split("@");
    const lab: Lab = { id, behaviours: [behaviour, ...others], at };
    LABS.push(lab);
    const check = checkOf("robust", source, heading, (t) => run(sceneOf(t, lab)));
    return { ...check, needs: others.length > 0 ? ["provider", "alias"] : ["provider"] };
  });

function sceneOf(t: Tester, lab: Lab): Scene {
  const provider = t.options.provider!;
  const models = lab.behaviours.map((_, index) => modelOf(lab, index));
  const [model = "", second = model] = models;
  const usual = {
    model: second === model ? model : aliasOf(lab),
    messages: question("Say something."),
  };
  const ask: Scene["ask"] = (fields = {}, headers = {}, signal) =>
    t.ask({ ...usual, ...fields }, { headers, signal });
  return {
    t,
    provider,
    models,
    model,
    second,
    ask,
    askBoth: async (fields = {}) => Promise.all([ask(fields), ask({ ...fields, stream: true })]),
    async begun(headers) {
      const stream = await t.open({ ...usual, stream: true }, { headers });
      await stream.until((text) => text.includes(PIECES[0]!), "the first delta");
      return stream;
    },
    calls: (name = model) => provider.calls(name),
    call: (after = 0) => provider.call(model, after, PATIENT_MS),
  };
}

export const WITH_USAGE = { stream: true, stream_options: { include_usage: true } };
/** What the gateway asked the provider for. */
export const bodyOf = async ({ call }: Scene, after = 0): Promise<Json> => (await call(after)).body;
/** A request with these fields is answered, and the provider was asked with those. */
export const isSent =
  (fields: object, sent: Fields) =>
  async (scene: Scene): Promise<void> => {
    expectComplete(await scene.ask(fields));
    expectFields(await bodyOf(scene), sent);
  };

/** What the events of a stream say. */
const dataOf = ({ events }: Exchange) => events.map(({ data }) => data);

export function expectComplete(reply: Exchange, content = TEXT): void {
  const { status, shown, error, parts } = reply;
  expect(status === 200, "status 200", `${status} ${shown}`);
  expect(reply.content === content, JSON.stringify(content.slice(0, 100)), reply.content);
  if (!reply.streamed) return;
  expect(error === undefined, "no error event", error);
  const data = dataOf(reply);
  const isLast = data.indexOf("[DONE]") === data.length - 1;
  expect(isLast, "[DONE] as the last event", shown);
  expect(parts.length === data.length - 1, "nothing but chunks before [DONE]", shown);
}
/** A stream that was cut off after this text. */
export function expectBroken(reply: Exchange, content: string): void {
  const { status, shown, parts } = reply;
  const isCut = status === 200 && reply.content === content;
  expect(isCut, JSON.stringify(content), `${status} ${shown}`);
  expectFields(reply.error, ERROR);
  const data = dataOf(reply);
  expect(!data.includes("[DONE]"), "no [DONE], which means success", shown);
  const isEnd = parts.length === data.length - 1 && isObject(reply.events.at(-1)?.json);
  expect(isEnd, "one error event, and nothing after it", shown);
}
export function expectRefusal({ status, error, shown }: Exchange, expected: number): void {
  expect(status === expected, `status ${expected}`, `${status} ${shown}`);
  expectFields(error, ERROR);
}
export function expectServedBy(reply: Exchange, model: string): void {
  for (const part of reply.parts) expectSame(first(part, "model"), model);
}
/** How often the provider was asked for a model. */
export const expectCalls = ({ calls }: Scene, number: number, model?: string): void => {
  const got = calls(model).length;
  expect(got === number, `${number} requests for ${model ?? "the model"}`, got);
};
export const secondsOf = ({ headers }: Exchange): number => Number(headers["retry-after"]);
/** Retry-After, and the same number in the message. */
export function expectWait(reply: Exchange): void {
  const seconds = secondsOf(reply);
  const message = String(first(reply.error, "message"));
  const holds = isCount(seconds) && seconds > 0 && message.includes(` ${seconds} s`);
  expect(holds, "Retry-After, and the same number in the message", reply.shown);
}
export const expectHealthy = async (t: Tester, when: string): Promise<void> => {
  const { status } = await soon(t.get("/healthz"), `/healthz ${when}`);
  expect(status === 200, `200 from /healthz ${when}`, status);
};
