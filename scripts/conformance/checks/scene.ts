// What the checks of the level `robust` work with: the gateway seen from both sides, as its client
// and as its provider, which fails in every way that a provider can (provider.ts). Each check has
// models of its own there, named after what they do.

import type { Opened } from "../client.ts";
import type { Exchange } from "../exchange.ts";
import { within } from "../expect.ts";
import { PIECES } from "../wire.ts";
import type { Call, Provider } from "../provider.ts";
import { aliasOf, modelsOf, type Lab } from "../ready.ts";
import type { Json } from "../shapes.ts";
import { question, type Headers, type Tester } from "../tester.ts";
import { checkOf, CHECKS, headingOf, type Stated } from "./kit.ts";

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
  /** So many at once. */
  askMany(number: number, content: string, headers?: Headers): Promise<Exchange[]>;
  /** A stream of which the first delta has come. */
  begun(headers?: Headers): Promise<Opened>;
  /** What came to the provider for a model; the first, if none is named. */
  calls(model?: string): readonly Call[];
  /** The call after so many others, waited for. */
  call(after?: number): Promise<Call>;
  /** What the gateway asked the provider for in it. */
  sent(after?: number): Promise<Json>;
}

export const STREAM = { stream: true };
export const WITH_USAGE = { stream: true, stream_options: { include_usage: true } };
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
export function robust(source: string, entries: Stated<(scene: Scene) => unknown>): void {
  for (const [heading, run] of Object.entries(entries)) {
    const { id, words } = headingOf(heading);
    const [first = "good", ...others] = words.filter((word) => word !== "alone");
    const [behaviour = "", at] = first.split("@");
    const lab: Lab = { id, behaviours: [behaviour, ...others], at };
    LABS.push(lab);
    const check = checkOf("robust", source, heading, (t) => run(sceneOf(t, lab)));
    CHECKS.push({ ...check, needs: others.length > 0 ? ["provider", "alias"] : ["provider"] });
  }
}
/** Checks that differ in what the provider does. */
export const alike = (
  source: string,
  headings: readonly string[],
  run: (scene: Scene) => unknown,
): void => robust(source, Object.fromEntries(headings.map((heading) => [heading, run])));

function sceneOf(t: Tester, lab: Lab): Scene {
  const provider = t.options.provider!;
  const models = modelsOf(lab);
  const [model = "", second = model] = models;
  const usual = {
    model: second === model ? model : aliasOf(lab),
    messages: question("Say something."),
  };
  const ask: Scene["ask"] = (fields = {}, headers = {}, signal) =>
    t.ask({ ...usual, ...fields }, { headers, signal });
  const call = (after = 0) => provider.call(model, after, PATIENT_MS);
  return {
    t,
    provider,
    models,
    model,
    second,
    ask,
    askBoth: async (fields = {}) => Promise.all([ask(fields), ask({ ...fields, stream: true })]),
    askMany: (number, content, headers) =>
      Promise.all(
        Array.from({ length: number }, () => ask({ messages: question(content) }, headers)),
      ),
    async begun(headers) {
      const stream = await t.open({ ...usual, stream: true }, { headers });
      await stream.until(PIECES[0]!);
      return stream;
    },
    calls: (name = model) => provider.calls(name),
    call,
    sent: async (after) => (await call(after)).body,
  };
}
