// Routes to providers other than a direct connection: through a proxy, with
// private authorities, or with a client certificate.
import { createSecureContext, rootCertificates } from "node:tls";
import { configMoments } from "../../../config/extension.ts";
import { nullable } from "../../../config/fields.ts";
import { invalid } from "../../../config/references.ts";
import { defineSetting, type CheckContext } from "../../../config/setting.ts";
import { beforeServing } from "../../../command-line/command.ts";
import type { Config } from "../../../core/config.ts";
import { start, type Installer } from "../../../core/extension/installer.ts";
import { moments } from "../../../core/extension/places.ts";
import {
  fail,
  nonEmpty,
  refine,
  type Check,
  type ValidationIssue,
} from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import {
  connectTo,
  createPooledClient,
  type PooledClient,
  type SecureOptions,
} from "../pooled-client/index.ts";
import { connectThrough, type ForwardProxy } from "./tunnel.ts";

/** The address of a proxy: `http://USER:PASSWORD@HOST:PORT`. */
const proxyCheck = ({ credential }: CheckContext): Check<ForwardProxy> =>
  refine(credential, (text) => {
    // The placeholder of a variable that is not set, where that is no issue.
    const url = new URL(URL.canParse(text) ? text : "http://unset.invalid");
    const isPlain = url.protocol === "http:" && url.pathname === "/" && url.search === "";
    if (!isPlain || (!URL.canParse(text) && text !== "unset"))
      fail("invalid_value", "expected http://HOST:PORT or http://USER:PASSWORD@HOST:PORT");
    const user = `${decoded(url.username)}:${decoded(url.password)}`;
    const basic = `Basic ${Buffer.from(user).toString("base64")}`;
    return {
      host: url.hostname.replace(/^\[|\]$/g, ""),
      port: Number(url.port || "80"),
      authorization: user === ":" ? undefined : basic,
    };
  });

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return fail("invalid_value", "has a % that encodes nothing: write %25");
  }
}

/** The text of a file in PEM. Undefined: it cannot be read, where that is no issue. */
const pemCheck = ({ fileText }: CheckContext, what: "ca" | "cert" | "key") =>
  refine(nonEmpty, (path): string | undefined => {
    const text = fileText(path);
    const begins =
      what === "key" ? /-----BEGIN [\w ]*PRIVATE KEY-----/ : /-----BEGIN CERTIFICATE-----/;
    if (text === undefined || begins.test(text)) return text;
    return fail("invalid_value", `expected a ${what === "key" ? "key" : "certificate"} in PEM`);
  });

const generalProxy = defineSetting("upstream.proxy", undefined, (context) => proxyCheck(context));
const generalCa = defineSetting("upstream.ca_file", undefined, (context) =>
  pemCheck(context, "ca"),
);
/** Null: the provider is reached without the general proxy. */
const ownProxy = defineSetting("providers.*.proxy", undefined, (context) =>
  nullable(proxyCheck(context)),
);
const pem = (name: "ca" | "cert" | "key") =>
  defineSetting(`providers.*.${name}_file`, undefined, (context) => pemCheck(context, name));
const [ownCa, ownCert, ownKey] = [pem("ca"), pem("cert"), pem("key")];

/** The route to one provider. */
interface Route {
  readonly proxy: ForwardProxy | undefined;
  /** Authorities in addition to Node's, in PEM. */
  readonly ca: string | undefined;
  /** Of this client, in PEM. */
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** Clients of routes that are not plain, by the routes. Unchanged ones outlive a reload. */
const clients = new Map<string, PooledClient>();
/** A configuration has fewer routes; after many reloads all are closed and opened anew. */
const MAX_CLIENTS = 1_000;

function closeAll(): void {
  for (const client of clients.values()) client.close();
  clients.clear();
}

export const settings = [generalProxy, generalCa, ownProxy, ownCa, ownCert, ownKey];

export function install(gateway: Installer): void {
  gateway.on(start, ({ on }) => on("close", closeAll));
  gateway.on(configMoments.issues, issuesIn);
  gateway.on(moments.secrets, (config) =>
    [generalProxy.of(config), ...[...config.providers.values()].map(ownProxy.of)].flatMap(
      (proxy) => proxy?.authorization?.replace("Basic ", "") ?? [],
    ),
  );
  gateway.on(configMoments.assertReady, assertUsable);
  gateway.on(beforeServing, assertUsable);
  gateway.on(moments.reach, ({ provider, settings, config }, transport) => {
    const route = routeOf(settings, config);
    return Object.values(route).some((part) => part !== undefined)
      ? clientOf(route, provider).send
      : transport;
  });
}

function routeOf(settings: object, config: object): Route {
  const own = ownProxy.of(settings);
  return {
    proxy: own === undefined ? generalProxy.of(config) : (own ?? undefined),
    ca: ownCa.of(settings) ?? generalCa.of(config),
    cert: ownCert.of(settings),
    key: ownKey.of(settings),
  };
}

/** Throws a ValidationError if the files of a provider are not what TLS can use. */
function assertUsable(config: Config): void {
  const usable = new Set<string>();
  for (const [name, settings] of config.providers) {
    const { proxy: _, ...files } = routeOf(settings, config);
    const content = JSON.stringify(files);
    if (!usable.has(content)) securedBy(files, name);
    usable.add(content);
  }
}

function clientOf(route: Route, provider: string): PooledClient {
  const place = JSON.stringify(route);
  if (clients.size >= MAX_CLIENTS) closeAll();
  const client = clients.get(place) ?? createClient(route, provider);
  clients.set(place, client);
  return client;
}

function createClient(route: Route, provider: string): PooledClient {
  const { proxy } = route;
  const secured = securedBy(route, provider);
  return createPooledClient(
    undefined,
    proxy ? connectThrough(proxy, secured) : (origin) => connectTo(origin, secured),
  );
}

/**
 * The certificates for all connections of a route. Node takes tens of milliseconds to read all
 * authorities, during which the event loop is blocked: for each connection that would be too long.
 */
function securedBy({ ca, cert, key }: Omit<Route, "proxy">, provider: string): SecureOptions {
  if ((ca ?? cert) === undefined) return {};
  const options = {
    ...(ca !== undefined && { ca: [...rootCertificates, ca] }),
    ...(cert !== undefined && key !== undefined && { cert, key }),
  };
  try {
    return { secureContext: createSecureContext(options) };
  } catch (error) {
    const rule = "TLS cannot use its ca_file, or cert_file and key_file";
    return fail("invalid_value", `${rule}: ${(error as Error).message}`, ["providers", provider]);
  }
}

/** Certificates of clients without their keys, or the other way round. */
const issuesIn = (json: unknown): readonly ValidationIssue[] =>
  Object.entries(asObject(asObject(json)["providers"])).flatMap(([name, written]) => {
    const { cert_file, key_file } = asObject(written);
    const [hasCert, hasKey] = [cert_file, key_file].map((file) => (file ?? null) !== null);
    if (hasCert === hasKey) return [];
    const missing = hasKey ? "cert_file" : "key_file";
    return [invalid(["providers", name, missing], "is required beside the other of the pair")];
  });
