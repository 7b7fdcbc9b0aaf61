// Credentials that change over time: tokens of clouds, signatures of requests, and tokens that a
// command prints.
import type { Installer } from "../../../core/extension/installer.ts";
import { invalid } from "../../../config/references.ts";
import { configHooks } from "../../../config/extension.ts";
import { defineSetting } from "../../../config/setting.ts";
import { hooks } from "../../../core/extension/places.ts";
import { variant, type Infer, type ValidationIssue } from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { authorized } from "./authorized.ts";
import { aws } from "./aws/index.ts";
import { azure } from "./azure.ts";
import { command } from "./command.ts";
import { google } from "./google.ts";
import type { Credentials, CredentialServices, CredentialType } from "../token-services/index.ts";

/** By `credentials.type`. */
const TYPES = { aws, azure, command, google };

/** Checked settings of any type. */
type Settings = Infer<ReturnType<(typeof TYPES)[keyof typeof TYPES]["check"]>>;

const credentials = defineSetting("providers.*.credentials", undefined, (context) =>
  variant("type", {
    aws: TYPES.aws.check(context),
    azure: TYPES.azure.check(context),
    command: TYPES.command.check(context),
    google: TYPES.google.check(context),
  }),
);

export const settings = [credentials];

export function install(gateway: Installer): void {
  /** By the settings of providers, so that all models of one share a token until a reload. */
  const credentialsBySettings = new WeakMap<object, Credentials>();
  gateway.on(configHooks.issues, issuesOf);
  gateway.on(hooks.secrets, ({ providers }) =>
    [...providers.values()]
      .flatMap((provider) => credentials.of(provider)?.secrets ?? [])
      .filter((secret) => secret !== undefined),
  );
  gateway.on(hooks.reach, (destination, transport, services) => {
    const settings = credentials.of(destination.settings);
    if (!settings) return transport;
    const { settings: row, dialect } = destination;
    const known = credentialsBySettings.get(row);
    const usable = known ?? create(settings, { ...services, destination, transport });
    credentialsBySettings.set(row, usable);
    return authorized(usable, dialect, transport);
  });
}

/** The cast is safe: each type gets the settings that its own check returned. */
const create = (settings: Settings, services: CredentialServices): Credentials =>
  (TYPES[settings.type] as CredentialType<Settings>).create(settings, services);

/** Providers that have both a key and credentials, or no region for Amazon's signatures. */
const issuesOf = (json: unknown): readonly ValidationIssue[] =>
  Object.entries(asObject(asObject(json)["providers"])).flatMap(([name, written]) => {
    const provider = asObject(written);
    const isStated = (field: string): boolean => (provider[field] ?? null) !== null;
    if (!isStated("credentials")) return [];
    const path = ["providers", name];
    const key = ["api_key", "api_keys"].find(isStated);
    if (key) return [invalid([...path, "credentials"], `cannot be used with ${key}`)];
    if (isStated("auth"))
      return [
        invalid(
          [...path, "auth"],
          "cannot be used with credentials, which have headers of their own",
        ),
      ];
    const isAmazon = asObject(provider["credentials"])["type"] === "aws";
    const isReportedAlready = provider["vendor"] === "bedrock" && !isStated("base_url");
    if (!isAmazon || isStated("region") || isReportedAlready) return [];
    return [invalid([...path, "region"], "is required for AWS credentials")];
  });
