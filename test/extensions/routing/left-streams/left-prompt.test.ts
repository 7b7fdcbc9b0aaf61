// What a client pays that leaves before anything came, by what its provider had at that moment.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ClientGone } from "../../../../src/core/http/cancel.ts";
import { ProviderError } from "../../../../src/core/providers/provider-error.ts";
import type { RequestContext } from "../../../../src/core/routing/attempt.ts";
import {
  CompletionFailed,
  notStarted,
  type Complete,
} from "../../../../src/core/routing/fallback.ts";
import type { Model } from "../../../../src/core/routing/model.ts";
import type { Transport } from "../../../../src/core/upstream/transport.ts";
import { billPromptOfLeft } from "../../../../src/extensions/routing/left-streams/left-prompt.ts";
import { catalogOf, chatOf, settingsFor } from "../../../support/routing.ts";

const CHAT = chatOf({ model: "m", messages: [{ role: "user", content: "12345678" }] });
const FAILED = new ProviderError("upstream_error", "it failed");

/** How an attempt ends after its provider has got, and answered, so much. */
interface Ending {
  readonly sent: boolean;
  /** Undefined: the provider is silent. */
  readonly status?: number;
  readonly error: Error;
}

/** What is billed after these attempts, the last of which the client left or was to be followed. */
async function billed(endings: readonly Ending[], left: Error) {
  const settings = settingsFor({ m: { price: { input_cache_miss: 1, output: 2 } } });
  const known = catalogOf(settings).models.get("m")!;
  let ending = endings[0]!;
  const transport: Transport = async (_url, { sent }) => {
    if (ending.sent) sent();
    if (ending.status === undefined) throw ending.error;
    return { status: ending.status, headers: { get: () => null }, body: null };
  };
  const model: Model = { ...known, provider: { ...known.provider, transport } };
  const attempt: NonNullable<RequestContext["attempt"]> = async (_chat, serving) => {
    await serving.model.provider.transport("", { sent: () => undefined } as any);
    throw ending.error;
  };
  const complete: Complete = async (chat, _candidates, _deliver, context) => {
    const run = () => context.attempt!(chat, { model } as any, () => undefined, context as any);
    for (ending of endings) await run().catch(() => undefined);
    throw new CompletionFailed(notStarted(model), left);
  };
  const failure: unknown = await billPromptOfLeft(complete)(CHAT, [model], () => undefined, {
    attempt,
  } as any).catch((error: unknown) => error);
  assert.ok(failure instanceof CompletionFailed);
  const { reading, cost } = failure.progress;
  return [reading.source, reading.usage.prompt_tokens, cost];
}

describe("a client that leaves before anything came", () => {
  const gone = new ClientGone();
  const PROMPT = ["estimated", 2, 2_000_000n];
  const NOTHING = ["none", 0, 0n];

  it("pays the prompt that a provider has, be it silent or at work", async () => {
    assert.deepEqual(await billed([{ sent: true, error: gone }], gone), PROMPT);
    assert.deepEqual(await billed([{ sent: true, status: 200, error: gone }], gone), PROMPT);
  });

  it("pays nothing that no provider has", async () => {
    assert.deepEqual(await billed([{ sent: false, error: gone }], gone), NOTHING);
  });

  it("pays nothing where the provider has refused", async () => {
    assert.deepEqual(await billed([{ sent: true, status: 429, error: gone }], gone), NOTHING);
  });

  it("pays nothing of attempts that failed, and the prompt of the one after", async () => {
    const failed = { sent: true, error: FAILED };
    assert.deepEqual(await billed([failed], gone), NOTHING);
    assert.deepEqual(await billed([failed, { sent: false, error: gone }], gone), NOTHING);
    assert.deepEqual(await billed([failed, { sent: true, error: gone }], gone), PROMPT);
  });

  it("that stays pays nothing for a request that fails", async () => {
    assert.deepEqual(await billed([{ sent: true, error: FAILED }], FAILED), NOTHING);
  });
});
