// Finds mistakes in a configuration that its shape does not show: duplicate members, a missing key
// of a provider, and an address that repeats the path which the gateway appends. Reads the raw
// JSON, so that these are found even if the shape of another part is wrong.
import { configHooks } from "../../../config/extension.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { vendorPreset } from "../../../config/vendors.ts";
import type { ValidationIssue } from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import type { Formats } from "../../../config/vendors.ts";
import { invalid } from "../../../config/references.ts";
import { duplicateMembers } from "./duplicates.ts";

export function install(gateway: Installer): void {
  gateway.on(configHooks.textIssues, duplicateMembers);
  gateway.on(configHooks.issues, providersIssues);
}

function providersIssues(json: unknown, formats: Formats): ValidationIssue[] {
  return Object.entries(asObject(asObject(json)["providers"])).flatMap(([name, provider]) =>
    providerIssues(["providers", name], asObject(provider), formats),
  );
}

function providerIssues(
  path: ValidationIssue["path"],
  provider: Readonly<Record<string, unknown>>,
  { dialects }: Formats,
): ValidationIssue[] {
  const preset = vendorPreset(provider);
  if (!preset) return []; // the schema's check reports the unknown vendor
  const issues: ValidationIssue[] = [];
  const { base_url, api_key, api_keys, credentials } = provider;
  const key = api_key ?? api_keys ?? credentials ?? null;
  const address = typeof base_url === "string" ? base_url.replace(/\/+$/, "") : "";
  // At an address other than the vendor's, a proxy may add the key.
  const isVendorAddress = address === "" || address === preset.base_url;
  if (isVendorAddress && preset.needs_key && key === null) {
    const message = `is required: ${preset.title} answers nobody without one`;
    issues.push(invalid([...path, "api_key"], message));
  }
  const { path: fullPath } = preset.traits;
  const { appended } = dialects.get(preset.dialect) ?? {};
  const repeated =
    fullPath === undefined ? appended?.end.exec(address)?.[0] : sharedPath(fullPath, address);
  if (repeated !== undefined) {
    const message = `must not end in ${repeated}: ${fullPath ?? appended?.path} is appended to it`;
    issues.push(invalid([...path, "base_url"], message));
  }
  return issues;
}

/** The path of an address, if `path` begins with it. */
function sharedPath(path: string, address: string): string | undefined {
  const { pathname } = URL.canParse(address) ? new URL(address) : { pathname: "/" };
  return pathname !== "/" && path.startsWith(pathname) ? pathname : undefined;
}
