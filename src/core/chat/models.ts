// GET /v1/models and /v1/models/{id}: the canonical names and enabled aliases that a key may use.
// SPEC.md "Endpoints", DESIGN.md "Endpoints".
import type { Exchange, Routes } from "../http/exchange.ts";
import { sendJson } from "../http/responses.ts";
import { noSuchModel } from "../routing/catalog.ts";
import { authenticate } from "./admission.ts";
import type { ConfigSnapshot } from "./context.ts";

/** `created`: the time that every entry states, in seconds since 1970. */
export function modelRoutes(current: () => ConfigSnapshot, created: number): Routes {
  function entries(exchange: Exchange) {
    const { keyring, catalog } = current();
    const caller = authenticate(exchange, keyring);
    return catalog.names(caller).map((id) => {
      const capabilities = catalog.capabilities(id, caller);
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
