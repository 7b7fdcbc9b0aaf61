// The certificate and key that HTTPS is served with.
import { readFileSync } from "node:fs";
import { createSecureContext } from "node:tls";
import { fail } from "../protocol/checker.ts";

/** A file that cannot be read, or is not what it should be, is a fault of the configuration, with its path. */
export function readTls(files: { readonly cert_file: string; readonly key_file: string }): { cert: Buffer; key: Buffer } {
  const read = (field: "cert_file" | "key_file") => {
    try {
      return readFileSync(files[field]);
    } catch (error) {
      return fail("invalid_value", `cannot be read: ${(error as NodeJS.ErrnoException).code}`, ["server", "tls", field]);
    }
  };
  const pair = { cert: read("cert_file"), key: read("key_file") };
  try {
    createSecureContext(pair);
  } catch (error) {
    fail("invalid_value", `not a certificate and its key: ${(error as Error).message}`, ["server", "tls"]);
  }
  return pair;
}
