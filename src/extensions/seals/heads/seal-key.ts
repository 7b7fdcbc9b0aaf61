// The key of the installation, `keys.seal` in data_dir: the 32 secret bytes of an Ed25519 key as 64
// hexadecimal digits, readable by their owner only. It is made once, when it is first needed.
import { createPrivateKey, createPublicKey, sign, verify, type KeyObject } from "node:crypto";
import { join } from "node:path";
import { readOrCreateHex } from "../../data-files/index.ts";

/** What stands before the secret bytes of an Ed25519 key in PKCS #8 (RFC 8410). */
const PRIVATE_PREFIX = Buffer.from("302e020100300506032b657004220420", "hex");
/** What stands before the bytes of a public Ed25519 key in its DER form (RFC 8410). */
const PUBLIC_PREFIX = Buffer.from("302a300506032b6570032100", "hex");
const PUBLIC_HEX = /^[0-9a-f]{64}$/;

/** The key of an installation. */
export interface SealKey {
  /** The 32 bytes of the public key, as 64 hexadecimal digits. */
  readonly publicHex: string;
  /** The public key in PEM, as other programs read it. */
  readonly publicPem: string;
  /** Signs a SHA-256, 64 hexadecimal digits. Returns 128 hexadecimal digits. */
  sign(digest: string): string;
}

/** The file of the key of a data_dir. */
export const keyFile = (dataDir: string): string => join(dataDir, "keys.seal");

/** Reads the key of a data_dir, or makes it. Throws if it can be neither read nor made. */
export function sealKeyOf(dataDir: string): SealKey {
  const path = keyFile(dataDir);
  const digits = readOrCreateHex(path, 32);
  if (!/^[0-9a-f]{64}$/.test(digits)) throw new Error(`${path} is not 64 hexadecimal digits`);
  const key = createPrivateKey({
    key: Buffer.concat([PRIVATE_PREFIX, Buffer.from(digits, "hex")]),
    format: "der",
    type: "pkcs8",
  });
  const publicKey = createPublicKey(key);
  return {
    publicHex: hexOf(publicKey),
    publicPem: publicKey.export({ format: "pem", type: "spki" }).toString(),
    sign: (digest) => sign(null, Buffer.from(digest, "hex"), key).toString("hex"),
  };
}

const hexOf = (key: KeyObject): string =>
  key.export({ format: "der", type: "spki" }).subarray(PUBLIC_PREFIX.length).toString("hex");

/** The 64 hexadecimal digits of a public key in PEM. Throws if it is no Ed25519 key. */
export function publicHexOf(pem: string): string {
  const key = createPublicKey(pem);
  if (key.asymmetricKeyType !== "ed25519") throw new Error("it is no Ed25519 key");
  return hexOf(key);
}

/** Whether a signature of a SHA-256 is that of a public key. All are hexadecimal digits. */
export function isSignedBy(publicHex: string, digest: string, signature: string): boolean {
  if (!PUBLIC_HEX.test(publicHex)) return false;
  const der = Buffer.concat([PUBLIC_PREFIX, Buffer.from(publicHex, "hex")]);
  const key = createPublicKey({ key: der, format: "der", type: "spki" });
  return verify(null, Buffer.from(digest, "hex"), key, Buffer.from(signature, "hex"));
}
