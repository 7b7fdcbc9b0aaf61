// Makes one tiny call to each model of a configuration, and one with each key of its provider, as a
// gateway would: in the provider's dialect, over the network. Nothing is opened in a ledger, so
// nothing is booked.
import { configHooks, type KeyedModel } from "../../../config/extension.ts";
import { systemClock } from "../../../core/clock.ts";
import type { Config } from "../../../core/config.ts";
import type { Installed } from "../../../core/extension/installer.ts";
import { modelServices } from "../../../core/extension/places.ts";
import { Cancel } from "../../../core/http/cancel.ts";
import { Meter } from "../../../core/ledger/meter.ts";
import { chatRequest } from "../../../core/openai/request.ts";
import { ProviderError } from "../../../core/providers/provider-error.ts";
import { attempt } from "../../../core/routing/attempt.ts";
import { createCatalog } from "../../../core/routing/catalog.ts";
import { createFingerprint } from "../../../core/routing/fingerprint.ts";
import type { Model } from "../../../core/routing/model.ts";
import { createPooledClient } from "../../providers/pooled-client/index.ts";

/** The max_tokens of a call: some providers refuse smaller values. */
const MAX_TOKENS = 16;
/** The deadline of one call, in milliseconds. */
export const LIVE_DEADLINE_MS = 30_000;

/** The result of a call. */
export interface LiveAnswer {
  /** The name of the provider in the configuration. */
  readonly provider: string;
  /** Null: no model uses the provider. */
  readonly model: string | null;
  /** The last characters of the key, if the provider has several. Null: it has one, or none. */
  readonly key: string | null;
  /** "skipped": no model uses the provider, or it did not answer an earlier call. */
  readonly result: "ok" | "failed" | "skipped";
  /** Milliseconds until the answer was complete or the call failed. Null: no call was made. */
  readonly ms: number | null;
  /** The error code that a client of the gateway would get. Null: the call did not fail. */
  readonly code: string | null;
  /** The HTTP status of a refusal. Null: there was none. */
  readonly status: number | null;
  /** The provider's error message, redacted, or why there is none. Null: the call did not fail. */
  readonly detail: string | null;
}

/** A call to be made. `key` absent: the provider does not have several keys. */
type Call = Partial<KeyedModel> & Pick<KeyedModel, "model">;

/** The members of a result that differ from NO_CALL. */
type Outcome = Pick<LiveAnswer, "result"> & Partial<LiveAnswer>;

const NO_CALL = { model: null, key: null, ms: null, code: null, status: null, detail: null };

/**
 * Calls all providers at the same time, but the models of one provider one after the other.
 * Resolves when every call has been answered or has failed.
 */
export async function callProviders(
  config: Config,
  installed: Installed,
  deadlineMs = LIVE_DEADLINE_MS,
): Promise<readonly LiveAnswer[]> {
  // Node's fetch never settles if a server closes the connection before it gets the request.
  const pool = createPooledClient();
  const { models } = createCatalog(config, {
    ...modelServices(config, installed, { clock: systemClock, diagnose: () => undefined }),
    transport: pool.send,
    breakers: new Map(),
    fingerprint: createFingerprint(),
  });
  /** The model with each key of its provider. */
  function keyedModels(model: Model): readonly Call[] {
    const listeners = installed.listeners(configHooks.keyed);
    const keyed = listeners.flatMap(({ call }) => call(model, config));
    return keyed.length > 0 ? keyed : [{ model }];
  }
  const answers = [...config.providers.keys()].map(async (name) => {
    const all = [...models.values()].filter(({ provider }) => provider.name === name);
    const [first, ...others] = all.map(keyedModels);
    if (!first) return [{ ...NO_CALL, provider: name, result: "skipped" } as const];
    const found: LiveAnswer[] = [];
    /** Makes a call, or skips it if the provider did not answer an earlier one. */
    async function call({ model, key }: Call): Promise<void> {
      const isSilent = found.some(({ result, status }) => result === "failed" && status === null);
      const skipped = { result: "skipped" } as const;
      const outcome = isSilent ? skipped : await makeCall(model, config, deadlineMs);
      found.push({ ...NO_CALL, provider: name, model: model.name, key: key ?? null, ...outcome });
    }
    for (const keyed of first) await call(keyed);
    const works = found.findIndex(({ result }) => result === "ok");
    for (const each of others) await call(each[Math.max(0, works)]!);
    return found;
  });
  const all = (await Promise.all(answers)).flat();
  pool.close();
  return all;
}

async function makeCall(model: Model, config: Config, deadlineMs: number): Promise<Outcome> {
  const cancel = new Cancel();
  const tooLate = `no complete answer within ${deadlineMs / 1000} seconds`;
  const timer = systemClock.after(deadlineMs, () =>
    cancel.abort(new ProviderError("upstream_timeout", tooLate)),
  );
  const startedAt = systemClock.monotonic();
  const passed = (): number => Math.round(systemClock.monotonic() - startedAt);
  try {
    await ask(model, config, cancel, startedAt + deadlineMs);
    return { ms: passed(), result: "ok" };
  } catch (error) {
    const failed = { ms: passed(), result: "failed" } as const;
    if (!(error instanceof ProviderError))
      return { ...failed, code: "internal_error", detail: String(error) };
    const { code, answer, message } = error;
    const status = answer?.status ?? null;
    return { ...failed, code, status, detail: answer?.message ?? message };
  } finally {
    timer.cancel();
  }
}

/** Makes one attempt and discards the reply. */
async function ask(model: Model, config: Config, cancel: Cancel, endsAt: number): Promise<void> {
  const chat = chatRequest({
    model: model.name,
    messages: [{ role: "user", content: "Say OK." }],
    max_tokens: MAX_TOKENS,
  });
  const meter = new Meter(chat, model.provider.countMedia);
  await attempt(chat, { model, others: [], meter }, () => undefined, {
    config,
    cancel,
    endsAt,
    account: "",
    large: false,
    retain: () => undefined,
    clock: systemClock,
    report: () => undefined,
    observers: [],
    inFlight: () => 1,
    attempt,
  });
}

/** For people: a line for each call. */
export const liveText = (answers: readonly LiveAnswer[]): string =>
  `${answers.map(lineOf).join("")}Nothing of this is in the books. The providers may bill it.\n`;

function lineOf({ provider, model, key, result, ms, code, status, detail }: LiveAnswer): string {
  if (model === null) return `  skipped  ${provider}: no model uses it\n`;
  const name = `${provider} (${model}${key === null ? "" : `, key ...${key}`})`;
  if (result === "skipped") return `  skipped  ${name}: the provider did not answer\n`;
  if (result === "ok") return `  ok       ${name}: ${ms} ms\n`;
  const answered = status === null ? "" : `, status ${status}`;
  return `  failed   ${name}: ${code}${answered} after ${ms} ms: ${detail}\n`;
}
