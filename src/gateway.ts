// The gateway put together: configuration and the world in, an HTTP server out. Which path leads where stands here.

import { createKeyring } from "./accounts/keys.ts";
import { createLimiter } from "./accounts/limiter.ts";
import { createChatHandler } from "./chat.ts";
import type { Config } from "./config/schema.ts";
import { readTls } from "./config/tls.ts";
import { createFetch, type Fetch } from "./http/fetch.ts";
import { createLineLog, describe, type Diagnose, type WriteLines } from "./http/log.ts";
import { sendJson } from "./http/reply.ts";
import type { Routes } from "./http/router.ts";
import { createServer } from "./http/server.ts";
import { openapiText } from "./protocol/openapi.ts";
import { createCatalog } from "./routing/catalog.ts";

/** What the gateway needs of the world. Absent means the real thing, and no log. */
export interface GatewayDeps {
  readonly fetch?: Fetch;
  /** Wall clock, milliseconds. */
  readonly now?: () => number;
  /** Monotonic clock, milliseconds: the limiter's. */
  readonly monotonic?: () => number;
  readonly accessLog?: WriteLines;
  readonly diagnostics?: WriteLines;
}

export interface Gateway {
  /** Resolves with the address that clients can use. Rejects if the address cannot be bound. */
  listen(): Promise<string>;
  /** Takes no new connections, lets requests in flight run for at most `drainMs`, then ends them with an error. */
  close(drainMs?: number): Promise<void>;
}

export function createGateway(config: Config, deps: GatewayDeps = {}): Gateway {
  const now = deps.now ?? Date.now;
  const access = createLineLog(deps.accessLog ?? (() => undefined));
  const diagnostics = createLineLog(deps.diagnostics ?? (() => undefined));
  const diagnose: Diagnose = (event) => diagnostics.write({ time: new Date(now()).toISOString(), ...event });
  const ownFetch = deps.fetch ? undefined : createFetch();
  const keyring = createKeyring(config);
  const catalog = createCatalog(config, deps.fetch ?? ownFetch!);
  const limiter = createLimiter(deps.monotonic);
  const created = Math.floor(now() / 1000);

  const routes: Routes = {
    "/v1/chat/completions": { POST: createChatHandler({ config, keyring, catalog, limiter, now, diagnose }) },
    "/v1/models": {
      GET: ({ req, res, log }) => {
        const caller = keyring.authenticate(req.headers.authorization);
        Object.assign(log, { account: caller.account, key_id: caller.keyId });
        const data = catalog.names(caller).map((id) => ({ id, object: "model", created, owned_by: "chat-gateway" }));
        sendJson(res, 200, { object: "list", data });
      },
    },
    "/healthz": { GET: ({ res }) => sendJson(res, 200, { status: "ok" }, { "Cache-Control": "no-store" }) },
    "/openapi.json": { GET: ({ res }) => sendJson(res, 200, openapiText) },
  };

  const { tls, ...address } = config.server;
  const server = createServer(routes, { ...address, tls: tls && readTls(tls) }, {
    now,
    access: access.write,
    failed: ({ requestId }, error) => diagnose({ event: "internal_error", request_id: requestId, detail: describe(error) }),
  });

  return {
    listen: server.listen,
    async close(drainMs = 0) {
      await server.close(drainMs);
      ownFetch?.close();
      access.flush();
      diagnostics.flush();
    },
  };
}
