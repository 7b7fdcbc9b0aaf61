// Routes to providers through a proxy, with private authorities, or with a client certificate.
import { X509Certificate } from "node:crypto";
import { rootCertificates } from "node:tls";
import { secureContextOf } from "../../../config/certificates.ts";
import { configHooks } from "../../../config/extension.ts";
import { nullable } from "../../../config/fields.ts";
import { invalid } from "../../../config/references.ts";
import { defineSetting, type CheckContext } from "../../../config/setting.ts";
import { beforeServing } from "../../../command-line/command.ts";
import type { Config } from "../../../core/config.ts";
import { start, type Installer } from "../../../core/extension/installer.ts";
import { hooks } from "../../../core/extension/places.ts";
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
  maxConnections,
  type PooledClient,
  type SecureOptions,
} from "../pooled-client/index.ts";
import { connectThrough, type ForwardProxy } from "./tunnel.ts";

/** The address of a proxy: `http://USER:PASSWORD@HOST:PORT`. */
const proxyCheck = ({ credential }: CheckContext): Check<ForwardProxy> =>
  refine(credential, (text) => {
    // "unset" stands for a variable without a value, where that is allowed.
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

/** The text of a PEM file. Undefined: it cannot be read, where that is allowed. */
const pemCheck = ({ fileText }: CheckContext, what: "ca" | "cert" | "key") =>
  refine(nonEmpty, (path): string | undefined => {
    const text = fileText(path);
    const begins =
      what === "key" ? /-----BEGIN [\w ]*PRIVATE KEY-----/ : /-----BEGIN CERTIFICATE-----/;
    if (text !== undefined && !begins.test(text))
      fail("invalid_value", `expected a ${what === "key" ? "key" : "certificate"} in PEM`);
    if (text !== undefined && what !== "key") assertUndamaged(text);
    return text;
  });

/** Throws a ValidationError for a damaged certificate: TLS ignores it and all that follow. */
function assertUndamaged(pem: string): void {
  // As in TLS, each certificate begins a line. All other text is a comment.
  const parts = pem.split(/^(?=-----BEGIN CERTIFICATE-----)/m);
  const all = parts.filter((part) => part.startsWith("-----BEGIN CERTIFICATE-----"));
  for (const [at, one] of all.entries())
    try {
      new X509Certificate(one);
    } catch {
      fail("invalid_value", `certificate number ${at + 1} of the file is damaged`);
    }
}

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
  /** The client certificate, in PEM. */
  readonly cert: string | undefined;
  /** The key of the client certificate, in PEM. */
  readonly key: string | undefined;
}

/** The newest configuration. */
let newest: object | undefined;
/** The clients of this configuration, by route. A reload keeps the clients of unchanged routes. */
let clients = new Map<string, PooledClient>();
/** The clients of the previous configuration. Older ones are dropped: each takes a megabyte. */
let previousClients = clients;

function closeAll(): void {
  for (const client of [...previousClients.values(), ...clients.values()]) client.close();
  clients.clear();
  previousClients.clear();
}

export const settings = [generalProxy, generalCa, ownProxy, ownCa, ownCert, ownKey];

export function install(gateway: Installer): void {
  gateway.on(start, ({ on }) => on("close", closeAll));
  gateway.on(configHooks.issues, issuesIn);
  gateway.on(hooks.secrets, (config) =>
    [generalProxy.of(config), ...[...config.providers.values()].map(ownProxy.of)].flatMap(
      (proxy) => proxy?.authorization?.replace("Basic ", "") ?? [],
    ),
  );
  gateway.on(configHooks.assertReady, assertUsable);
  gateway.on(beforeServing, assertUsable);
  gateway.on(hooks.reach, ({ provider, settings, config }, transport) => {
    const route = routeOf(settings, config);
    return Object.values(route).some((part) => part !== undefined)
      ? clientOf(route, provider, config).send
      : transport;
  });
}

function routeOf(settings: object, config: object): Route {
  const proxy = ownProxy.of(settings);
  return {
    proxy: proxy === undefined ? generalProxy.of(config) : (proxy ?? undefined),
    ca: ownCa.of(settings) ?? generalCa.of(config),
    cert: ownCert.of(settings),
    key: ownKey.of(settings),
  };
}

/** Throws a ValidationError if TLS cannot use the files of a provider. */
function assertUsable(config: Config): void {
  const usable = new Set<string>();
  for (const [name, settings] of config.providers) {
    const { proxy: _, ...files } = routeOf(settings, config);
    const content = JSON.stringify(files);
    if (!usable.has(content)) securedBy(files, name);
    usable.add(content);
  }
}

function clientOf(route: Route, provider: string, config: object): PooledClient {
  if (config !== newest) [newest, previousClients, clients] = [config, clients, new Map()];
  const identity = JSON.stringify(route);
  const known = clients.get(identity) ?? previousClients.get(identity);
  const client = known ?? createClient(route, provider, maxConnections.of(config));
  clients.set(identity, client);
  return client;
}

function createClient(route: Route, provider: string, max: number | null): PooledClient {
  const { proxy } = route;
  const secured = securedBy(route, provider);
  return createPooledClient(
    max ?? undefined,
    proxy ? connectThrough(proxy, secured) : (origin) => connectTo(origin, secured),
  );
}

/**
 * The certificates for all connections of a route. Made once per route, because reading the
 * authorities blocks the event loop for tens of milliseconds.
 */
function securedBy({ ca, cert, key }: Omit<Route, "proxy">, provider: string): SecureOptions {
  if ((ca ?? cert) === undefined) return {};
  const options = {
    ...(ca !== undefined && { ca: [...rootCertificates, ca] }),
    ...(cert !== undefined && key !== undefined && { cert, key }),
  };
  try {
    return { secureContext: secureContextOf(options) };
  } catch (error) {
    const rule = "TLS cannot use its ca_file, or cert_file and key_file";
    return fail("invalid_value", `${rule}: ${(error as Error).message}`, ["providers", provider]);
  }
}

/** Client certificates without keys, and keys without certificates. */
const issuesIn = (json: unknown): readonly ValidationIssue[] =>
  Object.entries(asObject(asObject(json)["providers"])).flatMap(([name, written]) => {
    const { cert_file, key_file } = asObject(written);
    const [hasCert, hasKey] = [cert_file, key_file].map((file) => (file ?? null) !== null);
    if (hasCert === hasKey) return [];
    const missing = hasKey ? "cert_file" : "key_file";
    return [invalid(["providers", name, missing], "is required with the other one of the pair")];
  });
