// Certificates and their private keys, for TLS.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";

/** The credentials of one side of a connection, in PEM. */
export interface Credentials {
  /** The authorities that this side trusts. Absent: those of Node. */
  readonly ca?: string[];
  /** The certificate that this side presents. Absent: none. */
  readonly cert?: string | Buffer;
  /** The private key of `cert`, without a passphrase. */
  readonly key?: string | Buffer;
}

/** Throws an Error that says why TLS cannot use these credentials, without a secret in it. */
export function secureContextOf(credentials: Credentials): SecureContext {
  const context = createSecureContext(credentials);
  const { cert, key } = credentials;
  // OpenSSL accepts an EC key with an RSA certificate, and then presents neither.
  if (cert && key && !new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
    throw new Error("key type mismatch");
  return context;
}
