// What the checks of the level `robust` work with: the gateway seen from both sides, by its client
// and by its provider, which fails in every way that a provider can (provider.ts). Each check has
// its own models there, named after their behaviour. It also has what the checks expect of a reply,
// of the provider and of the gateway: they import this file as `expect` too.

import type { Exchange, Headers, Opened } from "../client.ts";
import * as expect from "../expect.ts";
import { ERROR } from "../forms.ts";
import { aliasOf, modelsOf, type Call, type ProviderSetup } from "../provider.ts";
import { first, isCount, isObject, type Fields } from "../shapes.ts";
import { question, type Tester } from "../tester.ts";
import { PIECES, TEXT } from "../wire.ts";
import { checkOf, CHECKS, headingOf, type Stated } from "./kit.ts";

export * from "../expect.ts";

/** What a check of the level `robust` works with. */
export type RobustKit = ReturnType<typeof kitOf>;

export const STREAM = { stream: true };
export const WITH_USAGE = { stream: true, stream_options: { include_usage: true } };
/** For what should happen at once. */
export const SOON_MS = 2_500;
/** For what takes longer only on a busy machine. */
export const PATIENT_MS = 10_000;
/** The promise's value. Rejects after SOON_MS. */
export const soon = <T>(promise: Promise<T>, what: string): Promise<T> =>
  expect.within(promise, what, SOON_MS);

/** What the checks need in the gateway's configuration. robust() adds to it. */
export const SETUPS: ProviderSetup[] = [];

/**
 * Adds checks. The words in a heading are the check's models at the provider: the behaviour of
 * each, and `@` with a provider's name for the first (provider.ts).
 */
export function robust(source: string, entries: Stated<(kit: RobustKit) => unknown>): void {
  for (const [heading, run] of Object.entries(entries)) {
    const { id, words } = headingOf(heading);
    const [first = "good", ...others] = words.filter((word) => word !== "alone");
    const [behaviour = "", at] = first.split("@");
    const setup: ProviderSetup = { id, behaviours: [behaviour, ...others], at };
    SETUPS.push(setup);
    const check = checkOf("robust", source, heading, (t) => run(kitOf(t, setup)));
    CHECKS.push({ ...check, needs: others.length > 0 ? ["provider", "alias"] : ["provider"] });
  }
}
/** Checks that differ only in the provider's behaviour. */
export const alike = (headings: readonly string[], run: (kit: RobustKit) => unknown) =>
  Object.fromEntries(headings.map((heading) => [heading, run]));

function kitOf(t: Tester, setup: ProviderSetup) {
  const provider = t.options.provider!;
  const models: readonly string[] = modelsOf(setup);
  const [model = "", second = model] = models;
  const usual = {
    model: second === model ? model : aliasOf(setup),
    messages: question("Say something."),
  };
  /** Asks the alias, or the model if the check has only one. */
  const ask = (fields: object = {}, headers: Headers = {}, signal?: AbortSignal) =>
    t.ask({ ...usual, ...fields }, { headers, signal });
  /** Waits for the call that comes after `after` others. */
  const call = (after = 0) => provider.call(model, after, PATIENT_MS);
  return {
    t,
    provider,
    /**
     * The check's models at the provider; the first of them; the one that the alias falls back to.
     */
    models,
    model,
    second,
    ask,
    /** Asks for a whole reply and for a stream at the same time. */
    askBoth: async (fields: object = {}) =>
      Promise.all([ask(fields), ask({ ...fields, stream: true })]),
    /** Sends `number` requests at once. */
    askMany: (number: number, content: string, headers?: Headers) =>
      Promise.all(
        Array.from({ length: number }, () => ask({ messages: question(content) }, headers)),
      ),
    /** Opens a stream. Resolves when its first delta has been received. */
    async begun(headers?: Headers): Promise<Opened> {
      const stream = await t.open({ ...usual, stream: true }, { headers });
      await stream.until(PIECES[0]!);
      return stream;
    },
    /** The provider's calls for a model. Absent: the check's first one. */
    calls: (name = model) => provider.calls(name),
    call,
    /** The request body of that call. */
    sent: async (after?: number) => (await call(after)).body,
  };
}

/** The data of a stream's events. */
const dataOf = ({ events }: Exchange) => events.map(({ data }) => data);

/** Expects a complete reply with this content. */
export function complete(reply: Exchange, content = TEXT): void {
  const { status, shown, error, parts } = reply;
  expect.that(status === 200, "status 200", `${status} ${shown}`);
  expect.that(reply.content === content, JSON.stringify(content.slice(0, 100)), reply.content);
  if (!reply.streamed) return;
  expect.that(error === undefined, "no error event", error);
  const data = dataOf(reply);
  const isLast = data.indexOf("[DONE]") === data.length - 1;
  expect.that(isLast, "[DONE] as the last event", shown);
  expect.that(parts.length === data.length - 1, "nothing but chunks before [DONE]", shown);
}
/** Expects a stream that broke off after this text. */
export function broken(reply: Exchange, content: string): void {
  const { status, shown, parts } = reply;
  const isCut = status === 200 && reply.content === content;
  expect.that(isCut, JSON.stringify(content), `${status} ${shown}`);
  expect.fields(reply.error, ERROR);
  const data = dataOf(reply);
  expect.that(!data.includes("[DONE]"), "no [DONE], which means success", shown);
  const isEnd = parts.length === data.length - 1 && isObject(reply.events.at(-1)?.json);
  expect.that(isEnd, "one error event, and nothing after it", shown);
}
/** Expects an error with this status. */
export function refusal({ status, error, shown }: Exchange, expected: number): void {
  expect.that(status === expected, `status ${expected}`, `${status} ${shown}`);
  expect.fields(error, ERROR);
}
/** Expects that a reply names this model throughout. */
export function servedBy(reply: Exchange, model: string): void {
  for (const part of reply.parts) expect.same(first(part, "model"), model);
}
/** Expects `number` calls of the provider for a model. Absent: the check's first one. */
export function calls(kit: RobustKit, number: number, model?: string): void {
  const got = kit.calls(model).length;
  expect.that(got === number, `${number} requests for ${model ?? "the model"}`, got);
}
/** Expects a Retry-After, and the same number in the message. */
export function wait({ headers, error, shown }: Exchange): void {
  const seconds = Number(headers["retry-after"]);
  const isSaid = String(first(error, "message")).includes(` ${seconds} s`);
  const holds = isCount(seconds) && seconds > 0 && isSaid;
  expect.that(holds, "Retry-After, and the same number in the message", shown);
}
/** Expects the gateway to close the provider's connection soon, because the client has left. */
export const left = (call: Call): Promise<void> =>
  soon(call.left, "the provider's connection to be closed");
/** Expects /healthz to answer soon. `when`: part of the error. */
export async function healthy(t: Tester, when: string): Promise<void> {
  const { status } = await soon(t.get("/healthz"), `/healthz ${when}`);
  expect.that(status === 200, `200 from /healthz ${when}`, status);
}

/** Sends a request with these fields, and expects those in the provider's request. */
export const sent =
  (fields: object, toProvider: Fields) =>
  async (kit: RobustKit): Promise<void> => {
    complete(await kit.ask(fields));
    expect.fields(await kit.sent(), toProvider);
  };
