// The admin listener, for the operator. It listens on a loopback address by default. Other
// extensions add the paths that it serves.
import type { ServerResponse } from "node:http";
import { configHooks, type Warning } from "../../../config/extension.ts";
import { host, isLoopback, port, strict } from "../../../config/fields.ts";
import { defineSetting } from "../../../config/setting.ts";
import { accountLimitName } from "../../../core/accounts/limiter.ts";
import type { Config } from "../../../core/config.ts";
import { internalErrorReporter, renderError, shuttingDown } from "../../../core/error-responses.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { hooks, slots } from "../../../core/extension/places.ts";
import type { Routes } from "../../../core/http/exchange.ts";
import type { Guard } from "../../../core/http/request-listener.ts";
import { sendJson } from "../../../core/http/responses.ts";
import { createServer, type Server, type ServerOptions } from "../../../core/http/server.ts";
import { boolean, fail, optional, refine, withDefault } from "../../../core/schema/checker.ts";
import { openapiHandler } from "../../apis/openapi/index.ts";
import { createCapacity } from "../../bounds/capacity/index.ts";
import { NO_STORE, once, type Host, type HostPart } from "../../scale/installation/index.ts";
import { createGuard } from "./access.ts";
import { DEFAULT_ADDRESS, portIssues, portWarnings } from "./port.ts";

export { addressIn, DEFAULT_ADDRESS, portsShared, PUBLIC_ADDRESS } from "./port.ts";

/** The most connections of an operator's listener. They use file descriptors that clients need. */
export const MAX_CONNECTIONS = 256;

export interface AdminSettings {
  /** The host to listen on. Any host but loopback needs a password, and TLS or `plain`. */
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Absent: everybody who can reach the listener has access. */
  readonly password?: string | undefined;
  /** Whether the password may be sent without TLS beyond loopback. */
  readonly plain: boolean;
  /** Set by the extension `tls`. Absent: plain HTTP. */
  readonly tls?: unknown;
}

/** Absent: 127.0.0.1:8081, and no listener if that port is taken. */
export const admin = defineSetting(
  "admin",
  undefined,
  ({ credential, extended }) =>
    refine(
      strict(
        extended("admin", {
          host: withDefault(host, DEFAULT_ADDRESS.host),
          port: withDefault(port, DEFAULT_ADDRESS.port),
          password: optional(credential),
          plain: withDefault(boolean(), false),
        }),
      ),
      assertSafe,
    ),
  { fixed: true },
);

/**
 * Beyond loopback the listener must have a password, and the connection must be encrypted, unless
 * the operator says that the network is safe.
 */
function assertSafe<T extends AdminSettings>(settings: T): T {
  const { host, password, plain, tls } = settings;
  if (isLoopback(host)) return settings;
  if (password && (tls || plain)) return settings;
  const message =
    "must be a loopback address, unless there are admin.password and admin.tls; " +
    "admin.plain: true allows the password without TLS";
  return fail("invalid_value", message, ["host"]);
}

/** Whether the password is sent without TLS beyond loopback. */
const isPlain = ({ host, tls }: AdminSettings): boolean => !isLoopback(host) && !tls;

const PLAIN_WARNING =
  "allows admin.password without TLS: whoever can read the network between browser and gateway " +
  "has the password";

export const settings = [admin];

export function install(gateway: Installer): void {
  gateway.on(hooks.secrets, (config) => {
    const password = admin.of(config)?.password;
    return password === undefined ? [] : [password];
  });
  gateway.on(configHooks.issues, portIssues);
  gateway.on(configHooks.warnings, warningsOf);
  gateway.on(once, startListener);
}

function warningsOf(config: Config): readonly Warning[] {
  const configured = admin.of(config);
  if (!configured) return portWarnings(config);
  return isPlain(configured) ? [{ path: ["admin", "plain"], message: PLAIN_WARNING }] : [];
}

function startListener(host: Host): HostPart {
  const { config, diagnose, installed } = host;
  const configured = admin.of(config);
  const secure = installed.filled(slots.secure)?.(config, "admin");
  const options = { ...DEFAULT_ADDRESS, ...configured, secure };
  const listener = operatorListener(host, options, {
    title: "console and admin",
    routes: host.adminRoutes,
    guard: createGuard(options, diagnose, host.clock.monotonic),
  });
  return {
    adminRoutes: {
      "/status": { GET: ({ res }) => sendStatus(host, res) },
      "/openapi.json": { GET: openapiHandler(installed) },
    },
    ...listener,
    async listen() {
      if (configured && isPlain(configured))
        diagnose({ event: "admin_plain", level: "warn", detail: `admin.plain ${PLAIN_WARNING}` });
      try {
        await listener.listen();
      } catch (error) {
        // Nobody configured the default port, so the gateway starts without the listener.
        if (configured || (error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
        const detail = "127.0.0.1:8081 is in use: there is no admin listener; set admin.port";
        diagnose({ event: "admin_port_taken", level: "warn", detail });
      }
    },
  };
}

async function sendStatus(host: Host, res: ServerResponse): Promise<void> {
  const { status } = await host.collectStatus();
  const accounts = [...host.accounts()].map(([account, rpm]) => ({
    account,
    rpm,
    used: host.used(accountLimitName(account)),
  }));
  sendJson(res, 200, { ...status, limits: { ...status.limits, accounts } }, NO_STORE);
}

export interface OperatorListener {
  /** The name of the listener in the start line of the gateway. */
  readonly title: string;
  /** The routes. Called once, just before the server listens. */
  routes(): Routes;
  /** Checks each request before its handler. Absent: every request is allowed. */
  readonly guard?: Guard;
}

/** A listener for the operator: its connections are bounded, and its requests are not logged. */
export function operatorListener(
  { config, clock, diagnose, installed }: Host,
  address: Pick<ServerOptions, "host" | "port" | "secure">,
  { title, routes, guard = () => undefined }: OperatorListener,
): HostPart & { listen(): Promise<void> } {
  const { receive_ms, send_ms } = config.server;
  const boundPipeline = installed.filled(slots.boundPipeline);
  const capacity = createCapacity(MAX_CONNECTIONS, Infinity);
  let server: Server | undefined;
  let url: string | undefined;
  return {
    async listen() {
      const options = { ...address, receive_ms, send_ms, boundPipeline, capacity };
      server = createServer(routes(), options, {
        clock,
        access: () => undefined,
        renderError,
        failed: internalErrorReporter(diagnose),
        guard,
      });
      url = await server.listen();
    },
    announcement: () => (url === undefined ? undefined : `${title} on ${url}`),
    close: () => server?.close(0, shuttingDown()),
  };
}
