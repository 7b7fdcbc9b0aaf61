// The public and the admin listener cannot share a port of one host.
import type { Warning } from "../../../config/extension.ts";
import { invalid } from "../../../config/references.ts";
import type { Config } from "../../../core/config.ts";
import type { ValidationIssue } from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";

/** Where the admin listener is, if no admin section says another place. */
export const DEFAULT_ADDRESS = { host: "127.0.0.1", port: 8081 };

/** Where the public listener is, if the server section does not say. */
export const PUBLIC_ADDRESS = { host: "127.0.0.1", port: 8080 };

interface Address {
  readonly host: unknown;
  readonly port: unknown;
}

/** The address that a section states, in part or whole. */
export function addressIn(section: unknown, defaults: Address): Address {
  const { host, port } = asObject(section);
  return { host: host ?? defaults.host, port: port ?? defaults.port };
}

export function portIssues(json: unknown): ValidationIssue[] {
  const { server, admin } = asObject(json);
  // Where the default port is taken, there is no listener.
  if (admin === undefined || admin === null) return [];
  const address = addressIn(admin, DEFAULT_ADDRESS);
  return portsShared(["admin"], address, { "server.port": addressIn(server, PUBLIC_ADDRESS) });
}

/** The issues of the section at `path` whose port is that of one of the others, by their names. */
export function portsShared(
  path: readonly string[],
  address: Address,
  others: Readonly<Record<string, Address>>,
): ValidationIssue[] {
  const taken = Object.entries(others).filter(([, other]) => sharePort(address, other));
  return taken.map(([name]) => invalid([...path, "port"], `is ${name} too, on the same host`));
}

/** Where no admin section says another place. */
export function portWarnings({ server }: Config): Warning[] {
  if (!sharePort(server, DEFAULT_ADDRESS)) return [];
  const message =
    "is the port of the admin listener where no admin section says another: there will be none";
  return [{ path: ["server", "port"], message }];
}

/** Whether two listeners would have the same port of one host. Port 0 is any that is free. */
function sharePort(one: Address, other: Address): boolean {
  if (one.port !== other.port || one.port === 0) return false;
  const names = [one, other].map(({ host }) => String(host).toLowerCase());
  if (names[0] === names[1] || names.includes("::")) return true;
  if (names.includes("0.0.0.0")) return !names.some((name) => name.includes(":"));
  return names.includes("localhost") && names.some((name) => ["127.0.0.1", "::1"].includes(name));
}
