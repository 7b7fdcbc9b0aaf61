// HTTPS on the public and on the admin listener. The certificate is read again at each reload.
import type { Installer } from "../../../core/extension/installer.ts";
import https from "node:https";
import { configMoments } from "../../../config/extension.ts";
import { slots, type ListenerSection, type SecureSection } from "../../../core/extension/places.ts";
import { defineSetting } from "../../../config/setting.ts";
import { strict } from "../../../config/fields.ts";
import type { Config } from "../../../core/config.ts";
import {
  lenient,
  nonEmpty,
  object,
  ValidationError,
  type ValidationIssue,
} from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { readCertificate } from "./certificate.ts";

const NAMES = { cert_file: nonEmpty, key_file: nonEmpty };
const files = lenient(object(NAMES));
/** Absent: plain HTTP. */
const settingOf = (section: ListenerSection) =>
  defineSetting(`${section}.tls`, undefined, () => strict(NAMES));
const SETTINGS = { server: settingOf("server"), admin: settingOf("admin") };

export const settings = Object.values(SETTINGS);

export function install(gateway: Installer): void {
  gateway.fill(slots.secure, secureSection);
  gateway.on(configMoments.issuesHere, (json) => [
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
      // Before the core answers: nothing can be sent before there is a connection.
      server.prependListener("tlsClientError", ({ code }: NodeJS.ErrnoException, socket) => {
        if (code === "ERR_TLS_HANDSHAKE_TIMEOUT") socket.destroy();
      });
      servers.push(server);
      return server;
    },
    reload(changed) {
      const wanted = setting.of(changed);
      // Whether there is TLS at all is decided at the start.
      if (!wanted) return () => undefined;
      const renewed = readCertificate(wanted, section);
      return () => {
        for (const server of servers) server.setSecureContext(renewed);
      };
    },
  };
}

/** The errors in the files that a configuration names, found before anything starts. */
function issuesIn(json: unknown, section: ListenerSection): readonly ValidationIssue[] {
  const configured = files(asObject(asObject(json)[section])["tls"]);
  if (!configured) return []; // plain HTTP, or an issue of shape already
  try {
    readCertificate(configured, section);
    return [];
  } catch (error) {
    if (error instanceof ValidationError) return error.issues;
    throw error;
  }
}
