// What the parts of a configuration demand of each other and of the provider's vendor, beyond their shape: faults, with which no gateway
// starts. They look at the raw JSON, so that a fault of shape elsewhere hides none.
import { vendorPreset } from "../providers/vendors.ts";
import type { ValidationIssue } from "../schema/checker.ts";
import { asObject } from "../schema/untrusted-json.ts";
import { dialectNamed, VENDORS } from "./dialects.ts";

type Path = ValidationIssue["path"];
const fault = (path: Path, message: string): ValidationIssue => ({
  path,
  code: "invalid_value",
  message,
});

export function ruleFaults(json: unknown): ValidationIssue[] {
  const root = asObject(json);
  return [
    ...Object.entries(asObject(root["providers"])).flatMap(([name, provider]) =>
      providerFaults(["providers", name], asObject(provider)),
    ),
    ...portFaults(asObject(root["server"]), root["admin"]),
  ];
}

function providerFaults(path: Path, provider: Record<string, unknown>): ValidationIssue[] {
  const row = vendorPreset(VENDORS, provider);
  if (!row) return []; // a fault of shape already
  const faults: ValidationIssue[] = [];
  if (usesVendorsAddress(provider) && lacksKey(provider))
    faults.push(
      fault([...path, "api_key"], `is required: ${row.title} answers nobody without one`),
    );
  const appended = dialectNamed(row.dialect)?.appended;
  const end = appended?.end.exec(addressOf(provider))?.[0];
  if (appended && end !== undefined)
    faults.push(
      fault([...path, "base_url"], `must not end in ${end}: ${appended.path} is appended to it`),
    );
  return faults;
}

/** Whether a provider's vendor refuses requests without a key, and none is given. */
export const lacksKey = (provider: Readonly<Record<string, unknown>>): boolean =>
  vendorPreset(VENDORS, provider)?.needs_key === true &&
  (provider["api_key"] ?? undefined) === undefined;

/** Whether requests go to the vendor itself, and not to a proxy, which may have the key. */
export function usesVendorsAddress(provider: Readonly<Record<string, unknown>>): boolean {
  const address = addressOf(provider);
  return address === "" || address === vendorPreset(VENDORS, provider)?.base_url;
}

const addressOf = ({ base_url }: Readonly<Record<string, unknown>>): string =>
  typeof base_url === "string" ? base_url.replace(/\/+$/, "") : "";

/** The public and the admin listener cannot share a port. Port 0 is any that is free. */
function portFaults(server: Record<string, unknown>, admin: unknown): ValidationIssue[] {
  if (admin === undefined || admin === null) return []; // the default one is done without where its port is taken
  const { host = "127.0.0.1", port = 8081 } = asObject(admin);
  const taken = sharePort(
    { host: server["host"] ?? "127.0.0.1", port: server["port"] ?? 8080 },
    { host, port },
  );
  return taken ? [fault(["admin", "port"], "is server.port too, on the same host")] : [];
}

interface Listener {
  readonly host: unknown;
  readonly port: unknown;
}

export function sharePort(one: Listener, other: Listener): boolean {
  if (one.port !== other.port || one.port === 0) return false;
  const names = [hostOf(one), hostOf(other)];
  if (names[0] === names[1] || names.includes("::")) return true;
  const isIpv6 = names.some((name) => name.includes(":"));
  if (names.includes("0.0.0.0")) return !isIpv6;
  return names.includes("localhost") && names.some((name) => ["127.0.0.1", "::1"].includes(name));
}

const hostOf = ({ host }: Listener): string => String(host).toLowerCase();
