// HTTPS on the public and on the admin listener. The certificate is read again at each reload.
import https from "node:https";
import { configMoments, type ConfigExtension } from "../../../config/extension.ts";
import { slots, type ListenerSection, type SecureSection } from "../../../core/extension/places.ts";
import { defineSetting } from "../../../config/setting.ts";
import { strict } from "../../../config/fields.ts";
import type { Config } from "../../../core/config.ts";
import {
  nonEmpty,
  optional,
  ValidationError,
  type ValidationIssue,
} from "../../../core/schema/checker.ts";
import { asObject } from "../../../core/schema/untrusted-json.ts";
import { readCertificate, type CertificateFiles } from "./certificate.ts";

/** Absent: plain HTTP. */
const files = () => optional(strict({ cert_file: nonEmpty, key_file: nonEmpty }));
const SETTINGS = {
  server: defineSetting<CertificateFiles | undefined>("server.tls", undefined, files),
  admin: defineSetting<CertificateFiles | undefined>("admin.tls", undefined, files),
};

export const extension: ConfigExtension = {
  name: "tls",
  settings: Object.values(SETTINGS),
  install(gateway) {
    gateway.fill(slots.secure, secureSection);
    gateway.on(configMoments.issuesHere, (json) => [
      ...issuesIn(json, "server"),
      ...issuesIn(json, "admin"),
    ]);
  },
};

function secureSection(config: Config, section: ListenerSection): SecureSection | undefined {
  const setting = SETTINGS[section];
  const configured = setting.of(config);
  if (!configured) return undefined;
  const certificate = readCertificate(configured, section);
  const servers: https.Server[] = [];
  return {
    create(options) {
      const server = https.createServer({ ...options, ...certificate });
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
  const { cert_file, key_file } = asObject(asObject(asObject(json)[section])["tls"]);
  if (typeof cert_file !== "string" || typeof key_file !== "string") return [];
  if (cert_file === "" || key_file === "") return []; // an issue of shape already
  try {
    readCertificate({ cert_file, key_file }, section);
    return [];
  } catch (error) {
    if (error instanceof ValidationError) return error.issues;
    throw error;
  }
}
