// A listener for programs that watch the gateway from another machine: Prometheus, and the probes
// of an orchestrator. It needs no password, because it shows no secrets and changes nothing.
import type { Installer } from "../../../core/extension/installer.ts";
import { configHooks } from "../../../config/extension.ts";
import { host, port, strict } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import { shuttingDown } from "../../../core/error-responses.ts";
import type { Handler, Routes } from "../../../core/http/exchange.ts";
import { sendJson } from "../../../core/http/responses.ts";
import { ledgerUnavailable } from "../../../core/ledger/ledger.ts";
import { ApiError } from "../../../core/openai/errors.ts";
import { withDefault, type ValidationIssue } from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import {
  addressIn,
  DEFAULT_ADDRESS as ADMIN_ADDRESS,
  operatorListener,
  portsShared,
  PUBLIC_ADDRESS,
} from "../admin/index.ts";
import { NO_STORE, once, type Host } from "../../scale/installation/index.ts";

const DEFAULT_ADDRESS = { host: "127.0.0.1", port: 9464 };

/** Absent: metrics are on the admin listener only. */
const setting = defineSetting(
  "admin.metrics",
  undefined,
  () =>
    strict({
      host: withDefault(host, DEFAULT_ADDRESS.host),
      port: withDefault(port, DEFAULT_ADDRESS.port),
    }),
  { fixed: true },
);

export const settings = [setting];

export function install(gateway: Installer): void {
  gateway.on(configHooks.issues, portIssues);
  gateway.on(once, (host) => {
    const address = setting.of(host.config);
    if (address === undefined) return {};
    return operatorListener(host, address, { title: "metrics", routes: () => routesOf(host) });
  });
}

/** An issue if another listener of the configuration has the same port. */
function portIssues(json: unknown): ValidationIssue[] {
  const { server, admin } = asObject(json);
  const { metrics } = asObject(admin);
  if (metrics === undefined || metrics === null) return [];
  return portsShared(["admin", "metrics"], addressIn(metrics, DEFAULT_ADDRESS), {
    "server.port": addressIn(server, PUBLIC_ADDRESS),
    "admin.port": addressIn(admin, ADMIN_ADDRESS),
  });
}

/** /metrics is the admin listener's, and exists only if the extension `metrics` is loaded. */
function routesOf(host: Host): Routes {
  const { "/metrics": metrics } = host.adminRoutes();
  return {
    ...(metrics && { "/metrics": metrics }),
    "/healthz": { GET: alive },
    "/health": { GET: alive },
    "/readyz": { GET: readiness(host) },
  };
}

const alive: Handler = ({ res }) => sendJson(res, 200, { status: "ok" }, NO_STORE);

/**
 * Answers whether the installation can take requests. It is not ready if any of its processes is
 * draining, if any cannot write its spend log, or if each model has an open breaker in some
 * process.
 */
const readiness =
  (host: Host): Handler =>
  async ({ res }) => {
    const { status } = await host.collectStatus();
    const { fault = null } = asObject(status["spend"]);
    if (status.status === "draining") throw shuttingDown();
    if (fault !== null) throw ledgerUnavailable();
    if (status.models.every(({ breaker }) => breaker.retry_ms > 0))
      throw new ApiError("model_unavailable", "No model can serve at the moment.");
    sendJson(res, 200, { status: "ready" }, NO_STORE);
  };
