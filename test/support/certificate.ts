// Creates a certificate for localhost and 127.0.0.1, and its key, with openssl.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { folder } from "./folder.ts";

/** `key`: the kind of key, as `openssl req -newkey` takes it. */
export function certificate(key = "ec -pkeyopt ec_paramgen_curve:prime256v1"): {
  cert_file: string;
  key_file: string;
} {
  const dir = folder();
  const files = { cert_file: join(dir, "cert.pem"), key_file: join(dir, "key.pem") };
  const words =
    `req -x509 -newkey ${key} -nodes -days 2 ` +
    "-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1,DNS:localhost";
  const args = [...words.split(" "), "-keyout", files.key_file, "-out", files.cert_file];
  execFileSync("openssl", args, { stdio: "ignore" });
  return files;
}
