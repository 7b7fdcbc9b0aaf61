// A certificate and its key, made by openssl for a test, for localhost and 127.0.0.1.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { folder } from "./folder.ts";

export function certificate(): { cert_file: string; key_file: string } {
  const dir = folder();
  const files = { cert_file: join(dir, "cert.pem"), key_file: join(dir, "key.pem") };
  const subject = [
    ...["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"],
    ...["-days", "2"],
  ];
  execFileSync(
    "openssl",
    [
      "req",
      "-x509",
      "-newkey",
      "ec",
      "-pkeyopt",
      "ec_paramgen_curve:prime256v1",
      "-nodes",
      ...subject,
      "-keyout",
      files.key_file,
      "-out",
      files.cert_file,
    ],
    { stdio: "ignore" },
  );
  return files;
}
