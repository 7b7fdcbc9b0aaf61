// GET /v1/models and /v1/models/{id}: the canonical names and enabled aliases that a key may use. SPEC.md "Endpoints", DESIGN.md
// "Endpoints".
import type { Caller, Keyring } from "../accounts/keyring.ts";
import type { Exchange, Routes } from "../http/exchange.ts";
import { sendJson } from "../http/responses.ts";
import { noSuchModel, type Catalog } from "../routing/catalog.ts";

interface Snapshot {
  readonly keyring: Keyring;
  readonly catalog: Catalog;
}

/** `created`: the time that every entry states, in seconds since 1970. */
export function modelRoutes(current: () => Snapshot, created: number): Routes {
  function entry(id: string, catalog: Catalog, caller: Caller): object {
    const capabilities = catalog.capabilities(id, caller);
    return { id, object: "model", created, owned_by: "chat-gateway", ...capabilities };
  }
  return {
    "/v1/models": {
      GET(exchange) {
        const { keyring, catalog } = current();
        const caller = authenticate(exchange, keyring);
        const data = catalog.names(caller).map((id) => entry(id, catalog, caller));
        sendJson(exchange.res, 200, { object: "list", data });
      },
    },
    "/v1/models/{id}": {
      GET(exchange, id) {
        const { keyring, catalog } = current();
        const caller = authenticate(exchange, keyring);
        if (!catalog.names(caller).includes(id)) throw noSuchModel(id);
        sendJson(exchange.res, 200, entry(id, catalog, caller));
      },
    },
  };
}

/** The caller, named in the access log; throws the 401. */
function authenticate({ req, log }: Exchange, keyring: Keyring): Caller {
  const caller = keyring.authenticate(req.headers.authorization);
  log.account = caller.account;
  log.key_id = caller.keyId;
  return caller;
}
