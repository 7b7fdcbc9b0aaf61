// What checks of the level `robust` expect of a reply, of the provider and of the gateway.

import type { Exchange } from "../exchange.ts";
import * as expect from "../expect.ts";
import { ERROR } from "../forms.ts";
import { TEXT } from "../wire.ts";
import type { Call } from "../provider.ts";
import { first, isCount, isObject, type Fields } from "../shapes.ts";
import type { Tester } from "../tester.ts";
import { soon, type Scene } from "./scene.ts";

export * from "../expect.ts";

/** What the events of a stream say. */
const dataOf = ({ events }: Exchange) => events.map(({ data }) => data);

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
/** A stream that was cut off after this text. */
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
export function refusal({ status, error, shown }: Exchange, expected: number): void {
  expect.that(status === expected, `status ${expected}`, `${status} ${shown}`);
  expect.fields(error, ERROR);
}
export function servedBy(reply: Exchange, model: string): void {
  for (const part of reply.parts) expect.same(first(part, "model"), model);
}
/** How often the provider was asked for a model; the first of the scene, if none is named. */
export function calls(scene: Scene, number: number, model?: string): void {
  const got = scene.calls(model).length;
  expect.that(got === number, `${number} requests for ${model ?? "the model"}`, got);
}
/** Retry-After, and the same number in the message. */
export function wait({ headers, error, shown }: Exchange): void {
  const seconds = Number(headers["retry-after"]);
  const isSaid = String(first(error, "message")).includes(` ${seconds} s`);
  const holds = isCount(seconds) && seconds > 0 && isSaid;
  expect.that(holds, "Retry-After, and the same number in the message", shown);
}
/** The client of a call has left, so the gateway closes the provider's connection. */
export const left = (call: Call): Promise<void> =>
  soon(call.left, "the provider's connection to be closed");
export async function healthy(t: Tester, when: string): Promise<void> {
  const { status } = await soon(t.get("/healthz"), `/healthz ${when}`);
  expect.that(status === 200, `200 from /healthz ${when}`, status);
}

/** A request with these fields is answered, and the provider was asked with those. */
export const sent =
  (fields: object, toProvider: Fields) =>
  async (scene: Scene): Promise<void> => {
    complete(await scene.ask(fields));
    expect.fields(await scene.sent(), toProvider);
  };
