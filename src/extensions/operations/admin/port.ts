// The addresses of listeners, and the check that no two of them share a port of one host.
import type { Warning } from "../../../config/extension.ts";
import { invalid } from "../../../config/references.ts";
import type { Config } from "../../../core/config.ts";
import type { ValidationIssue } from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";

/** The address of the admin listener without an admin section. */
export const DEFAULT_ADDRESS = { host: "127.0.0.1", port: 8081 };

/** The address of the public listener, unless the server section states one. */
export const PUBLIC_ADDRESS = { host: "127.0.0.1", port: 8080 };

interface Address {
  readonly host: unknown;
  readonly port: unknown;
}

/** The address in a section, completed by the defaults. */
export function addressIn(section: unknown, defaults: Address): Address {
  const { host, port } = asObject(section);
  return { host: host ?? defaults.host, port: port ?? defaults.port };
}

export function portIssues(json: unknown): ValidationIssue[] {
  const { server, admin } = asObject(json);
  // Without an admin section a taken port is only a warning: portWarnings().
  if (admin === undefined || admin === null) return [];
  const address = addressIn(admin, DEFAULT_ADDRESS);
  return portsShared(["admin"], address, { "server.port": addressIn(server, PUBLIC_ADDRESS) });
}

/** One issue for each of `others`, by name, that shares the port of the section at `path`. */
export function portsShared(
  path: readonly string[],
  address: Address,
  others: Readonly<Record<string, Address>>,
): ValidationIssue[] {
  const taken = Object.entries(others).filter(([, other]) => sharePort(address, other));
  return taken.map(([name]) => invalid([...path, "port"], `is ${name} too, on the same host`));
}

/** The warning if the public listener has the admin listener's default port. */
export function portWarnings({ server }: Config): Warning[] {
  if (!sharePort(server, DEFAULT_ADDRESS)) return [];
  const message =
    "is the port of the admin listener where no admin section says another: there will be none";
  return [{ path: ["server", "port"], message }];
}

/** Whether two listeners need the same port of one host. Port 0 is any free port. */
function sharePort(one: Address, other: Address): boolean {
  if (one.port !== other.port || one.port === 0) return false;
  const names = [one, other].map(({ host }) => String(host).toLowerCase());
  if (names[0] === names[1] || names.includes("::")) return true;
  if (names.includes("0.0.0.0")) return !names.some((name) => name.includes(":"));
  return names.includes("localhost") && names.some((name) => ["127.0.0.1", "::1"].includes(name));
}
