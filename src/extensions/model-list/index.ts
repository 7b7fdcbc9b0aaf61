// GET /v1/models and /v1/models/{id}: the canonical names and enabled aliases that a key may use,
// with what the models behind them can do. DESIGN.md "Endpoints".
import type { Extension } from "../../core/extension/extension.ts";
import { authenticate } from "../../core/chat/admission.ts";
import type { Exchange, Routes } from "../../core/http/exchange.ts";
import { sendJson } from "../../core/http/responses.ts";
import { noSuchModel } from "../../core/routing/catalog.ts";
import type { Snapshot } from "../../core/snapshot.ts";
import { capabilitiesOf } from "./capabilities.ts";

export const extension: Extension = {
  name: "model-list",
  start: ({ current, clock }) => ({ routes: modelRoutes(current, Math.floor(clock.now() / 1000)) }),
};

/** `created`: the time that every entry states, in seconds since 1970. */
function modelRoutes(current: () => Snapshot, created: number): Routes {
  function entries(exchange: Exchange) {
    const { keyring, catalog } = current();
    const caller = authenticate(exchange, keyring);
    return catalog.names(caller).map((id) => {
      const capabilities = capabilitiesOf(catalog.behind(id, caller) ?? []);
      return { id, object: "model", created, owned_by: "chat-gateway", ...capabilities };
    });
  }
  return {
    "/v1/models": {
      GET: (exchange) => sendJson(exchange.res, 200, { object: "list", data: entries(exchange) }),
    },
    "/v1/models/{id}": {
      GET(exchange, id) {
        const entry = entries(exchange).find((each) => each.id === id);
        if (!entry) throw noSuchModel(id);
        sendJson(exchange.res, 200, entry);
      },
    },
  };
}
