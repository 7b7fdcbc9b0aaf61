// GET /v1/models and /v1/models/{id}: the canonical names and enabled aliases that a key may use,
// with what the models behind them can do. contract.md "Endpoints".
import type { IncomingHttpHeaders } from "node:http";
import { authenticate } from "../../../core/chat/admission.ts";
import type { Config } from "../../../core/config.ts";
import { moment, type GatewayContext, type Installer } from "../../../core/extension/installer.ts";
import type { Handler } from "../../../core/http/exchange.ts";
import { sendJson } from "../../../core/http/responses.ts";
import { noSuchModel } from "../../../core/routing/catalog.ts";
import { type Capabilities, capabilitiesOf } from "./capabilities.ts";

/** A model as the list has it. */
export interface ListedModel extends Capabilities {
  /** The value that clients send as `model`: a canonical name, or an enabled alias. */
  readonly id: string;
  /** As clients of OpenAI expect it (wire.md "Model list"). */
  readonly object: "model";
  /** In seconds since 1970. */
  readonly created: number;
  /** Always `chat-gateway`: no provider's name may show (wire.md "Model list"). */
  readonly owned_by: string;
}

/** Another form of the list, for the clients of another vendor. */
export interface ModelListForm {
  /** Whether a request asks for this form. */
  appliesTo(headers: IncomingHttpHeaders, config: Config): boolean;
  /** As ClientApi.requestIdHeader. The form's ClientApi gives it to errors. */
  readonly requestIdHeader?: string;
  /** As ClientApi.authorization. */
  authorization(headers: IncomingHttpHeaders): string | undefined;
  /** The JSON document of one model. */
  entry(model: ListedModel): object;
  /** The JSON document of all. */
  list(models: readonly ListedModel[]): object;
}

/** Further forms are asked for. Of several the first that applies to a request counts. */
export const modelListForms = moment<() => ModelListForm>("modelListForms");

const OWN_FORM: ModelListForm = {
  appliesTo: () => true,
  authorization: ({ authorization }) => authorization,
  entry: (model) => model,
  list: (data) => ({ object: "list", data }),
};

export function install(gateway: Installer): void {
  gateway.route("GET", "/v1/models", listModels);
  gateway.route("GET", "/v1/models/{id}", listModels);
}

/** Answers with the models that the key of a request may use, or with the one of an id. */
function listModels({ current, clock, installed }: GatewayContext): Handler {
  const forms = installed.listeners(modelListForms).map(({ call }) => call());
  const created = Math.floor(clock.now() / 1000);
  return (exchange, asked) => {
    const { req, res, requestId } = exchange;
    const { config, keyring, catalog } = current();
    const form = forms.find((each) => each.appliesTo(req.headers, config)) ?? OWN_FORM;
    if (form.requestIdHeader) res.setHeader(form.requestIdHeader, requestId);
    const caller = authenticate(exchange, keyring, form.authorization(req.headers));
    const models = catalog.names(caller).map((id): ListedModel => {
      const capabilities = capabilitiesOf(catalog.behind(id, caller) ?? []);
      return { id, object: "model", created, owned_by: "chat-gateway", ...capabilities };
    });
    if (asked === "") return sendJson(res, 200, form.list(models));
    const model = models.find(({ id }) => id === asked);
    if (!model) throw noSuchModel(asked);
    return sendJson(res, 200, form.entry(model));
  };
}
