// A token service that does not answer, on a clock that the test moves.

import assert from "node:assert/strict";
import http from "node:http";
import { it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { callLocal, postForm } from "../../../../src/extensions/providers/token-services/index.ts";
import type { Cancel } from "../../../../src/core/http/cancel.ts";
import type { CredentialServices } from "../../../../src/extensions/providers/token-services/index.ts";
import { createFakeClock } from "../../../support/fake-clock.ts";
import { listening } from "../../../support/listening.ts";

it("a token service that does not answer within ten seconds counts as unreachable", async (t) => {
  const clock = createFakeClock();
  const address = await listening(t, http.createServer());
  const transport = (_: string, { cancel }: { cancel: Cancel }) =>
    new Promise<never>((_resolve, reject) => cancel.onAbort(() => reject(cancel.reason)));
  const services = { clock, transport } as unknown as CredentialServices;
  const ended: string[] = [];
  const calls = [
    postForm(["Entra", "https://entra.test"], {}, services),
    callLocal(["the machine", address], {}, clock),
  ].map((call) => call.catch(({ message }: Error) => ended.push(message)));
  clock.advance(9_999);
  await setImmediate();
  assert.deepEqual(ended, []);
  clock.advance(1);
  await Promise.all(calls);
  assert.deepEqual(ended, [
    "Entra could not be reached: no answer within 10 seconds",
    "the machine could not be reached: no answer within 10 seconds",
  ]);
});
