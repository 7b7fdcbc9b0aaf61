// Credentials of providers that do not stay the same: tokens of clouds, signatures, and what a
// command prints.
import { invalid } from "../../../config/references.ts";
import { configMoments, type ConfigExtension } from "../../../config/extension.ts";
import { defineSetting } from "../../../config/setting.ts";
import { moments } from "../../../core/extension/places.ts";
import {
  optional,
  variant,
  type Infer,
  type ValidationIssue,
} from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import type { Transport } from "../../../core/upstream/transport.ts";
import { authorized } from "./authorized.ts";
import { azure } from "./azure.ts";
import { command } from "./command.ts";
import type { CredentialServices, Credentials, CredentialType } from "./credentials.ts";

/** By `credentials.type`. */
const TYPES = { azure, command };

/** Checked settings of any type. */
type Settings = Infer<ReturnType<(typeof TYPES)[keyof typeof TYPES]["check"]>>;

const credentials = defineSetting<Settings | undefined>(
  "providers.*.credentials",
  undefined,
  (context) =>
    optional(variant("type", { azure: azure.check(context), command: command.check(context) })),
);

/** The credentials of a provider in one format, and what they were made from. */
interface Known {
  readonly settings: string;
  readonly credentials: Credentials;
  /** Calls token services. */
  transport: Transport;
}

export const extension: ConfigExtension = {
  name: "credentials",
  settings: [credentials],
  install(gateway) {
    /** A token outlives a reload that changes nothing of its settings. */
    const known = new Map<string, Known>();
    gateway.on(configMoments.issues, twoKeys);
    gateway.on(moments.secrets, ({ providers }) =>
      [...providers.values()].flatMap((provider) => secretsIn(credentials.of(provider))),
    );
    gateway.on(moments.reach, (destination, transport, services) => {
      const settings = credentials.of(destination.settings);
      if (!settings) return transport;
      const place = JSON.stringify([destination.provider, destination.dialect]);
      const earlier = known.get(place);
      const own =
        earlier?.settings === JSON.stringify(settings)
          ? earlier
          : created(settings, { ...services, destination, transport });
      own.transport = transport;
      known.set(place, own);
      return authorized(own.credentials, transport);
    });
  },
};

function created(settings: Settings, services: CredentialServices): Known {
  // Each type takes what its own check has returned.
  const type: CredentialType<Settings> = TYPES[settings.type];
  const known: Known = {
    settings: JSON.stringify(settings),
    transport: services.transport,
    credentials: type.create(settings, {
      ...services,
      transport: (url, request) => known.transport(url, request),
    }),
  };
  return known;
}

/** Settings of these names are secrets. */
const SECRET = /secret|token|password/;

const secretsIn = (settings: object = {}): readonly string[] =>
  Object.entries(settings).flatMap(([name, value]) =>
    SECRET.test(name) && typeof value === "string" ? [value] : [],
  );

/** Providers that have both a key and credentials. */
const twoKeys = (json: unknown): readonly ValidationIssue[] =>
  Object.entries(asObject(asObject(json)["providers"])).flatMap(([name, written]) => {
    const provider = asObject(written);
    const key = ["api_key", "api_keys"].find((field) => (provider[field] ?? null) !== null);
    if (key === undefined || (provider["credentials"] ?? null) === null) return [];
    return [invalid(["providers", name, "credentials"], `cannot stand beside ${key}`)];
  });
