// Mistakes in a configuration that its shape does not show: members that stand twice, and what a
// provider's vendor requires: its key, an address that does not repeat what is appended to it. The
// raw JSON is looked at, so that an issue of shape elsewhere hides none.
import { configMoments } from "../../../config/extension.ts";
import type { Installer } from "../../../core/extension/installer.ts";
import { vendorPreset } from "../../../config/vendors.ts";
import type { ValidationIssue } from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import type { Formats } from "../../../config/vendors.ts";
import { invalid } from "../../../config/references.ts";
import { repeatedMembers } from "./duplicates.ts";

export function install(gateway: Installer): void {
  gateway.on(configMoments.textIssues, repeatedMembers);
  gateway.on(configMoments.issues, ruleIssues);
}

function ruleIssues(json: unknown, formats: Formats): ValidationIssue[] {
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
  if (!preset) return []; // an issue of shape already
  const issues: ValidationIssue[] = [];
  const { base_url, api_key, api_keys, credentials } = provider;
  const key = api_key ?? api_keys ?? credentials ?? null;
  const address = typeof base_url === "string" ? base_url.replace(/\/+$/, "") : "";
  // Behind another address a proxy may have the key.
  const isVendors = address === "" || address === preset.base_url;
  if (isVendors && preset.needs_key && key === null) {
    const message = `is required: ${preset.title} answers nobody without one`;
    issues.push(invalid([...path, "api_key"], message));
  }
  const { path: own } = preset.traits;
  const { appended } = dialects.get(preset.dialect) ?? {};
  const end = own === undefined ? appended?.end.exec(address)?.[0] : beginningOf(own, address);
  if (end !== undefined) {
    const message = `must not end in ${end}: ${own ?? appended?.path} is appended to it`;
    issues.push(invalid([...path, "base_url"], message));
  }
  return issues;
}

/** The path of an address, if it is the beginning of `path`. */
function beginningOf(path: string, address: string): string | undefined {
  const { pathname } = URL.canParse(address) ? new URL(address) : { pathname: "/" };
  return pathname !== "/" && path.startsWith(pathname) ? pathname : undefined;
}
