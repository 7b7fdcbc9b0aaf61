// POST /v1/messages/count_tokens: counts a prompt's tokens. Asks the provider that would serve it,
// if its format supports that. Otherwise estimates the count, and marks it as an estimate.
import type { Sealer } from "../client-apis/index.ts";
import { configHooks } from "../../../config/extension.ts";
import { authenticate, readRequest, requireAdmission } from "../../../core/chat/admission.ts";
import type { ClientApi } from "../../../core/chat/client-api.ts";
import type { GatewayContext } from "../../../core/extension/installer.ts";
import { slots } from "../../../core/extension/places.ts";
import { Cancel } from "../../../core/http/cancel.ts";
import type { Handler } from "../../../core/http/exchange.ts";
import { sendJson } from "../../../core/http/responses.ts";
import { estimatePrompt } from "../../../core/ledger/meter.ts";
import type { ChatRequest } from "../../../core/openai/request.ts";
import type { ProviderRequest } from "../../../core/providers/dialect.ts";
import type { Model } from "../../../core/routing/model.ts";
import { asCount, asObject, parseJson } from "../../../core/schema/untrusted-json.ts";
import { waitForTurn } from "../../../core/turns.ts";
import { bodyText, readAll } from "../../../core/upstream/body.ts";
import { readCountRequest } from "../messages-input/index.ts";
import { REQUEST_ID_HEADER } from "./errors.ts";

/** Fields about the reply, which a request for a count must not have. */
const REPLY_FIELDS =
  "max_tokens metadata service_tier stop_sequences stream temperature top_k top_p".split(" ");

/** By dialect: makes the request for a count from the request for a reply. */
const COUNTERS: { readonly [dialect: string]: (reply: ProviderRequest) => ProviderRequest } = {
  anthropic({ path, body }) {
    const kept = Object.entries(body).filter(([name]) => !REPLY_FIELDS.includes(name));
    return { path: `${path}/count_tokens`, body: Object.fromEntries(kept) };
  },
  gemini({ path, body }) {
    // The path begins with /v1beta/ and the full name of the model.
    const [, model] = /^\/v1beta\/(.*):generateContent$/.exec(path) ?? [];
    const generateContentRequest = { model, ...body };
    return { path: `/v1beta/${model}:countTokens`, body: { generateContentRequest } };
  },
};

/** After this many bytes of a provider's answer, the rest is not read. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** The provider's count, as the client gets it. Undefined: it gave none. */
async function providersCount(
  chat: ChatRequest,
  model: Model,
  account: string,
  cancel: Cancel,
): Promise<object | undefined> {
  const { provider } = model;
  const counter = COUNTERS[provider.dialect];
  // A provider with its own path for replies need not have the usual path for counts.
  if (!counter || model.traits.path !== undefined) return undefined;
  const reply = provider.dialectFor(account).request(chat, model);
  const { path, body } = counter(reply);
  const response = await provider.transport(model.address(path, false), {
    method: "POST",
    redirect: "manual",
    headers: { Accept: "application/json", ...provider.headers, ...reply.headers },
    body: bodyText(body),
    cancel,
    connectMs: provider.timeouts.connect_ms,
    sent: () => undefined,
  });
  const text = response.body ? await readAll(response.body, MAX_ANSWER_BYTES) : "";
  if (response.status !== 200) return undefined;
  const { input_tokens: stated, totalTokens, context_management } = asObject(parseJson(text));
  const input_tokens = asCount(stated ?? totalTokens);
  if (input_tokens === undefined) return undefined;
  return { input_tokens, ...(context_management !== undefined && { context_management }) };
}

export function createCountHandler(
  api: ClientApi,
  { open }: Sealer,
  context: GatewayContext,
): Handler {
  const { current, limiter, clock, installed } = context;
  const read: ClientApi["read"] = (parsed, headers) => readCountRequest(parsed, headers, open);
  const countApi: ClientApi = { ...api, read };
  const jsonExcess = installed.filled(slots.jsonExcess);
  return async (exchange) => {
    exchange.res.setHeader(REQUEST_ID_HEADER, exchange.requestId);
    const { config, catalog, keyring } = current();
    const authorization = api.authorization(exchange.req.headers);
    const caller = authenticate(exchange, keyring, authorization);
    requireAdmission(await limiter.admit(caller), caller, exchange);
    const cancel = new Cancel();
    const detach = exchange.cancel.onAbort(() => cancel.abort(exchange.cancel.reason));
    try {
      const { chat, large } = await readRequest({ exchange, config, api: countApi, jsonExcess });
      if (large) await waitForTurn();
      const model = catalog.candidates(chat, caller)[0]!;
      exchange.log.model = model.name;
      const { first_token_ms: ms } = model.provider.timeouts;
      const timer = clock.after(ms, () => cancel.abort(new Error(`no count within ${ms} ms`)));
      const [keyed] = installed
        .listeners(configHooks.keyed)
        .flatMap(({ call }) => call(model, config));
      const asked = keyed?.model ?? model;
      const count = await providersCount(chat, asked, caller.account, cancel)
        .catch(() => undefined) // a failure of the provider
        .finally(() => timer.cancel());
      if (exchange.cancel.aborted) throw exchange.cancel.reason;
      const input_tokens = () => estimatePrompt(chat, model.provider.countMedia);
      sendJson(exchange.res, 200, count ?? { input_tokens: input_tokens(), estimated: true });
    } finally {
      detach();
      limiter.release(caller);
    }
  };
}
