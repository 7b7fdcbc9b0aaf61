// The certificate and key that HTTPS is served with, read from the files that the configuration
// names.
import { createSecureContext } from "node:tls";
import { ValidationError, fail, type ValidationIssue } from "../../../core/schema/checker.ts";
import {
  MAX_CERTIFICATE_BYTES,
  readRegularFile,
  whyUnreadable,
} from "../../../config/regular-file.ts";

/** The names of two files in PEM. */
export interface CertificateFiles {
  /** The certificate, followed by its intermediate certificates. */
  readonly cert_file: string;
  /** The private key of the certificate. */
  readonly key_file: string;
}

/** Their contents. */
export interface Certificate {
  /** In PEM, as it stands in the file. */
  readonly cert: Buffer;
  /** In PEM, as it stands in the file. A secret. */
  readonly key: Buffer;
}

/**
 * Throws a ValidationError with the path of each file that cannot be read, or that of both if they
 * are not a pair. `section` is that of gateway.json that names them.
 */
export function readCertificate(files: CertificateFiles, section: string): Certificate {
  const faults: ValidationIssue[] = [];
  const read = (field: keyof typeof files): Buffer => {
    try {
      return readRegularFile(files[field], MAX_CERTIFICATE_BYTES).bytes;
    } catch (error) {
      const message = `${files[field]} cannot be read: ${whyUnreadable(error)}`;
      faults.push({ path: [section, "tls", field], code: "invalid_value", message });
      return Buffer.alloc(0);
    }
  };
  const pair = { cert: read("cert_file"), key: read("key_file") };
  if (faults.length > 0) throw new ValidationError(faults);
  const { cert, key } = pair;
  const path = [section, "tls"];
  assertUsable({ cert }, `expected a certificate in PEM in ${files.cert_file}`, path);
  assertUsable(
    { key },
    `expected a private key in PEM, without a passphrase, in ${files.key_file}`,
    path,
  );
  assertUsable(pair, `the key in ${files.key_file} is not that of ${files.cert_file}`, path);
  return pair;
}

function assertUsable(files: Partial<Certificate>, rule: string, path: readonly string[]): void {
  try {
    createSecureContext(files);
  } catch (error) {
    fail("invalid_value", `${rule}: ${(error as Error).message}`, path);
  }
}
