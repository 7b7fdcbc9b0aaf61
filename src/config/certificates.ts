// Certificates and their keys, as TLS takes them.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { createSecureContext, type SecureContext } from "node:tls";

/** What a side of a connection shows and trusts, each in PEM. */
export interface Credentials {
  readonly ca?: string[];
  readonly cert?: string | Buffer;
  /** The private key of `cert`, without a passphrase. */
  readonly key?: string | Buffer;
}

/** Throws an Error that says why TLS cannot use these credentials, without a secret in it. */
export function secureContextOf(credentials: Credentials): SecureContext {
  const context = createSecureContext(credentials);
  const { cert, key } = credentials;
  // OpenSSL takes an EC key beside an RSA certificate, and then shows neither.
  if (cert && key && !new X509Certificate(cert).checkPrivateKey(createPrivateKey(key)))
    throw new Error("key type mismatch");
  return context;
}
