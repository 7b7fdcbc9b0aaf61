// GET /v1/models and /v1/models/{id}: the canonical names and enabled aliases that a key may use,
// with what the models behind them can do. contract.md "Endpoints".
import type { IncomingHttpHeaders } from "node:http";
import { authenticate } from "../../../core/chat/admission.ts";
import { hook, type GatewayContext, type Installer } from "../../../core/extension/installer.ts";
import type { Handler } from "../../../core/http/exchange.ts";
import { sendJson } from "../../../core/http/responses.ts";
import { noSuchModel } from "../../../core/routing/catalog.ts";
import type { Model } from "../../../core/routing/model.ts";

/** An entry of the list. */
export interface ListedModel {
  /** The value that clients send as `model`: a canonical name, or an enabled alias. */
  readonly id: string;
  /** As clients of OpenAI expect it (wire.md "Model list"). */
  readonly object: "model";
  /** In seconds since 1970. */
  readonly created: number;
  /** Always `chat-gateway`: no provider's name may show (wire.md "Model list"). */
  readonly owned_by: string;
  /**
   * In tokens. For an alias: the smallest known value of its candidates, so that the prompt has
   * room in each. Null: none is known.
   */
  readonly context_length: number | null;
  /** The most tokens of a reply. Otherwise as context_length. */
  readonly max_output_tokens: number | null;
  /**
   * For an alias: those of all candidates together, because a request goes to a candidate that has
   * what it needs.
   */
  readonly capabilities: readonly string[];
}

/** A form of the list, for the clients of one vendor. */
export interface ModelListForm {
  /** As ClientApi.requestIdHeader, which covers errors. This member covers the list. */
  readonly requestIdHeader?: string;
  /** As ClientApi.authorization. Absent: the key is in the header of that name. */
  authorization?(headers: IncomingHttpHeaders): string | undefined;
  /** The JSON document of one model. */
  entry(model: ListedModel): object;
  /** The JSON document of all. */
  list(models: readonly ListedModel[]): object;
}

/** A request for the list has arrived. Returns the form that it asks for. The first form counts. */
export const modelListForms =
  hook<(headers: IncomingHttpHeaders) => ModelListForm | undefined>("modelListForms");

const OWN_FORM: ModelListForm = {
  entry: (model) => model,
  list: (data) => ({ object: "list", data }),
};

export function install(gateway: Installer): void {
  gateway.route("GET", "/v1/models", listModels);
  gateway.route("GET", "/v1/models/{id}", listModels);
}

/** Sends the models that the key of the request may use, or the one that the path names. */
function listModels({ current, clock, installed }: GatewayContext): Handler {
  const forms = installed.listeners(modelListForms);
  const created = Math.floor(clock.now() / 1000);
  return (exchange, requestedId) => {
    const { req, res, requestId } = exchange;
    const { keyring, catalog } = current();
    const [form = OWN_FORM] = forms.flatMap(({ call }) => call(req.headers) ?? []);
    if (form.requestIdHeader) res.setHeader(form.requestIdHeader, requestId);
    const caller = authenticate(exchange, keyring, form.authorization?.(req.headers));
    const models = catalog.names(caller).map((id): ListedModel => {
      const capabilities = capabilitiesOf(catalog.modelsFor(id, caller) ?? []);
      return { id, object: "model", created, owned_by: "chat-gateway", ...capabilities };
    });
    if (requestedId === "") return sendJson(res, 200, form.list(models));
    const model = models.find(({ id }) => id === requestedId);
    if (!model) throw noSuchModel(requestedId);
    return sendJson(res, 200, form.entry(model));
  };
}

function capabilitiesOf(candidates: readonly Model[]) {
  return {
    context_length: smallest(candidates.map(({ contextTokens }) => contextTokens)),
    max_output_tokens: smallest(candidates.map(({ traits }) => traits.max_output_tokens)),
    capabilities: [...new Set(candidates.flatMap(supportedBy))].sort(),
  };
}

function smallest(figures: readonly (number | undefined)[]): number | null {
  const known = figures.filter((figure) => figure !== undefined);
  return known.length === 0 ? null : Math.min(...known);
}

function supportedBy({ traits, reasoning }: Model): readonly string[] {
  const hasLogprobs = !traits.think_tags && !traits.omit.includes("logprobs");
  const supported = traits.supports.filter((name) => name !== "logprobs" || hasLogprobs);
  return reasoning ? [...supported, "reasoning"] : supported;
}
