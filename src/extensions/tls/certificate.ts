// Reads the certificate and the key that HTTPS is served with from the files in the configuration.
import { createSecureContext } from "node:tls";
import { ValidationError, fail, type ValidationIssue } from "../../core/schema/checker.ts";
import {
  MAX_CERTIFICATE_BYTES,
  readRegularFile,
  whyUnreadable,
} from "../../core/config/regular-file.ts";

/** The names of two files in PEM. */
export interface CertificateFiles {
  readonly cert_file: string;
  readonly key_file: string;
}

/** The contents of two files in PEM. */
export interface CertificatePair {
  readonly cert: Buffer;
  readonly key: Buffer;
}

/**
 * Reads both files. Throws a ValidationError with the path of each file that cannot be read, or
 * with the path of `tls` if they are not a pair. `section` is the part of the configuration that
 * has `tls`.
 */
export function readTls(files: CertificateFiles, section = "server"): CertificatePair {
  const faults: ValidationIssue[] = [];
  const read = (field: keyof CertificateFiles): Buffer => {
    try {
      return readRegularFile(files[field], MAX_CERTIFICATE_BYTES).bytes;
    } catch (error) {
      const message = `cannot be read: ${whyUnreadable(error)}`;
      faults.push({ path: [section, "tls", field], code: "invalid_value", message });
      return Buffer.alloc(0);
    }
  };
  const pair = { cert: read("cert_file"), key: read("key_file") };
  if (faults.length > 0) throw new ValidationError(faults);
  try {
    createSecureContext(pair);
  } catch (error) {
    const rule = `not a certificate and its key: ${(error as Error).message}`;
    return fail("invalid_value", rule, [section, "tls"]);
  }
  return pair;
}
