// HTTPS for the gateway's listeners: an HTTPS server in the place of the HTTP server, whose
// certificate can be replaced while it runs.
import https from "node:https";
import type { SecureListener } from "../../core/http/server.ts";
import { readTls, type CertificatePair } from "./certificate.ts";

export { readTls, type CertificatePair };

export interface TlsListener extends SecureListener {
  /** Uses another certificate for connections from now on. Open connections keep theirs. */
  renew(pair: CertificatePair): void;
}

/** Serves with this certificate until it is renewed. */
export function createTlsListener(initial: CertificatePair): TlsListener {
  let server: https.Server | undefined;
  return {
    create(options) {
      server = https.createServer({ ...options, ...initial });
      return server;
    },
    renew(pair) {
      server?.setSecureContext(pair);
    },
  };
}
