// A listener of its own for what watches the gateway from another machine: Prometheus, and the
// probes of an orchestrator. It serves figures and no secrets, so it needs no password, and nothing
// can be changed through it.
import { configMoments, type ConfigExtension } from "../../../config/extension.ts";
import { port, strict } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import { internalErrorReporter, renderError, shuttingDown } from "../../../core/error-responses.ts";
import { slots } from "../../../core/extension/places.ts";
import type { Handler, Routes } from "../../../core/http/exchange.ts";
import { sendJson } from "../../../core/http/responses.ts";
import { createServer, type Server } from "../../../core/http/server.ts";
import {
  nonEmpty,
  optional,
  withDefault,
  type ValidationIssue,
} from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { DEFAULT_ADDRESS as ADMIN_ADDRESS, sharePort } from "../admin/index.ts";
import { once, type Host, type HostPart } from "../../scale/installation/index.ts";
import { assertReady } from "./readiness.ts";

interface Address {
  readonly host: string;
  readonly port: number;
}

const DEFAULT_ADDRESS: Address = { host: "127.0.0.1", port: 9464 };
const PUBLIC_ADDRESS: Address = { host: "127.0.0.1", port: 8080 };

/** Absent: metrics are on the admin listener only. */
const setting = defineSetting<Address | undefined>(
  "admin.metrics",
  undefined,
  () =>
    optional(
      strict({
        host: withDefault(nonEmpty, DEFAULT_ADDRESS.host),
        port: withDefault(port, DEFAULT_ADDRESS.port),
      }),
    ),
  { fixed: true },
);

export const extension: ConfigExtension = {
  name: "metrics-listener",
  settings: [setting],
  install(gateway) {
    gateway.on(configMoments.issues, portIssues);
    gateway.on(once, (host) => {
      const address = setting.of(host.config);
      return address === undefined ? {} : startListener(host, address);
    });
  },
};

/** A port that another listener of the same configuration has. */
function portIssues(json: unknown): ValidationIssue[] {
  const { server, admin } = asObject(json);
  const { metrics } = asObject(admin);
  if (metrics === undefined || metrics === null) return [];
  const metricsAddress = { ...DEFAULT_ADDRESS, ...asObject(metrics) };
  const others = [
    { name: "server.port", address: { ...PUBLIC_ADDRESS, ...asObject(server) } },
    { name: "admin.port", address: { ...ADMIN_ADDRESS, ...asObject(admin) } },
  ];
  return others
    .filter(({ address }) => sharePort(metricsAddress, address))
    .map(({ name }) => ({
      path: ["admin", "metrics", "port"],
      code: "invalid_value",
      message: `is ${name} too, on the same host`,
    }));
}

function startListener(host: Host, { host: name, port: number }: Address): HostPart {
  const { config, clock, diagnose } = host;
  let address: string | undefined;
  let server: Server | undefined;
  return {
    async listen() {
      const options = {
        host: name,
        port: number,
        receiveMs: config.server.receive_ms,
        sendMs: config.server.send_ms,
        boundPipeline: host.installed.filled(slots.boundPipeline),
      };
      server = createServer(routesOf(host), options, {
        clock,
        access: () => undefined,
        renderError,
        failed: internalErrorReporter(diagnose),
      });
      address = await server.listen();
    },
    announcement: () => (address === undefined ? undefined : `metrics on ${address}`),
    close: () => server?.close(0, shuttingDown()),
  };
}

/** Of the admin listener's paths only /metrics, if the extension `metrics` is loaded. */
function routesOf(host: Host): Routes {
  const { "/metrics": metrics } = host.adminRoutes();
  return {
    ...(metrics && { "/metrics": metrics }),
    "/healthz": { GET: alive },
    "/health": { GET: alive },
    "/readyz": {
      async GET({ res }) {
        const { status } = await host.look();
        assertReady(status);
        sendJson(res, 200, { status: "ready" }, NO_STORE);
      },
    },
  };
}

const NO_STORE = { "Cache-Control": "no-store" };
const alive: Handler = ({ res }) => sendJson(res, 200, { status: "ok" }, NO_STORE);
