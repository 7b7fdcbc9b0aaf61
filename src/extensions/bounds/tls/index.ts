// HTTPS on the public and the admin listener. A reload reads the files of the certificate and its
// key again.
import type { Installer } from "../../../core/extension/installer.ts";
import https from "node:https";
import { secureContextOf, type Credentials } from "../../../config/certificates.ts";
import { configHooks } from "../../../config/extension.ts";
import { slots, type ListenerSection, type SecureSection } from "../../../core/extension/places.ts";
import { defineSetting } from "../../../config/setting.ts";
import { strict } from "../../../config/fields.ts";
import type { Config } from "../../../core/config.ts";
import {
  MAX_CERTIFICATE_BYTES,
  readRegularFile,
  whyUnreadable,
} from "../../../config/regular-file.ts";
import {
  fail,
  lenient,
  nonEmpty,
  object,
  ValidationError,
  type ValidationIssue,
} from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
/** The names of two files in PEM. */
const FILES = {
  /** The certificate, followed by its intermediate certificates. */
  cert_file: nonEmpty,
  /** The private key of the certificate. */
  key_file: nonEmpty,
};
type Files = Readonly<Record<keyof typeof FILES, string>>;
const files = lenient(object(FILES));
/** Absent: plain HTTP. */
const settingOf = (section: ListenerSection) =>
  defineSetting(`${section}.tls`, undefined, () => strict(FILES));
const SETTINGS = { server: settingOf("server"), admin: settingOf("admin") };

export const settings = Object.values(SETTINGS);

export function install(gateway: Installer): void {
  gateway.fill(slots.secure, secureSection);
  gateway.on(configHooks.hostIssues, (json) => [
    ...issuesIn(json, "server"),
    ...issuesIn(json, "admin"),
  ]);
}

function secureSection(config: Config, section: ListenerSection): SecureSection | undefined {
  const setting = SETTINGS[section];
  const configured = setting.of(config);
  if (!configured) return undefined;
  const certificate = readCertificate(configured, section);
  const servers: https.Server[] = [];
  return {
    create(options) {
      const handshakeTimeout = options.headersTimeout;
      const server = https.createServer({ ...options, ...certificate, handshakeTimeout });
      // Must run before the core's listener, which sends a response: that needs a TLS session.
      server.prependListener("tlsClientError", ({ code }: NodeJS.ErrnoException, socket) => {
        if (code === "ERR_TLS_HANDSHAKE_TIMEOUT") socket.destroy();
      });
      servers.push(server);
      return server;
    },
    reload(changed) {
      const wanted = setting.of(changed);
      // Only a restart switches between HTTP and HTTPS.
      if (!wanted) return () => undefined;
      const renewed = readCertificate(wanted, section);
      return () => {
        for (const server of servers) server.setSecureContext(renewed);
      };
    },
  };
}

/** The issues of the certificate files that a section of the configuration names. */
function issuesIn(json: unknown, section: ListenerSection): readonly ValidationIssue[] {
  const configured = files(asObject(asObject(json)[section])["tls"]);
  if (!configured) return []; // plain HTTP, or an issue that the schema's check reports
  try {
    readCertificate(configured, section);
    return [];
  } catch (error) {
    if (error instanceof ValidationError) return error.issues;
    throw error;
  }
}

/**
 * The certificate and its key. Throws a ValidationError with an issue for each file that cannot be
 * read or used, or one issue if they are not a pair. `section`: the section that names the files.
 */
function readCertificate(files: Files, section: ListenerSection) {
  const faults: ValidationIssue[] = [];
  const read = (field: keyof Files): Buffer => {
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

function assertUsable(pair: Credentials, rule: string, path: readonly string[]): void {
  try {
    secureContextOf(pair);
  } catch (error) {
    fail("invalid_value", `${rule}: ${(error as Error).message}`, path);
  }
}
